#include <doctest/doctest.h>

#include "ops/dropout.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

namespace {
Tensor drop(double rate, int counter, uint64_t salt = 7, int64_t n = 10000) {
  Tensor ones(DType::kFloat32, {n});
  for (float& f : ones.values<float>()) f = 1;
  return run_operator(reference_backend(), ops::Dropout(rate, salt),
                      {ones, values({}, {double(counter)}, DType::kInt32)})[0];
}
int kept(const Tensor& t) {
  int n = 0;
  for (float f : t.values<float>()) n += f != 0;
  return n;
}
}  // namespace

TEST_CASE("dropout: keeps about 1 - rate, scales what is kept, and differs with salt and counter only") {
  CHECK(kept(drop(0, 1)) == 10000);
  CHECK(kept(drop(0.25, 1)) == doctest::Approx(7500).epsilon(0.03));
  for (double f : list(drop(0.2, 3))) CHECK((f == 0 || f == 1.25));
  CHECK(list(drop(0.5, 1)) == list(drop(0.5, 1)));
  CHECK(list(drop(0.5, 1)) != list(drop(0.5, 2)));
  CHECK(list(drop(0.5, 1)) != list(drop(0.5, 1, 8)));
}

TEST_CASE("dropout: its gradient is itself with the same counter") {
  check_gradients(ops::Dropout(0.4, 3), {random({4, 5}), values({}, {17}, DType::kInt32)});
}

TEST_CASE("dropout: a rate of 1 is refused") {
  CHECK(refusal_of(ops::Dropout(1, 0), {type({2}), type({}, DType::kInt32)}) ==
        "dropout: a rate of 1; a rate is the share that is dropped: 0 <= rate < 1");
  CHECK(refusal_of(ops::Dropout(0.1, 0), {type({2}), type({}, DType::kInt64)}) ==
        "dropout: counter is int64[], but int32 is needed; cast counter to int32");
}

}  // namespace millpond::test
