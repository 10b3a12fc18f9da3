#include <doctest/doctest.h>

#include "train/support.h"

using namespace millpond;

namespace {

struct Told {
  Shape shape;
  int64_t parameters;
  bool operator==(const Told&) const = default;
};
Told told(const Layer& layer, Shape sample, DType dtype = DType::kFloat32) {
  const SymbolicTensor y = layer(Input(sample, dtype));
  return {y.shape(), layer.count_params()};
}
std::ostream& operator<<(std::ostream& out, const Told& t) {
  return out << to_string(t.shape) << " with " << t.parameters;
}

}  // namespace

TEST_CASE("layers: shapes and numbers of parameters are Keras's") {
  CHECK(told(Dense(64, relu), {100}) == Told{{64}, 6464});
  CHECK(told(Dense(7, {.use_bias = false}), {5, 3}) == Told{{5, 7}, 21});
  CHECK(told(Conv2D(32, {3, 3}, relu), {224, 224, 3}) == Told{{222, 222, 32}, 896});
  CHECK(told(Conv2D(8, 3, {.strides = 2, .padding = "same"}), {7, 8, 2}) == Told{{4, 4, 8}, 152});
  CHECK(told(Conv2D(6, {2, 3}, {.dilation_rate = 2, .groups = 2, .use_bias = false}), {9, 9, 4}) ==
        Told{{7, 5, 6}, 72});
  CHECK(told(MaxPooling2D(), {7, 6, 3}) == Told{{3, 3, 3}, 0});
  CHECK(told(MaxPooling2D(3, {.strides = 2, .padding = "same"}), {7, 6, 3}) == Told{{4, 3, 3}, 0});
  CHECK(told(AveragePooling2D({2, 3}), {7, 6, 3}) == Told{{3, 2, 3}, 0});
  CHECK(told(GlobalAveragePooling2D(), {7, 6, 3}) == Told{{3}, 0});
  CHECK(told(GlobalAveragePooling2D({.keepdims = true}), {7, 6, 3}) == Told{{1, 1, 3}, 0});
  CHECK(told(ZeroPadding2D({1, 2}), {4, 5, 3}) == Told{{6, 9, 3}, 0});
  CHECK(told(ZeroPadding2D(1, 0, 2, 3), {4, 5, 3}) == Told{{5, 10, 3}, 0});
  CHECK(told(Flatten(), {4, 5, 3}) == Told{{60}, 0});
  CHECK(told(Reshape({3, -1}), {4, 6}) == Told{{3, 8}, 0});
  CHECK(told(Dropout(0.5), {4, 6}) == Told{{4, 6}, 0});
  CHECK(told(BatchNormalization(), {4, 6}) == Told{{4, 6}, 24});
  CHECK(told(BatchNormalization({.axis = 1, .center = false}), {4, 6}) == Told{{4, 6}, 12});
  CHECK(told(LayerNormalization(), {4, 6}) == Told{{4, 6}, 12});
  CHECK(told(LayerNormalization({.axis = {1, 2}, .scale = false}), {4, 6}) == Told{{4, 6}, 24});
  CHECK(told(Activation("tanh"), {4}) == Told{{4}, 0});
  CHECK(told(ReLU({.max_value = 6.0}), {4}) == Told{{4}, 0});
  CHECK(told(Softmax(1), {4, 3}) == Told{{4, 3}, 0});
  CHECK(told(Embedding(50, 8), {12}, DType::kInt32) == Told{{12, 8}, 400});
}

TEST_CASE("layers: attention has four projections under Keras's names") {
  const Input x({6, 8}), y({5, 7});
  MultiHeadAttention layer(2, 4, {.value_dim = 3, .output_shape = 9});
  CHECK(layer(x, y).shape() == Shape{6, 9});
  CHECK(layer.weight_names() == std::vector<std::string>{"query/kernel", "query/bias", "key/kernel", "key/bias",
                                                         "value/kernel", "value/bias", "attention_output/kernel",
                                                         "attention_output/bias"});
  CHECK(layer.count_params() == (8 * 8 + 8) + (7 * 8 + 8) + (7 * 6 + 6) + (6 * 9 + 9));
}

