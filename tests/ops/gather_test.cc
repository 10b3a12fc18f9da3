#include <doctest/doctest.h>

#include "ops/gather.h"
#include "ops/scatter_add.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

TEST_CASE("gather: takes rows by index, of any integer type, and clamps what is out of range") {
  const Tensor table = values({3, 2}, {0, 1, 10, 11, 20, 21});
  for (DType t : {DType::kInt32, DType::kInt64, DType::kUInt8})
    CHECK(list(run_operator(reference_backend(), ops::Gather(), {table, values({3}, {2, 0, 7}, t)})[0]) ==
          std::vector<double>{20, 21, 0, 1, 20, 21});
}

TEST_CASE("scatter_add: adds every row at its index and leaves zeros elsewhere") {
  const Tensor index = values({2, 2}, {1, 1, 3, 1}, DType::kInt32), rows = values({2, 2, 1}, {1, 2, 4, 8});
  CHECK(list(run_operator(reference_backend(), ops::ScatterAdd(4), {index, rows})[0]) ==
        std::vector<double>{0, 11, 0, 4});
}

TEST_CASE("gather and scatter_add are each other's gradient") {
  const Tensor index = values({2, 3}, {1, 0, 1, 3, 1, 0}, DType::kInt32);
  check_gradients(ops::Gather(), {random({4, 2}, 1), index});
  check_gradients(ops::ScatterAdd(4), {index, random({2, 3, 2}, 2)});
}

TEST_CASE("gather: a floating index and rows that do not go with their index are refused") {
  CHECK(refusal_of(ops::Gather(), {type({4, 2}), type({3})}) ==
        "gather: index is float32[3], but whole numbers are needed; cast index to int32 first");
  CHECK(refusal_of(ops::ScatterAdd(4), {type({3}, DType::kInt32), type({2, 5})}) ==
        "scatter_add: rows [2, 5] do not go with index [3]; rows have the shape of index and one more dimension, the "
        "width");
}

}  // namespace millpond::test
