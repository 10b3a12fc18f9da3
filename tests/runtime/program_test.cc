#include <doctest/doctest.h>

#include <cstring>

#include "base/process.h"
#include "ops/all.h"
#include "passes/steps.h"

using namespace millpond;
using namespace millpond::test;

namespace {

runtime::Options with(const backend::Backend& backend, int threads) {
  runtime::Options o;
  o.backend = &backend;
  o.threads = threads;
  return o;
}

}  // namespace

TEST_CASE("the cpu kernels train as the reference does") {
  int which = 0;
  for (const Step& step : {mlp_step({}), mlp_step({.rows = 33, .widths = {17, 65, 40, 1}, .dropout = true}), mlp_step({.rows = 32, .widths = {100, 64, 1}}), conv_step(false), conv_step(true)}) {
    const std::vector<Tensor> slow = run_steps(step, with(backend::reference_backend(), 1), 3);
    for (int threads : {1, 2}) {
      CAPTURE(threads);
      CAPTURE(which);
      // Adam's first steps are the sign of the gradient: a weight whose gradient is within rounding of 0 may go either way,
      // by at most the sum of three learning rates (0.03); the largest weights are near 1.
      CHECK(worst_difference(slow, run_steps(step, with(backend::cpu_backend(), threads), 3)) < 0.07);
      const std::vector<Tensor> one = run_steps(step, with(backend::cpu_backend(), threads), 1);
      CHECK(std::abs(one[0].at(0) - run_steps(step, with(backend::reference_backend(), 1), 1)[0].at(0)) < 1e-4);
    }
    ++which;
  }
}

TEST_CASE("the same step with the same number of threads gives the same bits") {
  const Step step = mlp_step({.rows = 64, .widths = {200, 512, 256, 1}, .dropout = true});
  for (int threads : {1, 2}) {
    const std::vector<Tensor> a = run_steps(step, with(backend::cpu_backend(), threads), 5), b = run_steps(step, with(backend::cpu_backend(), threads), 5);
    for (size_t i = 0; i < a.size(); ++i) CHECK(std::memcmp(a[i].data(), b[i].data(), size_t(a[i].bytes().value)) == 0);
  }
}

TEST_CASE("the plan of every step holds, at the lower bound") {
  for (const Step& step : {mlp_step({.rows = 64, .widths = {200, 512, 256, 1}, .dropout = true}), conv_step(true)}) {
    runtime::Program p("test", step.graph.clone(), with(backend::cpu_backend(), 2));
    CHECK(plan::violations(p.problem(), p.plan()).empty());
    CHECK(p.plan().size == p.plan().lower_bound);
  }
}

TEST_CASE("a variable whose old value is still wanted is assigned last") {
  // y = 2 x is read after x has become x + 1, so x + 1 may not be made in x's bytes before
  graph::Graph g;
  graph::Builder b(g);
  runtime::Variable x("x", {DType::kFloat32, {3}});
  runtime::Variable* one[] = {&x};
  runtime::place(one, "test");
  const graph::Value v = b.variable("x", x.type(), &x);
  const graph::Value next = ops::add(b, v, 1.0);
  const graph::Value y = ops::multiply(b, ops::add(b, ops::matmul(b, ops::reshape(b, v, {1, 3}), ops::reshape(b, v, {3, 1})), 0.0), 2.0);
  g.updates.push_back({v, next});
  g.outputs.push_back({"y", y});
  runtime::Program program("test", std::move(g), with(backend::reference_backend(), 1));
  const Segment arena(program.arena_bytes() + 64_B, "test");
  program.bind(arena.data());
  Team team(1);
  for (int i = 0; i < 3; ++i) {
    program.run(team);
    CHECK(*reinterpret_cast<const float*>(program.output("y")) == doctest::Approx(2.0 * 3 * i * i));
  }
  CHECK(x.value().at(0) == 3);
}

TEST_CASE("the null backend plans what no machine could hold") {
  graph::Graph g;
  graph::Builder b(g);
  std::vector<std::unique_ptr<runtime::Variable>> weights;
  graph::Value h = b.input("x0", {DType::kFloat32, {1024, 65536}});
  for (int i = 0; i < 24; ++i) {  // 103 billion parameters
    weights.push_back(std::make_unique<runtime::Variable>("w", graph::TensorType{DType::kFloat32, {65536, 65536}}));
    h = ops::relu(b, ops::matmul(b, h, b.variable("w", weights.back()->type(), weights.back().get())));
  }
  g.outputs.push_back({"y", h});
  const Bytes before = *resident();
  const runtime::Program p("huge", std::move(g), with(backend::null_backend(), 1));
  CHECK(p.plan().size >= Bytes{2LL * 1024 * 65536 * 4});
  CHECK((*resident() - before).value < (8_MiB).value);
}
