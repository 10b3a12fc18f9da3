#include <doctest/doctest.h>

#include "train/support.h"

using namespace millpond;

namespace {
// As Keras 3.15 writes it, without what it may leave out.
const std::string kSequential =
    R"({"module": "keras", "class_name": "Sequential", "config": {"name": "sequential", "trainable": true, "dtype": {"module": "keras",
 "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null}, "layers": [
 {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 8, 8, 3], "dtype": "float32", "sparse": false, "ragged": false, "name": "input_layer"}, "registered_name": null},
 {"module": "keras.layers", "class_name": "Conv2D", "config": {"name": "conv2d", "trainable": true, "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}},
  "filters": 4, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same", "data_format": "channels_last", "dilation_rate": [1, 1], "groups": 1, "activation": "relu", "use_bias": true,
  "kernel_initializer": {"module": "keras.initializers", "class_name": "GlorotUniform", "config": {"seed": null}, "registered_name": null},
  "bias_initializer": {"module": "keras.initializers", "class_name": "Zeros", "config": {}, "registered_name": null}, "kernel_regularizer": null, "kernel_constraint": null}, "registered_name": null},
 {"module": "keras.layers", "class_name": "Flatten", "config": {"name": "flatten", "data_format": "channels_last"}},
 {"module": "keras.layers", "class_name": "Dense", "config": {"name": "dense", "trainable": false, "units": 2, "activation": "softmax"}}]}})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}
/// What it is refused with. A model that is not refused has a JSON of its own, which makes the same JSON again.
std::string refusal(const std::string& json) {
  std::string text;
  const std::string message = message_of([&] { text = model_from_json(json).to_json(); });
  if (!text.empty()) CHECK(model_from_json(text).to_json() == text);
  return message;
}
}  // namespace

TEST_CASE("config: a Sequential of Keras becomes the same model") {
  const Model model = model_from_json(kSequential);
  CHECK(model.name() == "sequential");
  CHECK(model.count_params() == 3 * 3 * 3 * 4 + 4 + 64 * 2 + 2);
  CHECK(model.outputs()[0].shape() == Shape{2});
  CHECK(model.get_layer("dense").trainable() == false);
  CHECK(model.get_layer("conv2d").trainable() == true);
}

TEST_CASE("config: layers and options that are not here are named") {
  CHECK(refusal(with(kSequential, "\"Flatten\"", "\"GRU\""))
            .starts_with("layer GRU \"flatten\" is not here yet; known are Activation, Add"));
  CHECK(refusal(with(kSequential, "\"kernel_regularizer\": null", "\"kernel_regularizer\": {\"class_name\": \"L2\"}"))
            .starts_with("Conv2D \"conv2d\": kernel_regularizer = {\"class_name\":\"L2\"} is not here yet"));
  CHECK(refusal(with(kSequential, "\"units\": 2", "\"units\": 2, \"flavour\": 3"))
            .starts_with("Dense \"dense\": flavour = 3 is not here yet"));
  CHECK(refusal(with(kSequential, "\"activation\": \"relu\"", "\"activation\": \"mish\""))
            .starts_with("Conv2D \"conv2d\": activation is \"mish\", but must be one of linear, relu"));
  CHECK(refusal(with(kSequential, "\"activation\": \"relu\"", "\"activation\": \"rulu\""))
            .ends_with("; did you mean relu?"));
  CHECK(refusal(with(kSequential, "\"data_format\": \"channels_last\", \"dil",
                     "\"data_format\": \"channels_first\", \"dil"))
            .starts_with("Conv2D \"conv2d\": data_format = \"channels_first\""));
  CHECK(refusal(with(kSequential, "[null, 8, 8, 3]", "[null, null, 8, 3]"))
            .starts_with("Dense \"dense\": its weights need to know the last dimension of a sample, but that has the "
                         "shape [None]"));
  CHECK(refusal(with(kSequential, "\"class_name\": \"Sequential\"", "\"class_name\": \"MyModel\""))
            .starts_with("a model of class MyModel is not here yet"));
}

TEST_CASE("config: text that is no model is refused, however it is broken") {
  CHECK(refusal("").starts_with("this is not the JSON of a Keras model"));
  CHECK(refusal("{}").starts_with("this is not the JSON of a Keras model"));
  CHECK(refusal(std::string(100000, '[')).find("nest more than") != std::string::npos);
  CHECK(refusal(with(kSequential, "\"units\": 2", "\"units\": -2")) != "");
  CHECK(refusal(with(kSequential, "\"units\": 2", "\"units\": 2e300")) != "");
  CHECK(refusal(with(kSequential, "\"units\": 2", "\"units\": [2]")) != "");
  CHECK(refusal(with(kSequential, "[null, 8, 8, 3]", "[null, 2000000000, 2000000000, 2000000000]")) != "");
  // Cut at every place, and with every byte changed: an Error each time, or a model.
  for (size_t i = 0; i < kSequential.size(); i += 3) {
    refusal(kSequential.substr(0, i));
    std::string changed = kSequential;
    changed[i] = char(changed[i] ^ (1 << (i % 7)));
    refusal(changed);
  }
}

TEST_CASE("config: a functional model that depends on itself, or on nothing, is refused") {
  const auto functional = [](const std::string& from) {
    return R"({"class_name": "Functional", "config": {"name": "f", "layers": [
      {"class_name": "InputLayer", "config": {"batch_shape": [null, 4], "dtype": "float32", "name": "in"}, "name": "in", "inbound_nodes": []},
      {"class_name": "Dense", "config": {"name": "a", "units": 4}, "name": "a", "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": [")" +
           from + R"(", 0, 0]}}], "kwargs": {"training": null}}]},
      {"class_name": "Dense", "config": {"name": "b", "units": 2}, "name": "b", "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": ["a", 0, 0]}}], "kwargs": {}}]}],
      "input_layers": [["in", 0, 0]], "output_layers": ["b", 0, 0]}})";
  };
  CHECK(model_from_json(functional("in")).count_params() == 30);
  CHECK(refusal(functional("b")).find("depends on itself") != std::string::npos);
  CHECK(refusal(functional("a")).find("depends on itself") != std::string::npos);
  CHECK(refusal(functional("nobody")).find("there is no call 0 of a layer \"nobody\"") != std::string::npos);
}
