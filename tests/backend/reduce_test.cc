#include <doctest/doctest.h>

#include "ops/reduce.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Reduce;
using Kind = ops::Reduce::Kind;

TEST_CASE("cpu reduce: agrees with the reference over any axes") {
  for (int rank = 1; rank <= 4; ++rank)
    for (const Shape& s : awkward_shapes(rank))
      for (int mask = 1; mask < 1 << rank; ++mask) {
        std::vector<int> axes;
        double n = 1;
        for (int i = 0; i < rank; ++i)
          if (mask >> i & 1) axes.push_back(i), n *= double(s[i]);
        for (Kind k : {Kind::kSum, Kind::kMean, Kind::kMax})
          check_twin(cpu_backend(), Reduce(k, axes, mask % 2), {random(s, 7)}, k == Kind::kMax ? exact() : terms(n));
      }
}

TEST_CASE("cpu reduce: whole numbers and other floating types agree") {
  for (DType t : {DType::kFloat64, DType::kBFloat16, DType::kInt32, DType::kInt64})
    check_twin(cpu_backend(), Reduce(Kind::kSum, {0}, false), {random({40, 17}, 1, t, 0, 9)}, exact());
  check_twin(cpu_backend(), Reduce(Kind::kMax, {1}, false), {random({40, 17}, 1, DType::kBool, 0, 2)}, exact());
}

}  // namespace millpond::test
