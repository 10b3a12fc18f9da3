#include "runtime/variable.h"

#include "base/assert.h"
#include "base/format.h"

namespace millpond::runtime {

namespace {
constexpr Bytes kAlignment{64};
}

Tensor Variable::view() const {
  MP_ASSERT(placed());
  std::byte* const host = memory_.host();
  if (!host)
    throw Error(Code::kUnsupported, format("{} lies in the memory of the backend \"{}\", which the host cannot see",
                                           account_, memory_.backend().name()))
        .hint("use copies: get_weights and set_weights");
  return Tensor::view(host, type_.dtype, type_.shape, memory_.keeper());
}

Tensor Variable::seen(std::string account) const { return memory_.host() ? view() : copy(std::move(account)); }

Tensor Variable::copy(std::string account) const {
  MP_ASSERT(placed());
  Tensor t(type_.dtype, type_.shape, std::move(account));
  memory_.read(t.data());
  return t;
}

void Variable::write(const Tensor& values) {
  MP_ASSERT(placed() && values.dtype() == type_.dtype && values.bytes() == type_.bytes());
  changing();
  memory_.write(values.data());
}

Bytes bytes_to_place(std::span<const Variable* const> variables) {
  Bytes total;
  for (const Variable* v : variables)
    if (!v->placed()) total += round_up(v->type().bytes(), kAlignment);
  return total;
}

void place(std::span<Variable* const> variables, std::string account, const backend::Backend& backend) {
  const Bytes total = bytes_to_place({variables.data(), variables.size()});
  if (total.value == 0) return;
  const backend::Memory all = backend.take(total, std::move(account));
  Bytes at;
  for (Variable* v : variables) {
    if (v->placed()) continue;
    v->memory_ = all.part(at, v->type().bytes());
    at += round_up(v->type().bytes(), kAlignment);
  }
}

}  // namespace millpond::runtime
