#include "ops/one_hot.h"

#include <cstring>

#include "backend/cpu/copy_kernels.h"
#include "backend/cpu/rows.h"

namespace millpond::backend::cpu {
namespace {

/// The bytes of 1.
uint64_t one(DType t) {
  switch (t) {
    case DType::kFloat32:
      return 0x3f800000;
    case DType::kFloat64:
      return 0x3ff0000000000000;
    case DType::kBFloat16:
      return 0x3f80;
    case DType::kFloat16:
      return 0x3c00;
    default:
      return 1;
  }
}

}  // namespace

std::unique_ptr<Kernel> one_hot(const ops::OneHot& op, const Request& request) {
  const int64_t n = request.inputs[0].shape.size(), element = size_of(op.dtype).value, row = op.depth * element;
  const bool stream = n * row >= kStreamBytes;
  return in_runs(Runs(n, 2 + byte_time(double(row))),
                 [=, depth = op.depth, bits = one(op.dtype), t = request.inputs[0].dtype, k = &copy_kernels()](
                     const Arguments& a, int64_t begin, int64_t end) {
                   std::byte* const y = a.output<std::byte>(0) + begin * row;
                   const Labels l = labels(a, 0, t, begin);
                   k->zero(y, (end - begin) * row, stream);
                   for (int64_t i = 0; i < end - begin; ++i)
                     if (const int64_t c = label_at(l, i); c >= 0 && c < depth)
                       std::memcpy(y + i * row + c * element, &bits, size_t(element));
                 });
}

}  // namespace millpond::backend::cpu
