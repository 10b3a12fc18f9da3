#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "backend/host/kernel.h"
#include "operators.h"

namespace millpond::test {

namespace {
constexpr size_t kGuard = 64;

// Bytes between two guards, aligned as the plan aligns. Garbage is a NaN in every floating type.
class Guarded {
 public:
  explicit Guarded(Bytes size)
      : size_(size_t(size.value)), held_(new(std::align_val_t{64}) std::byte[size_ + 2 * kGuard]) {
    std::memset(held_, 0xC5, kGuard);
    std::memset(data(), 0xFF, size_);
    std::memset(data() + size_, 0xC5, kGuard);
  }
  Guarded(Guarded&& o) noexcept : size_(o.size_), held_(std::exchange(o.held_, nullptr)) {}
  ~Guarded() { ::operator delete[](held_, std::align_val_t{64}); }
  std::byte* data() const { return held_ + kGuard; }
  size_t size() const { return size_; }
  bool intact() const {
    const auto untouched = [](std::byte b) { return b == std::byte{0xC5}; };
    return std::all_of(held_, held_ + kGuard, untouched) &&
           std::all_of(data() + size_, data() + size_ + kGuard, untouched);
  }

 private:
  size_t size_;
  std::byte* held_;
};

void run(const backend::host::Kernel& kernel, const backend::Arguments& a, int threads) {
  if (threads == 1) return backend::host::run_alone(kernel, a);
  const std::span<const int> phases = kernel.phases();
  for (int phase = 0; phase < int(phases.size()); ++phase) {
    std::vector<std::thread> team;
    std::atomic<int> left{phases[phase]};
    for (int member = 0; member < threads; ++member)
      team.emplace_back([&, member] {
        if (phases[phase] == 1 && member > 0) return;
        for (int block = --left; block >= 0; block = --left) kernel.run(a, phase, block, member);
      });
    for (std::thread& t : team) t.join();
  }
}
}  // namespace

std::vector<Tensor> run_operator(const backend::Backend& backend, const graph::Operator& op,
                                 const std::vector<Tensor>& inputs, Run how) {
  backend::Request request;
  request.threads = how.threads;
  for (const Tensor& t : inputs) request.inputs.push_back({t.dtype(), t.shape()});
  request.outputs = op.infer(request.inputs);
  const auto kernel = backend::host::ready(backend.make(op, request));

  std::vector<Guarded> in, out;
  std::vector<void*> in_at, out_at;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    in.emplace_back(t.bytes());
    if (t.bytes() > Bytes{0}) std::memcpy(in.back().data(), t.data(), in.back().size());
    // copies of one tensor are one value of the graph: they lie at one address
    const auto same = std::find_if(inputs.begin(), inputs.begin() + int64_t(i),
                                   [&](const Tensor& o) { return o.data() == t.data() && o.bytes() == t.bytes(); });
    in_at.push_back(in[size_t(same - inputs.begin())].data());
  }
  for (const TensorType& t : request.outputs) {
    out.emplace_back(t.bytes());
    out_at.push_back(out.back().data());
  }
  const graph::MemoryFacts facts = op.memory();
  std::vector<graph::Overlap> shared = facts.in_place;
  if (how.overlap >= 0) shared.push_back(facts.may_overwrite[how.overlap]);
  for (const graph::Overlap& o : shared) out_at[o.output] = in_at[o.input];
  const auto overwritten = [&](void* at) { return std::ranges::count(out_at, at) > 0; };
  const Guarded scratch(kernel->workspace());
  run(*kernel, {in_at.data(), out_at.data(), scratch.data()}, how.threads);

  const std::string who = std::string(op.name()) + "[" + op.attributes() + "] on " + std::string(backend.name());
  CHECK_MESSAGE(scratch.intact(), who << " wrote outside its scratch");
  for (size_t i = 0; i < in.size(); ++i) {
    CHECK_MESSAGE(in[i].intact(), who << " wrote outside operand " << i);
    if (!overwritten(in[i].data()) && in[i].size())
      CHECK_MESSAGE(std::memcmp(in[i].data(), inputs[i].data(), in[i].size()) == 0, who << " changed operand " << i);
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < out.size(); ++i) {
    CHECK_MESSAGE(out[i].intact(), who << " wrote outside output " << i);
    Tensor t(request.outputs[i].dtype, request.outputs[i].shape);
    if (out[i].size()) std::memcpy(t.data(), out_at[i], out[i].size());
    results.push_back(t);
  }
  return results;
}

}  // namespace millpond::test
