#include "ops/scan.h"

#include "base/assert.h"
#include "base/format.h"

namespace millpond::ops {

std::string Scan::attributes() const {
  return format("length={} carries={} sequences={}{} body={}", length, carries, sequences, reverse ? " reverse" : "",
                body->number);
}

std::vector<TensorType> Scan::infer(std::span<const TensorType> inputs) const {
  if (int(inputs.size()) < carries + sequences)
    throw Error(Code::kShape,
                format("scan: {} operands for {} carries and {} sequences", inputs.size(), carries, sequences));
  if (length < 1) throw Error(Code::kShape, format("scan: {} steps", length)).hint("there must be at least one");
  std::vector<TensorType> wanted(inputs.begin(), inputs.end());
  for (int i = carries; i < carries + sequences; ++i) {
    const Shape& s = inputs[size_t(i)].shape;
    if (s.rank() == 0 || s[0] != length)
      throw Error(Code::kShape, format("scan: sequence {} is {}, but there are {} steps", i - carries,
                                       to_string(inputs[size_t(i)]), length))
          .hint("a sequence has the steps in front");
    wanted[size_t(i)].shape = s.without(0);
  }
  expect_inputs(*body, wanted, "scan: the step");
  std::vector<TensorType> types = body->outputs();
  MP_ASSERT(int(types.size()) >= carries);
  for (int i = 0; i < int(types.size()); ++i) {
    if (i >= carries)
      types[size_t(i)].shape = types[size_t(i)].shape.with_front(length);
    else if (types[size_t(i)] != inputs[size_t(i)])
      throw Error(Code::kShape, format("scan: carry {} is {}, but a step makes it {}", i, to_string(inputs[size_t(i)]),
                                       to_string(types[size_t(i)])))
          .hint("a carry has the same shape and dtype in every step");
  }
  return types;
}

double Scan::flops(std::span<const TensorType>, std::span<const TensorType>) const {
  return flops_of(body->graph) * double(length);
}

std::vector<Value> scan(Builder& b, std::span<const Value> carries, std::span<const Value> sequences,
                        std::span<const Value> shared, const Write& step, const ScanOptions& options) {
  int64_t length = options.length;
  std::vector<Value> operands;
  std::vector<TensorType> types;
  const auto add = [&](Value v, TensorType t) { operands.push_back(v), types.push_back(std::move(t)); };
  for (Value v : carries) add(v, v.type());
  for (Value v : sequences) {
    if (v.shape().rank() == 0)
      throw Error(Code::kShape, "scan: a sequence is a single number").hint("a sequence has the steps in front");
    if (length == 0) length = v.shape()[0];
    add(v, {v.dtype(), v.shape().without(0)});
  }
  for (Value v : shared) add(v, v.type());
  BodyRef body = write_body(b.layer(), types, step);
  return b.add_all(
      std::make_shared<Scan>(std::move(body), int(carries.size()), int(sequences.size()), length, options.reverse),
      std::move(operands));
}

}  // namespace millpond::ops
