// Values, shapes and dtypes of eager tensors against what NumPy and Keras give.
#include <sstream>

#include "eager/support.h"
#include "millpond/eager.h"

using namespace millpond;

TEST_CASE("arithmetic broadcasts, and numbers take the dtype of the tensor") {
  const EagerTensor x({{1, 2, 3}, {4, 5, 6}}), row({10, 20, 30});
  check_near(x + row, {11, 22, 33, 14, 25, 36});
  check_near(row - x, {9, 18, 27, 6, 15, 24});
  check_near(2 * x / 4, {0.5, 1, 1.5, 2, 2.5, 3});
  check_near(1 - x, {0, -1, -2, -3, -4, -5});
  check_near(-x, {-1, -2, -3, -4, -5, -6});
  check_near(x % 4, {1, 2, 3, 0, 1, 2});
  check_near(tensor({3}, {-7, 7, -8}, DType::kInt32) % 3, {2, 1, 1});
  check_near(ops::floor_divide(tensor({3}, {-7, 7, -8}, DType::kInt32), 3), {-3, 2, -3});
  check_near(ops::maximum(x, 3), {3, 3, 3, 4, 5, 6});
  check_near(ops::power(x, 2), {1, 4, 9, 16, 25, 36});
  check_near(ops::power(tensor({2}, {2, 3}, DType::kInt32), 5), {32, 243});
  EagerTensor sum = x;
  sum += 1;
  check_near(sum, {2, 3, 4, 5, 6, 7});
  check_near(x, {1, 2, 3, 4, 5, 6});
  CHECK(message_of([&] { return x + EagerTensor({1, 2}); }).find("[2, 3]") != std::string::npos);
}

TEST_CASE("comparison and logic") {
  const EagerTensor x({1, 2, 3}), y({3, 2, 1});
  check_near(x < y, {1, 0, 0});
  check_near(x <= y, {1, 1, 0});
  check_near(x > 2, {0, 0, 1});
  check_near(2 >= x, {1, 1, 0});
  check_near(x == y, {0, 1, 0});
  check_near(x != y, {1, 0, 1});
  check_near((x < y) | (x > y), {1, 0, 1});
  check_near((x <= y) & (x >= y), {0, 1, 0});
  check_near(~(x == y), {1, 0, 1});
  CHECK((x < y).dtype() == DType::kBool);
  check_near(~tensor({2}, {0, 5}, DType::kInt8), {-1, -6});
  check_near(~tensor({2}, {0, 5}, DType::kUInt8), {255, 250});
  check_near(tensor({2}, {6, 5}, DType::kInt32) & 3, {2, 1});
  check_near(ops::where(x > 1, x, 0), {0, 2, 3});
  check_near(ops::logical_and(x - 1, y - 1), {0, 1, 0});
  CHECK(double(ops::all(x > 0)) == 1);
  CHECK(double(ops::any(x > 3)) == 0);
}

TEST_CASE("one value is true or false, several are neither") {
  const EagerTensor x({1, 2});
  CHECK(bool(x[0] < x[1]));
  CHECK_FALSE(bool(x[0] == x[1]));
  CHECK(bool(ops::all(x == x)));
  CHECK(message_of([&] { return bool(x == x); }) ==
        "a tensor of shape [2] is neither true nor false: it has 2 values; ask ops::all(x) or ops::any(x); is_none() "
        "tells "
        "whether there is one");
}

