// Building with dimensions that are None: which of them a layer needs, and what it gives.
#include <doctest/doctest.h>

#include "train/support.h"

using namespace millpond;

TEST_CASE("None: a layer's weights need their dimensions, and the refusal names the layer and what a sample is") {
  CHECK(message_of([] { Dense(4, {.name = "d"})(Flatten()(Input({None, 3}))); }) ==
        "Dense \"d\": its weights need to know the last dimension of a sample, but that has the shape [None]; give "
        "Input a "
        "shape without None there, or put a layer in front whose result does not depend on it, such as "
        "GlobalAveragePooling2D");
  const auto needs = [](auto&& call) { return message_of(call).find("its weights need to know") != std::string::npos; };
  CHECK(needs([] { Conv2D(4, {3, 3}, {.groups = 2})(Input({8, 8, None})); }));
  CHECK(needs([] { LSTM(4)(Input({8, None})); }));
  CHECK(needs([] { BatchNormalization({.axis = 1})(Input({None, 3})); }));
  CHECK(needs([] { LayerNormalization({.axis = {1, 2}})(Input({None, 3})); }));
  CHECK(needs([] { MultiHeadAttention(2, 3)(Input({5, None}), Input({5, 3})); }));
}

TEST_CASE("None: a result is known where the unknown does not reach it") {
  const Input words({None}, DType::kInt32), rows({None, 6}), images({None, None, 3});
  CHECK(Embedding(5, 4)(words).shape() == Shape{None, 4});
  CHECK(Dense(2)(rows).shape() == Shape{None, 2});
  CHECK(LSTM(3)(rows).shape() == Shape{3});
  CHECK(Reshape({-1, 3})(rows).shape() == Shape{None, 3});
  CHECK(MultiHeadAttention(2, 3)(rows, rows, {.use_causal_mask = true}).shape() == Shape{None, 6});
  CHECK(Conv2D(5, {3, 3}, {.padding = "same"})(images).shape() == Shape{None, None, 5});
  CHECK(GlobalAveragePooling2D()(images).shape() == Shape{3});
  CHECK(Concatenate(1)({rows, Input({4, 6})}).shape() == Shape{None, 6});
  CHECK(Concatenate()({rows, rows}).shape() == Shape{None, 12});
  CHECK(Add()({rows, rows}).shape() == Shape{None, 6});
  // What it must be beside a known one it is, so that the sum has a shape.
  CHECK(Add()({rows, Input({7, 6})}).shape() == Shape{7, 6});
  CHECK(Concatenate()({rows, Input({7, 2})}).shape() == Shape{7, 8});
  // A model with unknown dimensions is a layer too.
  Sequential inner{Input({None, 6}), Dense(4)};
  CHECK(Layer(inner)(Input({9, 6})).shape() == Shape{9, 4});
  CHECK(Layer(inner)(rows).shape() == Shape{None, 4});
}

TEST_CASE("None: what can never fit is refused when it is written, with what was tried") {
  const std::string text = message_of([] { Add()({Input({None, 5}), Input({None, 6})}); });
  CHECK(text.find("do not broadcast: 5 against 6") != std::string::npos);
  CHECK(message_of([] {
          Add()({Input({None, 5}), Input({None, 6})});
        }).find("samples of [None, 5] and [None, 6], with 480 for None") != std::string::npos);
  CHECK(message_of([] { Input({-2}); }) == "dimension 0 of a shape is -2");
  CHECK(message_of([] { (void)Shape{None, 3}.size(); }) ==
        "the shape [None, 3] has no number of elements: not all of it is known");
  CHECK(message_of([] { Tensor(DType::kFloat32, Shape{None, 3}); }).find("not all of it is known") !=
        std::string::npos);
}

TEST_CASE("None: goes through JSON as null, both ways") {
  Sequential model{Input({None, 6}), Dense(4), LSTM(3)};
  const std::string json = model.to_json();
  CHECK(json.find("[null,null,6]") != std::string::npos);
  const Model again = model_from_json(json);
  CHECK(again.inputs()[0].shape() == Shape{None, 6});
  CHECK(again.to_json() == json);
}
