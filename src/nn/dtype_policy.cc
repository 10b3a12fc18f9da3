#include "millpond/dtype_policy.h"

#include <array>
#include <atomic>
#include <cstdint>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond {
namespace {

struct Named {
  std::string_view name;
  DType variable, compute;
};
constexpr std::array kNamed{Named{"float32", DType::kFloat32, DType::kFloat32},
                            Named{"float64", DType::kFloat64, DType::kFloat64},
                            Named{"bfloat16", DType::kBFloat16, DType::kBFloat16},
                            Named{"float16", DType::kFloat16, DType::kFloat16},
                            Named{"mixed_bfloat16", DType::kFloat32, DType::kBFloat16},
                            Named{"mixed_float16", DType::kFloat32, DType::kFloat16}};

std::atomic<uint8_t> chosen{0};  // a number of kNamed

}  // namespace

DTypePolicy::DTypePolicy(std::string_view name) {
  std::string known;
  for (const Named& n : kNamed) {
    if (n.name == name) {
      variable = n.variable, compute = n.compute;
      return;
    }
    known += format("{}{}", known.empty() ? "" : ", ", n.name);
  }
  throw Error(Code::kUsage, format("\"{}\" is not a dtype policy", name)).hint("known: " + known);
}

std::string DTypePolicy::name() const {
  for (const Named& n : kNamed)
    if (n.variable == variable && n.compute == compute) return std::string(n.name);
  return format("{} in {}", to_string(compute), to_string(variable));
}

void set_dtype_policy(DTypePolicy policy) {
  for (size_t i = 0; i < kNamed.size(); ++i)
    if (kNamed[i].variable == policy.variable && kNamed[i].compute == policy.compute) {
      chosen = uint8_t(i);
      return;
    }
  throw Error(Code::kUsage, format("no dtype policy computes in {} with weights in {}", to_string(policy.compute),
                                   to_string(policy.variable)))
      .hint("give it by its name, such as \"mixed_bfloat16\"");
}

DTypePolicy dtype_policy() {
  DTypePolicy p;
  p.variable = kNamed[chosen].variable, p.compute = kNamed[chosen].compute;
  return p;
}

}  // namespace millpond
