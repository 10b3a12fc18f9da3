// How long an operator takes in each dtype, as a ratio to float32's time. A result is compared with the reference
// kernel's before anything is timed; dtypes are timed in turns, and least is compared with least.
//   dtypes_bench [elements]     default 8388608: from memory; 65536: from the caches
// The bars: float64 at most 2.2, bfloat16 and int32 at most 1.2, for the element-wise rows from "add" to "chain".
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/host/kernel.h"
#include "base/random.h"
#include "ops/all.h"

using namespace millpond;
using graph::TensorType;
using ops::Function;

namespace {

using Clock = std::chrono::steady_clock;
using OperatorRef = std::shared_ptr<const graph::Operator>;

class Call {
 public:
  Call(const backend::Backend& backend, const OperatorRef& op, const std::vector<Tensor>& inputs) : in_(inputs) {
    std::vector<TensorType> types;
    for (const Tensor& t : inputs) types.push_back({t.dtype(), t.shape()});
    const std::vector<TensorType> made = op->infer(types);
    kernel_ = backend::host::ready(backend.make(*op, {types, made, 1}));
    for (const TensorType& t : made) out_.emplace_back(t.dtype, t.shape);
    scratch_ = Tensor(DType::kUInt8, {kernel_->workspace().value + 64});
    for (Tensor& t : in_) at_.push_back(t.data());
    for (Tensor& t : out_) at_.push_back(t.data());
    run();
  }
  void run() const {
    auto* scratch = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch_.data()) + 63) & ~uintptr_t{63});
    backend::host::run_alone(*kernel_,
                             {const_cast<void**>(at_.data()), const_cast<void**>(at_.data()) + in_.size(), scratch});
  }
  bool slow() const { return kernel_->slow(); }
  const Tensor& result() const { return out_[0]; }
  double time() const {
    const auto start = Clock::now();
    run();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }

 private:
  std::vector<Tensor> in_, out_;
  Tensor scratch_;
  std::vector<void*> at_;
  std::unique_ptr<backend::host::Kernel> kernel_;
};

bool near(const Tensor& got, const Tensor& want) {
  for (int64_t i = 0; i < got.size(); i += 1 + got.size() / 5000) {
    const double g = got.at(i), w = want.at(i);
    if (std::abs(g - w) > 0.02 * (std::abs(w) + 1) && !(g != g && w != w)) return false;
  }
  return true;
}

// relu(x * y + y) and what is larger of it and x
OperatorRef chain(int64_t n, DType t) {
  ops::Expression e{
      {ops::Extent::kFull, ops::Extent::kFull},
      {{Function::k_multiply, 0, 1}, {Function::k_add, 2, 1}, {Function::k_relu, 3}, {Function::k_maximum, 4, 0}},
      {{5}}};
  return std::make_shared<ops::Fused>(e, 1, n, std::vector<TensorType>{{t, {n}}});
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 8388608;
  const DType types[] = {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16, DType::kInt32,
                         DType::kInt8,    DType::kInt64,   DType::kUInt8,    DType::kUInt64,  DType::kBool};
  struct Row {
    const char* name;
    OperatorRef (*make)(int64_t n, DType t);
    int operands;
    bool whole;  // whole numbers too
    bool bar;
    int64_t width;  // of the last dimension; 0: one
  };
  const Row rows[] = {
      {"add", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Binary>(Function::k_add); }, 2, true,
       true, 0},
      {"multiply", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Binary>(Function::k_multiply); }, 2,
       true, true, 0},
      {"maximum", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Binary>(Function::k_maximum); }, 2,
       true, true, 0},
      {"greater", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Binary>(Function::k_greater); }, 2,
       true, true, 0},
      {"relu", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Unary>(Function::k_relu); }, 1, true,
       true, 0},
      {"chain", chain, 2, true, true, 0},
      {"exp", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Unary>(Function::k_exp); }, 1, false,
       false, 0},
      {"tanh", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Unary>(Function::k_tanh); }, 1, false,
       false, 0},
      {"sum",
       [](int64_t, DType) -> OperatorRef {
         return std::make_shared<ops::Reduce>(ops::Reduce::Kind::kSum, std::vector<int>{0}, false);
       },
       1, true, false, 0},
      {"sum rows",
       [](int64_t, DType) -> OperatorRef {
         return std::make_shared<ops::Reduce>(ops::Reduce::Kind::kSum, std::vector<int>{0}, false);
       },
       1, true, false, 256},
      {"transpose",
       [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::Transpose>(std::vector<int>{1, 0}); }, 1, true,
       false, 256},
      {"matmul", [](int64_t, DType) -> OperatorRef { return std::make_shared<ops::MatMul>(false, false); }, 2, false,
       false, -1},
  };
  std::printf("%lld elements, one thread; float32 in us, others as ratios to it (* a slow kernel)\n%-10s",
              static_cast<long long>(n), "");
  for (const DType t : types) std::printf("%10s", std::string(to_string(t)).c_str());
  std::printf("\n");
  int wrong = 0;
  for (const Row& r : rows) {
    std::vector<std::unique_ptr<Call>> calls;
    const int64_t side = std::min<int64_t>(512, int64_t(std::sqrt(double(n))));
    const Shape shape = r.width < 0 ? Shape{side, side} : r.width ? Shape{n / r.width, r.width} : Shape{n};
    for (const DType t : types) {
      const bool fits =
          is_floating(t) || (r.whole && (t != DType::kBool || std::strcmp(r.name, "maximum") == 0 ||
                                         std::strcmp(r.name, "greater") == 0 || std::strcmp(r.name, "transpose") == 0));
      if (!fits) {
        calls.push_back(nullptr);
        continue;
      }
      std::vector<Tensor> inputs;
      for (int k = 0; k < r.operands; ++k) {
        Random random(uint64_t(k) + 1);
        Tensor x(DType::kFloat32, shape);
        for (float& v : x.values<float>())
          v = is_floating(t) ? float(random.uniform() * 4 - 2) : float(random.below(100));
        inputs.push_back(x.astype(t));
      }
      calls.push_back(std::make_unique<Call>(backend::cpu_backend(), r.make(n, t), inputs));
      if (n <= 1 << 17 &&
          !near(calls.back()->result(), Call(backend::reference_backend(), r.make(n, t), inputs).result())) {
        std::printf("%s in %s differs from the reference\n", r.name, std::string(to_string(t)).c_str());
        ++wrong;
      }
    }
    std::vector<double> least(calls.size(), 1e30);
    const int rounds = n > 1 << 20 ? 9 : 200;
    for (int k = 0; k < rounds; ++k)
      for (size_t i = 0; i < calls.size(); ++i)
        if (calls[i]) least[i] = std::min(least[i], calls[i]->time());
    std::printf("%-10s", r.name);
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i])
        std::printf("%10s", "-");
      else if (i == 0)
        std::printf("%10.1f", least[0] / 1000);
      else
        std::printf("%9.2f%s", least[i] / least[0], calls[i]->slow() ? "*" : " ");
    }
    std::printf("\n");
    if (!r.bar) continue;
    for (size_t i = 0; i < calls.size(); ++i) {
      const double most = types[i] == DType::kFloat64                                 ? 2.2
                          : types[i] == DType::kBFloat16 || types[i] == DType::kInt32 ? 1.2
                                                                                      : 1e9;
      if (calls[i] && least[i] / least[0] > most)
        std::printf("  above the bar: %s in %s\n", r.name, std::string(to_string(types[i])).c_str());
    }
  }
  return wrong != 0;
}
