#include "backend/host/loop.h"

#include <cstring>

#include "base/assert.h"

namespace millpond::backend::host {
namespace {
void copy_bytes(std::byte* to, const std::byte* from, Bytes size) {
  if (to != from && size.value > 0) std::memcpy(to, from, size_t(size.value));
}
}  // namespace

Loop::Loop(Flow f, const Arguments& a, int threads) : flow(std::move(f)), arguments(a) {
  for (Script& s : flow.bodies) bodies.push_back(std::make_unique<Sequence>(std::move(s), threads));
  flow.bodies.clear();
  operands_.resize(2 * flow.carries.size() + flow.sequences.size() + flow.stacks.size() + size_t(flow.shared));
}

void Loop::reset() {
  steps_begun_.store(0, std::memory_order_relaxed);
  for (const auto& b : bodies) b->reset();
}

// What no step changes.
void Loop::begin() {
  const size_t carries = flow.carries.size(), whole = carries + flow.sequences.size();
  for (size_t i = 0; i < size_t(flow.shared); ++i) operands_[whole + i] = in(whole + i);
  for (size_t k = 0; k < carries; ++k)
    if (flow.carries[k].in_place) copy_bytes(out(k), in(k), flow.carries[k].size);
}

void Loop::begin_step(int64_t t) {
  const size_t carries = flow.carries.size(), inputs = carries + flow.sequences.size() + size_t(flow.shared);
  for (size_t k = 0; k < carries; ++k) {
    const Flow::Carry& c = flow.carries[k];
    operands_[k] = c.in_place ? out(k) : t == 0 ? in(k) : c.places[(t - 1) & 1];
    operands_[inputs + k] = c.in_place || t + 1 == flow.length ? out(k) : c.places[t & 1];
  }
  const int64_t at = element(t);
  for (size_t i = 0; i < flow.sequences.size(); ++i) {
    const Flow::Elements& e = flow.sequences[i];
    std::byte* const x = in(carries + i) + at * e.stride.value;
    if (e.bounce) copy_bytes(e.bounce, x, e.stride);
    operands_[carries + i] = e.bounce ? e.bounce : x;
  }
  for (size_t i = 0; i < flow.stacks.size(); ++i) {
    const Flow::Elements& e = flow.stacks[i];
    operands_[inputs + carries + i] = e.bounce ? e.bounce : out(carries + i) + at * e.stride.value;
  }
  bodies[0]->hand_over(operands_);
}

void Loop::end_step(int64_t t) {
  for (size_t i = 0; i < flow.stacks.size(); ++i)
    if (const Flow::Elements& e = flow.stacks[i]; e.bounce)
      copy_bytes(out(flow.carries.size() + i) + element(t) * e.stride.value, e.bounce, e.stride);
}

void Loop::scan() {
  begin();
  for (int64_t t = 0; t < flow.length; ++t) {
    begin_step(t);
    bodies[0]->alone();
    end_step(t);
  }
}

void Loop::while_loop() {
  const size_t carries = flow.carries.size(), inputs = carries + size_t(flow.shared);
  begin();
  for (size_t k = 0; k < carries; ++k) operands_[k] = in(k);
  for (int64_t t = 0; flow.length == 0 || t < flow.length; ++t) {
    operands_[inputs] = flow.answer;
    bodies[0]->hand_over({operands_.data(), inputs + 1});
    bodies[0]->alone();
    if (!*reinterpret_cast<const bool*>(flow.answer)) break;
    for (size_t k = 0; k < carries; ++k) operands_[inputs + k] = flow.carries[k].places[t & 1];
    bodies[1]->hand_over(operands_);
    bodies[1]->alone();
    for (size_t k = 0; k < carries; ++k) operands_[k] = flow.carries[k].places[t & 1];
  }
  for (size_t k = 0; k < carries; ++k) copy_bytes(out(k), operands_[k], flow.carries[k].size);
}

void Loop::cond() {
  const size_t shared = size_t(flow.shared);
  for (size_t i = 0; i < shared; ++i) operands_[i] = in(1 + i);
  for (size_t i = 0; i < flow.stacks.size(); ++i) operands_[shared + i] = out(i);
  const bool yes = *reinterpret_cast<const bool*>(in(0));
  Sequence& body = *bodies[yes ? 0 : 1];
  body.hand_over(operands_);
  body.alone();
}

void Loop::alone() {
  switch (flow.kind) {
    case Flow::Kind::kScan:
      return scan();
    case Flow::Kind::kWhile:
      return while_loop();
    case Flow::Kind::kCond:
      return cond();
  }
}

// Member 0 sets a step's operands when it has seen the step before end, so that no kernel runs on them; the others wait
// for that. One that comes late finds the claims of its step taken, and touches nothing.
void Loop::member(int m, int64_t round) noexcept {
  if (m == 0) begin();
  for (int64_t t = 0; t < flow.length; ++t) {
    const int64_t step = round * flow.length + t;
    if (m == 0) {
      if (t > 0) end_step(t - 1);
      begin_step(t);
      steps_begun_.store(step + 1, std::memory_order_release);
    } else {
      for (Spin spin; steps_begun_.load(std::memory_order_acquire) <= step;) spin.wait();
    }
    bodies[0]->member(m, step);
  }
  if (m == 0) end_step(flow.length - 1);
}

}  // namespace millpond::backend::host
