// check: what the shape rules and gradient rules of many operators share: refusals with the cure, and windows.
#pragma once
#include "base/assert.h"
#include "base/format.h"
#include "graph/builder.h"
#include "ops/conv2d.h"

namespace millpond::ops {

// `op` is the operator, `what` the operand as its header calls it.
void require_floating(std::string_view op, std::string_view what, const TensorType& type);
void require_integer(std::string_view op, std::string_view what, const TensorType& type);
void require_rank(std::string_view op, std::string_view what, const TensorType& type, int rank);
void require_shape(std::string_view op, std::string_view what, const TensorType& type, const Shape& wanted);
void require_dtype(std::string_view op, std::string_view what, const TensorType& type, DType wanted);

/// [n, height, width, channels] that a window gives on the image x [n, h, w, c]; refuses one that does not fit.
Shape windows_of(std::string_view op, const Window& w, const Shape& x, int64_t channels);

/// The types of an expression's results on an iteration space of `full`; operands are those of registers first_register
/// and up. Refuses operands that do not fit their extent and registers that do not exist: a mistake of a pass.
std::vector<TensorType> infer_epilogue(std::string_view op, const Expression& e, const TensorType& full,
                                       std::span<const TensorType> operands);

/// A null Value for each operand.
inline std::vector<Value> no_gradients(const Node& node) { return std::vector<Value>(node.inputs.size()); }
[[noreturn]] void refuse_gradient(std::string_view op, std::string_view why);
/// a + b, where either may be null.
Value add_gradients(Builder& b, Value x, Value y);
/// All axes but the last.
std::vector<int> leading_axes(const Shape& shape);

}  // namespace millpond::ops
