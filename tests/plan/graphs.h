// Training steps as the planner sees them: forward, loss, backward, update, with the lifetimes that such programs have.
// Sizes follow the published models; no tensor is ever made. Also random problems with every feature of plan.h.
#pragma once
#include <random>
#include <string>

#include "plan/plan.h"

namespace millpond::plan::testing {

/// Writes a program call by call: a value is born at the call that makes it and lives until the last call that reads
/// it.
class Program {
 public:
  BufferId make(std::string name, int64_t bytes) {
    problem_.buffers.push_back(
        {.name = std::move(name), .size = Bytes{bytes}, .first = problem_.calls, .last = problem_.calls});
    return {int32_t(problem_.buffers.size()) - 1};
  }
  void read(BufferId id) { problem_.buffers[id.value].last = problem_.calls; }
  void workspace(std::string name, int64_t bytes) { make(std::move(name), bytes); }
  void next() { ++problem_.calls; }
  Buffer& operator[](BufferId id) { return problem_.buffers[id.value]; }
  Problem done() {
    if (problem_.calls == 0) problem_.calls = 1;
    for (Buffer& b : problem_.buffers) problem_.calls = std::max(problem_.calls, b.last + 1);
    return std::move(problem_);
  }

 private:
  Problem problem_;
};

Problem mlp(int layers, int64_t width, int64_t batch);
Problem resnet(std::vector<int> blocks, int64_t image, int64_t batch);
Problem gpt(int layers, int64_t width, int64_t heads, int64_t sequence, int64_t batch, int64_t vocabulary);
Problem unet(int depth, int64_t image, int64_t batch, int64_t channels);
/// Values read again by a few later calls at random: nothing like training, and hard.
Problem random_graph(int buffers, uint32_t seed);

struct Features {
  bool alignment = true, fixed = true, alias = true, escapes = true, zero = true;
};
/// A small valid problem; fixed reservations do not contradict each other.
Problem random_problem(int buffers, int calls, const Features& features, std::mt19937& random);

}  // namespace millpond::plan::testing
