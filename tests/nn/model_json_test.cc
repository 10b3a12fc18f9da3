// Models of C++ as Keras's JSON and back. What Keras says to it: tests/parity/read_models.py.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "nn/network.h"
#include "train/model.h"
#include "train/support.h"

using namespace millpond;
using Json = nlohmann::json;

namespace {
/// The text, after the model made of it has given the same text and computes the same from the same weights.
Json round_trip(const Model& model) {
  const std::string text = model.to_json();
  Model again = model_from_json(text);
  CHECK(again.to_json() == text);
  CHECK(again.weight_names() == model.weight_names());
  again.set_weights(model.get_weights());
  Arrays x;
  for (const SymbolicTensor& t : model.inputs()) x.push_back(uniform(t.shape().with_front(3), 7));
  const Arrays ours = model.predict(x), theirs = again.predict(x);
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) CHECK(flat({ours[i]}) == flat({theirs[i]}));
  return Json::parse(text);
}
const Json& layer_named(const Json& model, const std::string& name) {
  for (const Json& l : model["config"]["layers"])
    if (l["config"]["name"] == name) return l;
  FAIL("no layer " << name);
  return model;
}
}  // namespace

TEST_CASE("to_json: a Sequential is Keras's list of layers") {
  const Sequential model({Input({8, 8, 3}), Conv2D(4, 3, relu), MaxPooling2D(), BatchNormalization(), Flatten(),
                          Dropout(0.25), Dense(2, softmax, {.name = "head"})},
                         "small");
  const Json json = round_trip(model);
  CHECK(json["class_name"] == "Sequential");
  CHECK(json["config"]["name"] == "small");
  CHECK(json["config"]["layers"].size() == 7);
  CHECK(json["config"]["layers"][0]["class_name"] == "InputLayer");
  CHECK(json["config"]["build_input_shape"] == Json{nullptr, 8, 8, 3});
  CHECK(layer_named(json, "head")["module"] == "keras.layers");
  CHECK(layer_named(json, "head")["config"]["units"] == 2);
  CHECK(model.to_json(1).find("\n \"class_name\"") != std::string::npos);
}

TEST_CASE(
    "to_json: a functional model keeps branches, shared layers, several inputs and outputs, and which call is which") {
  const Input a({5}, DType::kFloat32, "a"), b({5}, DType::kFloat32, "b");
  const Dense shared(4, "tanh", {.name = "shared"});
  const SymbolicTensor first = shared(a), second = shared(b);
  const SymbolicTensor both =
      Concatenate(-1, "both")({second, first});  // a walk from the outputs meets the second call first
  const Model model({a, b}, {Dense(2, {.name = "left"})(both), Add("sum")({first, second})}, "branches");
  const Json json = round_trip(model);
  CHECK(json["class_name"] == "Functional");
  CHECK(json["config"]["input_layers"] == Json{{"a", 0, 0}, {"b", 0, 0}});
  CHECK(json["config"]["output_layers"] == Json{{"left", 0, 0}, {"sum", 0, 0}});
  const Json& nodes = layer_named(json, "shared")["inbound_nodes"];
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0]["args"][0]["config"]["keras_history"] == Json{"a", 0, 0});
  CHECK(nodes[1]["args"][0]["config"]["keras_history"] == Json{"b", 0, 0});
  CHECK(layer_named(json, "both")["inbound_nodes"][0]["args"][0][0]["config"]["keras_history"] == Json{"shared", 1, 0});
  // A model of some of the calls counts its own only.
  const Json part = round_trip(Model({b}, {second}, "part"));
  CHECK(part["config"]["output_layers"] == Json{"shared", 0, 0});
  CHECK(layer_named(part, "shared")["inbound_nodes"].size() == 1);
}

TEST_CASE("to_json: one input or output alone stays a list where it was one") {
  const Input a({5}, DType::kFloat32, "a");
  const std::string alone = Model({a}, {Dense(2, {.name = "d"})(a)}, "m").to_json();
  Json listed = Json::parse(alone);
  listed["config"]["output_layers"] = Json::array({listed["config"]["output_layers"]});
  const Json again = Json::parse(model_from_json(listed.dump()).to_json());
  CHECK(again["config"]["output_layers"] == Json::array({Json{"d", 0, 0}}));
  CHECK(again["config"]["input_layers"] == Json{"a", 0, 0});
}

