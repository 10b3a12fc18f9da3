#include <doctest/doctest.h>

#include "ops/broadcast_to.h"
#include "ops/concatenate.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/transpose.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

namespace {
std::vector<double> run(const graph::Operator& op, const std::vector<Tensor>& x) {
  return list(run_operator(reference_backend(), op, x)[0]);
}
const std::vector<double> kSix{1, 2, 3, 4, 5, 6};
}  // namespace

TEST_CASE("shapes: copies land where they should") {
  const Tensor x = values({2, 3}, kSix);
  CHECK(run(ops::Reshape({3, 2}), {x}) == kSix);
  CHECK(run(ops::Transpose({1, 0}), {x}) == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(run(ops::Slice({0, 1}, {2, 2}), {x}) == std::vector<double>{2, 3, 5, 6});
  CHECK(run(ops::Pad({0, 1}, {1, 0}, 9), {x}) == std::vector<double>{9, 1, 2, 3, 9, 4, 5, 6, 9, 9, 9, 9});
  CHECK(run(ops::BroadcastTo({2, 2, 3}), {values({2, 1}, {1, 2})}) ==
        std::vector<double>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  CHECK(run(ops::Concatenate(1), {x, values({2, 1}, {8, 9})}) == std::vector<double>{1, 2, 3, 8, 4, 5, 6, 9});
}

TEST_CASE("shapes: every dtype is copied") {
  for (DType t : kAllDTypes) {
    const Tensor x = values({2, 2}, {0, 1, 1, 0}, t);
    CHECK(run(ops::Transpose({1, 0}), {x}) == std::vector<double>{0, 1, 1, 0});
    CHECK(run(ops::Concatenate(0), {x, x}).size() == 8);
    CHECK(run(ops::Pad({1, 0}, {0, 0}, 1), {x}) == std::vector<double>{1, 1, 0, 1, 1, 0});
  }
}

TEST_CASE("shapes: gradients agree with finite differences") {
  check_gradients(ops::Reshape({6}), {random({2, 3})});
  check_gradients(ops::Transpose({2, 0, 1}), {random({2, 3, 4})});
  check_gradients(ops::Slice({1, 0, 2}, {1, 3, 2}), {random({2, 3, 4})});
  check_gradients(ops::Pad({1, 0}, {0, 2}, 3), {random({2, 3})});
  check_gradients(ops::BroadcastTo({4, 2, 3}), {random({2, 1})});
  check_gradients(ops::Concatenate(1), {random({2, 3}, 1), random({2, 1}, 2), random({2, 2}, 3)});
}

TEST_CASE("shapes: what does not fit is refused with sizes and the cure") {
  CHECK(refusal_of(ops::Reshape({4}), {type({2, 3})}) ==
        "reshape: x [2, 3] has 6 elements, but [4] has 4; the number of elements must stay");
  CHECK(refusal_of(ops::Transpose({0, 0}), {type({2, 3})}) ==
        "transpose: [0, 0] is not an order of the 2 dimensions of x [2, 3]; name every dimension once");
  CHECK(refusal_of(ops::Slice({1}, {3}), {type({3})}) ==
        "slice: [3] from [1] on is not inside x [3]; start + size may not pass the end of any dimension");
  CHECK(refusal_of(ops::Pad({-1}, {0}, 0), {type({3})}) ==
        "pad: [-1] before and [0] after x [3]; give 1 numbers each, none negative");
  CHECK(refusal_of(ops::BroadcastTo({3, 4}), {type({3})}) ==
        "broadcast_to: x [3] does not broadcast to [3, 4]; every dimension of x must be 1 or equal, counted from the "
        "end");
  CHECK(refusal_of(ops::Concatenate(0), {type({2, 3}), type({2, 4})}) ==
        "concatenate: [2, 3] and [2, 4] along axis 0; all other dimensions must be equal");
}

TEST_CASE("shapes: what changes nothing adds no node") {
  graph::Graph g;
  graph::Builder b(g);
  const Value x = b.input("x", type({2, 3}));
  CHECK(ops::reshape(b, x, {2, 3}) == x);
  CHECK(ops::broadcast_to(b, x, {2, 3}) == x);
}

}  // namespace millpond::test