TEST_CASE("layers: weights have Keras's names and come trainable ones first") {
  BatchNormalization layer;
  layer(Input({3}));
  CHECK(layer.weight_names() == std::vector<std::string>{"gamma", "beta", "moving_mean", "moving_variance"});
  const auto w = layer.get_weights();
  CHECK(flat(w) == std::vector<float>{1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1});
}

TEST_CASE("layers: automatic names count by class as Keras's do") {
  clear_session();
  CHECK(Dense(1).name() == "dense");
  CHECK(Dense(1).name() == "dense_1");
  CHECK(Conv2D(1, 1).name() == "conv2d");
  CHECK(MaxPooling2D().name() == "max_pooling2d");
  CHECK(GlobalAveragePooling2D().name() == "global_average_pooling2d");
  CHECK(BatchNormalization().name() == "batch_normalization");
  CHECK(MultiHeadAttention(1, 1).name() == "multi_head_attention");
  CHECK(ReLU().name() == "re_lu");
  CHECK(Dense(1, {.name = "mine"}).name() == "mine");
  clear_session();
  CHECK(Dense(1).name() == "dense");
}

TEST_CASE("layers: copies share their weights") {
  Dense a(3);
  const Layer b = a;
  a(Input({2}));
  b(Input({2}));
  a.set_weights({uniform({2, 3}, 1), uniform({3}, 2)});
  CHECK(flat(a.get_weights()) == flat(b.get_weights()));
}

TEST_CASE("layers: what does not fit is refused with layer, both sizes and the cure") {
  CHECK(message_of([] { Dense(0); }) == "Dense: units is 0, but must be at least 1");
  Dense dense(3, {.name = "d"});
  dense(Input({4}));
  CHECK(message_of([&] {
          dense(Input({5}));
        }).starts_with("Dense \"d\": a sample of [5] ends in 5 values, but the kernel is for 4"));
  CHECK(message_of([&] {
          Conv2D(3, 3, {.name = "c"})(Input({5, 4}));
        }).starts_with("Conv2D \"c\": wants images [height, width, channels], but a sample has the shape [5, 4]"));
  CHECK(message_of([&] {
          Conv2D(3, 5, {.name = "c"})(Input({4, 9, 1}));
        }).starts_with("Conv2D \"c\": its window covers 5x5 pixels, but images are 4x9"));
  CHECK(message_of([&] {
          Conv2D(3, 1, {.groups = 2, .name = "c"})(Input({4, 9, 4}));
        }).starts_with("Conv2D \"c\": 2 groups do not divide 4 channels and 3 filters"));
  CHECK(message_of([&] {
          Reshape({5, -1}, "r")(Input({4}));
        }).starts_with("Reshape \"r\": a sample of [4] has 4 values, which do not fill [5, -1]"));
  CHECK(message_of([&] { Dropout(1.5); }).starts_with("Dropout: rate is 1.5"));
  CHECK(message_of([&] { Dense(3, "rulu"); }) == "activation \"rulu\" is not known; did you mean relu?");
  CHECK(
      message_of([&] { Dense(3, "cubic"); }).starts_with("activation \"cubic\" is not known; known are linear, relu"));
  CHECK(message_of([&] { Conv2D(3, 3, {.padding = "full"}); }).starts_with("padding \"full\" is not known"));
  CHECK(message_of([&] {
          Concatenate(-1, "c")({Input({3, 4}), Input({2, 4})});
        }).starts_with("Concatenate \"c\": samples of [3, 4] and [2, 4] differ elsewhere"));
  CHECK(message_of([&] { Add("a")({Input({3, 4})}); }).starts_with("Add \"a\" needs at least two tensors"));
  CHECK(message_of([&] {
          MultiHeadAttention(2, 3, {.name = "m"})(Input({3, 4}));
        }).starts_with("MultiHeadAttention \"m\" is called on 1 tensors"));
  CHECK(message_of([&] {
          Dense(int64_t{1} << 40)(Dense(int64_t{1} << 40)(Input({3})));
        }).find("more than any machine holds") != std::string::npos);
}