TEST_CASE("to_json: attention's tensors are arguments, its mask belongs to the call, whoever asked for it") {
  const Input x({4, 6}, DType::kFloat32, "x"), y({5, 6}, DType::kFloat32, "y");
  const SymbolicTensor self = MultiHeadAttention(2, 3, {.use_causal_mask = true, .name = "self"})(x, x);
  const SymbolicTensor cross = MultiHeadAttention(2, 3, {.name = "cross"})(self, y, y, {.use_causal_mask = true});
  const SymbolicTensor plain = MultiHeadAttention(2, 3, {.name = "plain"})(cross, y);
  const Json json = round_trip(Model({x, y}, {plain}, "m"));
  CHECK(layer_named(json, "self")["inbound_nodes"][0]["args"].size() == 2);
  CHECK(layer_named(json, "self")["inbound_nodes"][0]["kwargs"] == Json{{"use_causal_mask", true}});
  CHECK(layer_named(json, "cross")["inbound_nodes"][0]["args"].size() == 3);
  CHECK(layer_named(json, "plain")["inbound_nodes"][0]["kwargs"] == Json::object());
}

TEST_CASE("to_json: models inside models, called twice") {
  const Sequential inner({Input({5}), Dense(5, relu, {.name = "deep"})}, "inner");
  const Input x({5}, DType::kFloat32, "x");
  const Json json = round_trip(Model({x}, {inner(inner(x))}, "outer"));
  CHECK(layer_named(json, "inner")["class_name"] == "Sequential");
  CHECK(layer_named(json, "inner")["inbound_nodes"].size() == 2);
  CHECK(json["config"]["output_layers"] == Json{"inner", 1, 0});
  round_trip(Sequential({Input({5}), inner, Dense(1)}, "list"));
  CHECK(Json::parse(Layer(inner).get_config())["layers"].size() == 2);
  CHECK(Layer::from_config("Sequential", Layer(inner).get_config()).count_params() == 30);
}

TEST_CASE("to_json: a chain that calls one layer twice is written as a graph") {
  const Dense twice(5, relu, {.name = "twice"});
  const Json json = round_trip(Sequential({Input({5}), twice, twice}, "chain"));
  CHECK(json["class_name"] == "Functional");
  CHECK(layer_named(json, "twice")["inbound_nodes"].size() == 2);
}

TEST_CASE("to_json: what JSON cannot say is refused, not left out") {
  CHECK(message_of([] { (void)Sequential({Dense(2)}).to_json(); }) != "");
  const Input x({5}, DType::kFloat32, "x");
  const Model fixed({x}, {Dropout(0.5, {.name = "drop"})(x, {.training = true})});
  CHECK(message_of([&] { (void)fixed.to_json(); }).starts_with("Dropout \"drop\" is called with training fixed"));
  CHECK(message_of([&] {
          (void)Model({x}, {Dense(1, {.name = "\xff"})(x)}).to_json();
        }).starts_with("a name in the model is not UTF-8"));
  // A model of Keras may say it without effect: it is kept.
  Json noted = Json::parse(Model({x}, {Dropout(0.5, {.name = "drop"})(x)}, "m").to_json());
  noted["config"]["layers"][1]["inbound_nodes"][0]["kwargs"]["training"] = true;
  CHECK(Json::parse(model_from_json(noted.dump()).to_json()) == noted);
}

TEST_CASE("to_json: trainable or not, by layer and by model") {
  Sequential model({Input({5}), Dense(3, {.name = "frozen"}), Dense(2)}, "m");
  model.get_layer("frozen").set_trainable(false);
  const Model again = model_from_json(model.to_json());
  CHECK(again.get_layer("frozen").trainable() == false);
  CHECK(again.layers().back().trainable() == true);
}
