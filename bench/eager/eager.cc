// What it costs to run an operator by itself, beyond its kernel: the table is asked, the operands are handed over, the
// executor is called.
// The result is checked against the kernel's own before anything is timed; the two are timed in turns, and least is
// compared with least.
//   eager_bench
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "backend/host/kernel.h"
#include "base/random.h"
#include "base/team.h"
#include "ops/all.h"
#include "runtime/eager.h"

using namespace millpond;
using graph::TensorType;

namespace {

using Clock = std::chrono::steady_clock;

template <class F>
double nanoseconds(int calls, F&& f) {
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / calls;
}

bool measure(const char* what, const std::shared_ptr<const graph::Operator>& op, const std::vector<TensorType>& types) {
  const backend::Backend& cpu = backend::cpu_backend();
  const std::vector<TensorType> made = op->infer(types);
  std::vector<Tensor> tensors;
  Random random(1);
  for (const TensorType& t : types) {
    tensors.emplace_back(t.dtype, t.shape);
    for (float& v : tensors.back().values<float>()) v = float(random.normal());
  }
  for (const TensorType& t : made) tensors.emplace_back(t.dtype, t.shape);
  std::vector<std::byte*> at;
  for (Tensor& t : tensors) at.push_back(t.data());

  const auto kernel = backend::host::ready(cpu.make(*op, {types, made, 1}));
  const backend::Memory scratch = cpu.take(kernel->workspace() + Bytes{64}, "bench");
  std::vector<void*> operands(at.begin(), at.end());
  const backend::Arguments arguments{operands.data(), operands.data() + types.size(), scratch.address()};
  runtime::Eager eager(cpu, 1, Bytes{8 << 20});
  Team team(1);

  backend::host::run_alone(*kernel, arguments);
  const std::vector<std::byte> wanted(tensors.back().data(), tensors.back().data() + tensors.back().bytes().value);
  std::memset(tensors.back().data(), 0xff, wanted.size());
  eager.run(op, types, at, team);
  if (std::memcmp(wanted.data(), tensors.back().data(), wanted.size()) != 0) {
    std::printf("%s: the result differs from the kernel's\n", what);
    return false;
  }
  const int calls = int(
      std::max(20.0, std::min(20000.0, 2e6 / nanoseconds(20, [&] { backend::host::run_alone(*kernel, arguments); }))));
  double alone = 1e30, whole = 1e30;
  for (int round = 0; round < 25; ++round) {
    alone = std::min(alone, nanoseconds(calls, [&] { backend::host::run_alone(*kernel, arguments); }));
    whole = std::min(whole, nanoseconds(calls, [&] { eager.run(op, types, at, team); }));
  }
  std::printf("%-28s kernel %10.1f ns   by itself %10.1f ns   beyond its kernel %7.1f ns\n", what, alone, whole,
              whole - alone);
  return true;
}

TensorType f32(Shape s) { return {DType::kFloat32, s}; }

}  // namespace

int main() {
  using ops::Function;
  bool right = true;
  right &= measure("add [8]", std::make_shared<ops::Binary>(Function::k_add), {f32({8}), f32({8})});
  right &=
      measure("add [32, 100] + [100]", std::make_shared<ops::Binary>(Function::k_add), {f32({32, 100}), f32({100})});
  right &= measure("relu [32, 64]", std::make_shared<ops::Unary>(Function::k_relu), {f32({32, 64})});
  right &= measure("matmul [32, 100] [100, 64]", std::make_shared<ops::MatMul>(), {f32({32, 100}), f32({100, 64})});
  right &= measure("sum [32, 64] over rows",
                   std::make_shared<ops::Reduce>(ops::Reduce::Kind::kSum, std::vector<int>{0}, false), {f32({32, 64})});
  right &= measure("softmax [32, 10]", std::make_shared<ops::Softmax>(), {f32({32, 10})});
  return right ? 0 : 1;
}
