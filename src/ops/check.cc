#include "ops/check.h"

#include "ops/binary.h"

namespace millpond::ops {

void require_floating(std::string_view op, std::string_view what, const TensorType& type) {
  if (!is_floating(type.dtype))
    throw Error(Code::kDType, format("{}: {} is {}, but a floating type is needed", op, what, to_string(type)))
        .hint(format("cast {} to float32 first", what));
}

void require_integer(std::string_view op, std::string_view what, const TensorType& type) {
  if (!is_integer(type.dtype))
    throw Error(Code::kDType, format("{}: {} is {}, but whole numbers are needed", op, what, to_string(type)))
        .hint(format("cast {} to int32 first", what));
}

void require_rank(std::string_view op, std::string_view what, const TensorType& type, int rank) {
  if (type.shape.rank() != rank)
    throw Error(Code::kShape, format("{}: {} is {}, which has {} dimensions", op, what, type.shape, type.shape.rank()))
        .hint(format("give {} {} dimensions", what, rank));
}

void require_shape(std::string_view op, std::string_view what, const TensorType& type, const Shape& wanted) {
  if (type.shape != wanted)
    throw Error(Code::kShape, format("{}: {} is {}, but {} is needed", op, what, type.shape, wanted))
        .hint(format("give {} the shape {}", what, wanted));
}

void require_dtype(std::string_view op, std::string_view what, const TensorType& type, DType wanted) {
  if (type.dtype != wanted)
    throw Error(Code::kDType, format("{}: {} is {}, but {} is needed", op, what, to_string(type), wanted))
        .hint(format("cast {} to {}", what, wanted));
}

Shape windows_of(std::string_view op, const Window& w, const Shape& x, int64_t channels) {
  if (w.height < 1 || w.width < 1 || w.stride_h < 1 || w.stride_w < 1 || w.dilation_h < 1 || w.dilation_w < 1)
    throw Error(Code::kValue, format("{}: window {}", op, to_string(w)))
        .hint("sizes, strides and dilations start at 1");
  if (w.top < 0 || w.bottom < 0 || w.left < 0 || w.right < 0)
    throw Error(Code::kValue, format("{}: window {}", op, to_string(w)))
        .hint("padding cannot be negative; slice the image instead");
  const int64_t tall = w.dilation_h * (w.height - 1) + 1, wide = w.dilation_w * (w.width - 1) + 1;
  const int64_t height = x[1] + w.top + w.bottom, width = x[2] + w.left + w.right;
  if (tall > height || wide > width)
    throw Error(Code::kShape,
                format("{}: a window of {} x {} does not fit into the image {}, which is {} x {} with its padding", op,
                       tall, wide, x, height, width))
        .hint("use a smaller window, or padding \"same\"");
  return {x[0], w.out_height(x[1]), w.out_width(x[2]), channels};
}

std::vector<TensorType> infer_epilogue(std::string_view op, const Expression& e, const TensorType& full,
                                       std::span<const TensorType> operands) {
  const int64_t cols = full.shape.rank() ? full.shape.back() : 1;
  const int64_t size = full.shape.size(), rows = cols ? size / cols : full.shape.without(-1).size();
  auto refuse = [&](const std::string& why) {
    throw Error(Code::kShape, format("{}: {} in the epilogue \"{}\" over {}", op, why, to_string(e), to_string(full)));
  };
  if (e.inputs.size() != operands.size() + 1 || e.inputs[0] != Extent::kFull)
    refuse(format("{} operands", operands.size()));
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t wanted[] = {size, cols, rows, 1};
    if (operands[i].shape.size() != wanted[int(e.inputs[i + 1])])
      refuse(format("operand {} is {}, but {} elements are needed", i + 1, to_string(operands[i]),
                    wanted[int(e.inputs[i + 1])]));
  }
  if (const std::string why = violation(e); !why.empty()) refuse(why);
  std::vector<TensorType> types;
  for (const Result& r : e.results) {
    switch (r.collect) {
      case Collect::kStore:
        types.push_back(full);
        break;
      case Collect::kSumRows:
        types.push_back({full.dtype, {cols}});
        break;
      case Collect::kSumCols:
        types.push_back({full.dtype, full.shape.without(-1)});
        break;
      case Collect::kSumAll:
        types.push_back({full.dtype, {}});
        break;
    }
  }
  return types;
}

void refuse_gradient(std::string_view op, std::string_view why) {
  throw Error(Code::kUnsupported, format("{}: {}", op, why));
}

Value add_gradients(Builder& b, Value x, Value y) { return !x ? y : !y ? x : add(b, x, y); }

std::vector<int> leading_axes(const Shape& shape) {
  std::vector<int> axes;
  for (int i = 0; i + 1 < shape.rank(); ++i) axes.push_back(i);
  return axes;
}

}  // namespace millpond::ops
