#include "far/far.h"

#include <cstring>

#include "backend/host/executor.h"
#include "base/assert.h"
#include "base/segment.h"
#include "far/pages.h"

namespace millpond::test {
namespace {

using backend::Memory;
using backend::Script;

constexpr size_t kMostWaiting = 3;

Pages& pages() {
  static Pages* const all = new Pages;  // for as long as the process lives: variables of static life give back late
  return *all;
}

std::byte* reach(std::byte* p) { return p ? pages().reach(p) : nullptr; }

std::vector<Script::Operand> within_reach(const std::vector<Script::Operand>& far) {
  std::vector<Script::Operand> near;
  for (const Script::Operand& o : far) near.push_back({pages().reach(o.at), o.size});
  return near;
}

// The script as the kernels may follow it; its bodies too.
Script within_reach(const Script& far) {
  Script near;
  near.threads = far.threads;
  near.operands.reserve(far.operands.size());
  for (void* p : far.operands) near.operands.push_back(reach(static_cast<std::byte*>(p)));  // null: handed over later
  const auto moved = [&](void* const* at) { return near.operands.data() + (at - far.operands.data()); };
  for (const Script::Call& c : far.calls)
    near.calls.push_back(
        {c.kernel, {moved(c.arguments.in), moved(c.arguments.out), reach(c.arguments.scratch)}, c.flow});
  for (const backend::Flow& f : far.flows) {
    backend::Flow& n = near.flows.emplace_back(f);
    for (backend::Flow::Carry& c : n.carries)
      for (std::byte*& place : c.places) place = reach(place);
    for (auto* elements : {&n.sequences, &n.stacks})
      for (backend::Flow::Elements& e : *elements) e.bounce = reach(e.bounce);
    n.answer = reach(f.answer);
    n.bodies.clear();
    for (const Script& body : f.bodies) n.bodies.push_back(within_reach(body));
  }
  near.inputs = within_reach(far.inputs);
  near.outputs = within_reach(far.outputs);
  for (const Script::Dead& d : far.dead) near.dead.push_back({d.call, {pages().reach(d.bytes.at), d.bytes.size}});
  near.sums = far.sums;
  near.handed = far.handed;
  return near;
}

// Garbage is a NaN in every floating type.
void spoil(Tensor& bytes) { std::memset(bytes.data(), 0xff, size_t(bytes.bytes().value)); }

std::vector<Tensor> host_sides(const std::vector<Script::Operand>& operands) {
  std::vector<Tensor> all;
  for (const Script::Operand& o : operands) {
    all.emplace_back(DType::kUInt8, Shape{o.size.value}, "far/host");
    spoil(all.back());
  }
  return all;
}

class FarExecutor;

// A run that was begun and has not been done.
struct Waiting {
  FarExecutor* executor;
  double* sums;
  std::vector<Tensor> inputs;  // once they have been taken
};

// What one thread has asked for.
struct Queue {
  std::vector<Waiting> runs;
  void finish();
  ~Queue() { MP_ASSERT(runs.empty()); }  // a thread that ends without having waited leaves half a step behind
};
Queue& queue() {
  thread_local Queue mine;
  return mine;
}

class FarExecutor final : public backend::Executor {
 public:
  explicit FarExecutor(const Script& script)
      : inputs_(host_sides(script.inputs)),
        outputs_(host_sides(script.outputs)),
        near_inputs_(within_reach(script.inputs)),
        near_outputs_(within_reach(script.outputs)),
        executor_(within_reach(script)),
        alone_(script.threads, Team::WithoutHelpers{}) {
    takes_inputs_late_ = true;
  }
  ~FarExecutor() override {
    queue().finish();
    MP_ASSERT(waiting_ == 0);  // of another thread, which has not waited
  }
  std::byte* input(int i) const override { return const_cast<std::byte*>(inputs_[size_t(i)].data()); }
  const std::byte* output(int i) const override { return outputs_[size_t(i)].data(); }

  void hand_over(std::span<std::byte* const> addresses) override {
    queue().finish();  // runs that were begun before have the operands of before
    handed_.clear();
    for (std::byte* p : addresses) handed_.push_back(pages().reach(p));
    executor_.hand_over(handed_);
  }

  void run(Team&, double* sums) override {
    take_inputs();
    for (Tensor& t : outputs_) spoil(t);
    ++waiting_;
    untaken_ = true;
    queue().runs.push_back({this, sums, {}});
    if (queue().runs.size() > kMostWaiting) queue().finish();
  }

  void take_inputs() override {
    if (!untaken_) return;
    for (Waiting& w : queue().runs)
      if (w.executor == this && w.inputs.empty()) {
        for (Tensor& t : inputs_) w.inputs.push_back(t.astype(t.dtype(), "far/host"));
      }
    for (Tensor& t : inputs_) spoil(t);
    untaken_ = false;
  }

  void now(const Waiting& w) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      std::memcpy(near_inputs_[i].at, w.inputs[i].data(), size_t(near_inputs_[i].size.value));
    executor_.run(alone_, w.sums);
    for (size_t i = 0; i < outputs_.size(); ++i)
      std::memcpy(outputs_[i].data(), near_outputs_[i].at, size_t(near_outputs_[i].size.value));
    --waiting_;
  }

 private:
  std::vector<Tensor> inputs_, outputs_;  // the host's side
  std::vector<Script::Operand> near_inputs_, near_outputs_;
  std::vector<std::byte*> handed_;
  backend::host::Executor executor_;
  Team alone_;
  bool untaken_ = false;
  int waiting_ = 0;
};

void Queue::finish() {
  for (Waiting& w : runs) {
    w.executor->take_inputs();
    w.executor->now(w);
  }
  runs.clear();
}

class Far final : public backend::Backend {
 public:
  std::string_view name() const override { return "far"; }
  std::unique_ptr<backend::Kernel> make(const graph::Operator& op, const backend::Request& request) const override {
    return backend::cpu_backend().make(op, request);
  }
  bool offers(std::string_view fusion) const override { return backend::cpu_backend().offers(fusion); }

  Memory take(Bytes size, std::string account) const override {
    struct Kept {
      Kept(Bytes n, std::string account)
          : size(n), at(pages().take(n, account)), holding(std::move(account), round_up(n, kPage), at) {}
      ~Kept() { pages().give_back(at, size); }
      Bytes size;
      std::byte* at;
      Holding holding;
    };
    auto kept = std::make_shared<Kept>(size, std::move(account));
    std::byte* const at = kept->at;
    return Memory(*this, at, round_up(size, kPage), std::move(kept));
  }
  void write(std::byte* to, const void* from, Bytes size) const override {
    wait();
    std::memcpy(pages().reach(to), from, size_t(size.value));
  }
  void read(void* to, const std::byte* from, Bytes size) const override {
    wait();
    std::memcpy(to, pages().reach(from), size_t(size.value));
  }
  void zero(std::byte* at, Bytes size) const override {
    wait();
    std::memset(pages().reach(at), 0, size_t(size.value));
  }
  FreeMemory memory_free() const override { return memory_free_now(); }
  std::unique_ptr<backend::Executor> prepare(Script script) const override {
    return std::make_unique<FarExecutor>(script);
  }
  void wait() const override { queue().finish(); }
};

}  // namespace

const backend::Backend& far_backend() {
  static const Far backend;
  return backend;
}

}  // namespace millpond::test
