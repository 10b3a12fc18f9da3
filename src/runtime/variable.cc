#include "runtime/variable.h"

#include "base/assert.h"

namespace millpond::runtime {

namespace {
constexpr Bytes kAlignment{64};
}

Tensor Variable::value() const {
  MP_ASSERT(placed());
  return Tensor::view(data_, type_.dtype, type_.shape, segment_);
}

Bytes bytes_to_place(std::span<const Variable* const> variables) {
  Bytes total;
  for (const Variable* v : variables)
    if (!v->placed()) total += round_up(v->type().bytes(), kAlignment);
  return total;
}

void place(std::span<Variable* const> variables, std::string account) {
  const Bytes total = bytes_to_place({variables.data(), variables.size()});
  if (total.value == 0) return;
  auto segment = std::make_shared<Segment>(total, std::move(account));
  Bytes at;
  for (Variable* v : variables) {
    if (v->placed()) continue;
    v->data_ = segment->data() + at.value;
    v->segment_ = segment;
    at += round_up(v->type().bytes(), kAlignment);
  }
}

}  // namespace millpond::runtime
