#include "nn/confusion.h"

#include "base/format.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace millpond::nn {

Confusion confusion(graph::Builder& b, const std::string& metric, graph::Value y, graph::Value prediction,
                    const std::vector<double>& limits, double scale) {
  match_ranks(b, y, prediction);
  const int64_t n = prediction.shape().size(), count = int64_t(limits.size());
  if (y.shape().size() != n)
    throw Error(Code::kShape,
                format("{}: labels are {}, but predictions are {}", metric, y.shape(), prediction.shape()));
  Tensor row(DType::kFloat32, {1, count}, "constants");
  for (int64_t i = 0; i < count; ++i) row.values<float>()[i] = float(limits[size_t(i)]);
  const Value label = ops::cast(b, ops::cast(b, ops::reshape(b, y, {n, 1}), DType::kBool), DType::kFloat32);
  Value p = ops::cast(b, ops::reshape(b, prediction, {n, 1}), DType::kFloat32);
  if (scale != 1) p = ops::multiply(b, p, scale);
  const Value above = ops::cast(b, ops::greater(b, p, b.constant(row, metric + " thresholds")), DType::kFloat32);
  // A batch's counts are whole numbers in float32 (exact up to 2^24 samples a batch); what is kept is an int64.
  const auto whole = [&](Value v, int64_t size) { return ops::cast(b, ops::reshape(b, v, {size}), DType::kInt64); };
  const Value right = ops::sum(b, ops::multiply(b, above, label), {0}), all = ops::sum(b, above, {0}),
              positives = ops::sum(b, label);
  return {whole(right, count), whole(ops::subtract(b, all, right), count), whole(positives, 1),
          whole(ops::subtract(b, b.scalar(DType::kFloat32, double(n)), positives), 1)};
}

}  // namespace millpond::nn