TEST_CASE("dtypes meet where Keras says") {
  using enum DType;
  // keras.backend.result_type of Keras 3 on TensorFlow, for every pair in the order of kAllDTypes; then with True, 1 and
  // 1.0. One letter each: "fdbhcsilCSIL?". Keras makes uint32 of uint64, which loses values: here it stays.
  constexpr std::string_view kLetters = "fdbhcsilCSIL?";
  constexpr const char* kKeras[] = {"fdfffffffffff fff", "ddddddddddddd ddd", "fdbfbbbbbbbbb bbb", "fdfhhhhhhhhhh hhh",
                                    "fdbhcsilsilfc ccf", "fdbhssilsilfs ssf", "fdbhiiiliilfi iif", "fdbhlllllllfl llf",
                                    "fdbhssilCSILC CCf", "fdbhiiilSSILS SSf", "fdbhllllIIILI IIf", "fdbhffffLLLLL LLf",
                                    "fdbhcsilCSIL? ?if"};
  for (size_t i = 0; i < kAllDTypes.size(); ++i) {
    CAPTURE(to_string(kAllDTypes[i]));
    for (size_t j = 0; j < kAllDTypes.size(); ++j) {
      CAPTURE(to_string(kAllDTypes[j]));
      CHECK(kLetters[size_t(result_type(kAllDTypes[i], kAllDTypes[j]))] == kKeras[i][j]);
    }
    const EagerTensor x = ops::ones({1}, kAllDTypes[i]);
    CHECK(kLetters[size_t(ops::maximum(x, true).dtype())] == kKeras[i][14]);
    CHECK(kLetters[size_t(ops::maximum(x, 1).dtype())] == kKeras[i][15]);
    CHECK(kLetters[size_t(ops::maximum(x, 1.0).dtype())] == kKeras[i][16]);
  }
  const EagerTensor whole = tensor({2}, {1, 2}, kInt32), half = tensor({2}, {1, 2}, kFloat16);
  CHECK((whole + 1).dtype() == kInt32);
  CHECK((whole + 1.5).dtype() == kFloat32);
  CHECK((whole / whole).dtype() == kFloat32);
  CHECK((half * 2.5).dtype() == kFloat16);
  CHECK((half + whole).dtype() == kFloat16);
  CHECK((tensor({2}, {1, 0}, kBool) + 1).dtype() == kInt32);
  CHECK((tensor({2}, {1, 2}, kUInt8) + 1).dtype() == kUInt8);
  CHECK(ops::exp(whole).dtype() == kFloat32);
  CHECK(ops::mean(whole).dtype() == kFloat32);
  CHECK(ops::sum(tensor({2}, {1, 0}, kBool)).dtype() == kInt32);
  CHECK(ops::sum(tensor({2}, {200, 100}, kUInt8)).dtype() == kUInt32);
  CHECK(double(ops::sum(tensor({2}, {200, 100}, kUInt8))) == 300);
}

TEST_CASE("indices and slices are NumPy's") {
  const EagerTensor x = ops::reshape(ops::arange(0, 24), {2, 3, 4});
  CHECK(x[1].shape() == Shape{3, 4});
  check_near(x[{1, 2}], {20, 21, 22, 23});
  check_near(x[{-1, -1, -1}], {23});
  CHECK(x[{1, 2, 3}].shape() == Shape{});
  check_near(x[{0, Slice{1, 3}, 0}], {4, 8});
  check_near(x[{Slice{}, 0, Slice{-2}}], {2, 3, 14, 15});
  check_near(x[{ellipsis, 1}], {1, 5, 9, 13, 17, 21});
  CHECK(x[{newaxis, ellipsis, newaxis}].shape() == Shape{1, 2, 3, 4, 1});
  check_near(x[{0, 0, Slice{.step = -1}}], {3, 2, 1, 0});
  check_near(x[{0, 0, Slice{.step = 2}}], {0, 2});
  check_near(x[{0, 0, Slice{3, 0, -2}}], {3, 1});
  check_near(x[{0, Slice{.step = 2}, Slice{1, 100, 2}}], {1, 3, 9, 11});
  CHECK(x[{Slice{5, 9}}].shape() == Shape{0, 3, 4});
  CHECK(x[{0, Slice{2, 1}}].shape() == Shape{0, 4});
  CHECK(message_of([&] { return x[2]; }) ==
        "[]: index 2 of dimension 0 of a tensor of shape [2, 3, 4]; it has 2 there");
  CHECK(message_of([&] { return x[{0, 0, 0, 0}]; }) ==
        "[]: 4 indices for a tensor of shape [2, 3, 4]; it has 3 dimensions");
}

TEST_CASE("reductions") {
  const EagerTensor x({{1, 5, 3}, {4, 2, 6}});
  CHECK(double(ops::sum(x)) == 21);
  check_near(ops::sum(x, {0}), {5, 7, 9});
  CHECK(ops::sum(x, {-1}, true).shape() == Shape{2, 1});
  check_near(ops::mean(x, {1}), {3, 4});
  check_near(ops::max(x, {1}), {5, 6});
  check_near(ops::min(x, {0}), {1, 2, 3});
  check_near(ops::min(tensor({3}, {7, 3, 9}, DType::kUInt8)), {3});
  check_near(ops::var(x), {17.5 / 6});
  check_near(ops::argmax(x), {1, 2});
  check_near(ops::argmax(x, 0), {1, 0, 1});
  check_near(ops::argmin(x), {0, 1});
  check_near(ops::norm(EagerTensor({3, 4})), {5});
  check_near(ops::logsumexp(x, {1}),
             {std::log(std::exp(1) + std::exp(5) + std::exp(3)), std::log(std::exp(4) + std::exp(2) + std::exp(6))});
  check_near(ops::sum(ops::softmax(x, 0), {0}), {1, 1, 1});
  CHECK(message_of([&] { return ops::sum(x, {2}); }) == "sum: axis 2 of a tensor of shape [2, 3]; it has 2 dimensions");
}

