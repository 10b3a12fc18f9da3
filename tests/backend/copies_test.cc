#include <doctest/doctest.h>

#include "ops/argmax.h"
#include "ops/assign.h"
#include "ops/broadcast_to.h"
#include "ops/concatenate.h"
#include "ops/gather.h"
#include "ops/one_hot.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/scatter_add.h"
#include "ops/slice.h"
#include "ops/transpose.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;

TEST_CASE("cpu copies: agree to the bit for every dtype and awkward shape") {
  for (DType t : kAllDTypes)
    for (const Shape& s : awkward_shapes(2)) {
      const Tensor x = random(s, 1, t, 0, 200);
      check_twin(cpu_backend(), ops::Reshape({s.size()}), {x}, exact());
      check_twin(cpu_backend(), ops::Assign(), {x, random(s, 2, t, 0, 200)}, exact());
      check_twin(cpu_backend(), ops::Transpose({1, 0}), {x}, exact());
      check_twin(cpu_backend(), ops::Pad({1, 0}, {2, 3}, 1), {x}, exact());
      check_twin(cpu_backend(), ops::Slice({s[0] / 3, s[1] / 2}, {s[0] / 2, s[1] - s[1] / 2}), {x}, exact());
      check_twin(cpu_backend(), ops::BroadcastTo({3, s[0], s[1]}), {x}, exact());
      check_twin(cpu_backend(), ops::BroadcastTo({s[0], 5, s[1]}), {x.reshaped({s[0], 1, s[1]})}, exact());
      check_twin(cpu_backend(), ops::Concatenate(0), {x, x}, exact());
      check_twin(cpu_backend(), ops::Concatenate(1), {x, random({s[0], 5}, 3, t, 0, 200), x}, exact());
    }
}

TEST_CASE("cpu copies: more than two dimensions") {
  const Tensor x = random({3, 5, 7, 9}, 1);
  for (const std::vector<int>& order :
       {std::vector<int>{3, 2, 1, 0}, {0, 2, 1, 3}, {1, 0, 3, 2}, {0, 1, 2, 3}, {2, 3, 0, 1}})
    check_twin(cpu_backend(), ops::Transpose(order), {x}, exact());
  check_twin(cpu_backend(), ops::Slice({1, 0, 2, 3}, {2, 5, 3, 4}), {x}, exact());
  check_twin(cpu_backend(), ops::Pad({0, 1, 2, 0}, {1, 0, 2, 3}, -1), {x}, exact());
  check_twin(cpu_backend(), ops::Concatenate(2), {x, x, random({3, 5, 1, 9}, 2)}, exact());
  check_twin(cpu_backend(), ops::BroadcastTo({4, 5, 6, 7}), {random({5, 1, 7}, 4)}, exact());
}

TEST_CASE("cpu argmax, one_hot, gather, scatter_add: agree to the bit") {
  for (const Shape& s : awkward_shapes(2)) {
    if (s[1]) check_twin(cpu_backend(), ops::ArgMax(), {random(s, 1)}, exact());
    if (s[1]) check_twin(cpu_backend(), ops::ArgMax(), {random(s, 1, DType::kInt32, 0, 4)}, exact());  // with ties
    if (s[0] == 0) continue;
    for (DType t : {DType::kInt32, DType::kInt64, DType::kUInt8}) {
      const Tensor index =
          random({6, 11}, 2, t, 0, double(std::min<int64_t>(s[0] + 2, 250)));  // two of them out of range
      check_twin(cpu_backend(), ops::Gather(), {random(s, 3), index}, exact());
      check_twin(cpu_backend(), ops::ScatterAdd(s[0]), {index, random({6, 11, s[1]}, 4)}, exact());
      check_twin(cpu_backend(), ops::OneHot(s[0], DType::kFloat32), {index}, exact());
    }
  }
}

}  // namespace millpond::test