TEST_CASE("products, shapes, rows by number") {
  const EagerTensor x({{1, 2}, {3, 4}}), v({1, 10});
  check_near(ops::matmul(x, x), {7, 10, 15, 22});
  check_near(ops::matmul(x, v), {21, 43});
  check_near(ops::matmul(v, x), {31, 42});
  check_near(ops::matmul(v, v), {101});
  CHECK(ops::matmul(v, v).shape() == Shape{});
  check_near(ops::matmul(ops::cast(x, DType::kInt32), ops::cast(x, DType::kInt32)), {7, 10, 15, 22});
  check_near(ops::transpose(x), {1, 3, 2, 4});
  CHECK(ops::reshape(x, {-1}).shape() == Shape{4});
  CHECK(ops::expand_dims(x, -1).shape() == Shape{2, 2, 1});
  CHECK(ops::squeeze(ops::ones({1, 3, 1})).shape() == Shape{3});
  check_near(ops::concatenate({x, x}, 1), {1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(ops::stack({v, v, v}).shape() == Shape{3, 2});
  CHECK(ops::stack({v, v, v}, -1).shape() == Shape{2, 3});
  check_near(ops::take(x, tensor({3}, {1, 0, -1}, DType::kInt32)), {3, 4, 1, 2, 3, 4});
  check_near(ops::take(x, tensor({2}, {1, 1}, DType::kInt64), 1), {2, 2, 4, 4});
  check_near(ops::flip(v, 0), {10, 1});
  check_near(ops::one_hot(tensor({2}, {2, 0}, DType::kInt32), 3), {0, 0, 1, 1, 0, 0});
  CHECK(message_of([&] { return ops::take(x, tensor({1}, {2}, DType::kInt32)); }) ==
        "take: index 2 of a tensor of shape [2, 2] along axis 0; it has 2 there");
}

TEST_CASE("values come from spans and go into them, and print like NumPy's") {
  const std::vector<int64_t> whole{1, 2, 3};
  const EagerTensor x = EagerTensor::of(whole, {3});
  CHECK(x.dtype() == DType::kInt64);
  std::vector<int64_t> back(3);
  x.copy_to(std::span(back));
  CHECK(back == whole);
  std::vector<float> wrong(3);
  CHECK(message_of([&] {
          x.copy_to(std::span(wrong));
          return 0;
        }) == "copy_to: the tensor is int64[3], but the span is of float32; cast it first");
  CHECK(to_string(EagerTensor({{1, 2.5}, {-3, 1e10}})) == "[[1, 2.5],\n [-3, 1e+10]] float32[2, 2]");
  CHECK(to_string(x > 1) == "[False, True, True] bool[3]");
  CHECK(to_string(EagerTensor()) == "None");
  CHECK(to_string(ops::arange(0, 2000)) == "[0, 1, 2, ..., 1997, 1998, 1999] int32[2000]");
  std::ostringstream out;
  out << EagerTensor::scalar(1.5);
  CHECK(out.str() == "1.5 float32[]");
  CHECK(message_of([&] { return x.item(); }).starts_with("item: a tensor of shape [3] has 3 values, not one"));
  CHECK(message_of([&] { return EagerTensor() + 1; }) ==
        "+: an EagerTensor is none; a gradient is none where the target does not depend on the source: ask is_none()");
}

TEST_CASE("bytes go back to the pool with the last handle") {
  const Bytes before = eager_memory().used;
  {
    EagerTensor x = ops::zeros({1000, 1000});
    CHECK((eager_memory().used - before).value >= 4000000);
    const EagerTensor same = x, row = x[0], flat = ops::reshape(x, {1000000});
    x = EagerTensor();
    CHECK((eager_memory().used - before).value >= 4000000);  // others have it still
  }
  CHECK(eager_memory().used == before);
  CHECK(eager_memory().idle <= eager_memory().bound);
}
