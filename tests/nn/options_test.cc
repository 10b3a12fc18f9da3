#include <doctest/doctest.h>

#include <set>

#include "nn/draw.h"
#include "nn/metric.h"
#include "train/support.h"

using namespace millpond;

namespace {
std::string refusal_of(const std::string& type, const std::string& config) {
  return message_of([&] { Layer::from_config(type, config); });
}
Code code_of(const std::string& type, const std::string& config) {
  try {
    Layer::from_config(type, config);
  } catch (const Error& e) {
    return e.code();
  }
  FAIL("not refused");
  return Code::kUsage;
}
}  // namespace

TEST_CASE("options: whatever legal options a layer has, its config makes the same layer again") {
  std::mt19937_64 random(1);
  for (const std::string& type : nn::layer_types()) {
    INFO(type);
    std::set<std::string> different;
    for (int i = 0; i < 100; ++i) {
      const auto layer = nn::layer_classes().at(type).make();
      Drawer draw(random);
      layer->describe(draw);
      layer->name = "drawn";
      nn::settle_layer(*layer);
      const std::string config = Layer(layer).get_config();
      const Layer again = Layer::from_config(type, config);
      CHECK(again.get_config() == config);
      CHECK(again.type() == type);
      CHECK(again.name() == "drawn");
      different.insert(config);
    }
    CHECK(different.size() >= (type == "Add" || type == "Flatten" ? 2 : 4));  // the draws are not all one
  }
}

TEST_CASE("options: whatever legal options a metric has, its config makes the same metric again") {
  std::mt19937_64 random(1);
  for (const nn::MetricFile* file : nn::metric_table())
    for (const nn::MetricKind& kind : file->metrics) {
      if (!kind.make || kind.make()->type().empty()) continue;
      const std::string type(kind.make()->type());
      INFO(type);
      for (int i = 0; i < 100; ++i) {
        const auto metric = kind.make();
        Drawer draw(random);
        metric->describe(draw);
        metric->name = "drawn";
        const std::string config = Metric(metric).get_config();
        const Metric again = Metric::from_config(type, config);
        CHECK(again.get_config() == config);
        CHECK(again.type() == type);
        CHECK(again.name() == "drawn");
      }
      CHECK(Metric(type).type() == type);
      CHECK(nn::Json::parse(Metric(kind.names[0]).get_config())["name"] == kind.names[0]);
    }
}

TEST_CASE("options: a metric's config is Keras's, and what is not here or not allowed is refused by its name") {
  CHECK(AUC({.num_thresholds = 50, .curve = AUCOptions::Curve::kPR}).get_config() ==
        R"({"name":"auc","dtype":"float32","num_thresholds":50,"curve":"PR","summation_method":"interpolation",)"
        R"("multi_label":false,"num_labels":null,"label_weights":null,"from_logits":false})");
  CHECK(Metric("precision").get_config() ==
        R"({"name":"precision","dtype":"float32","thresholds":null,"top_k":null,"class_id":null})");
  CHECK(nn::Json::parse(Recall("r", 0.25).get_config())["thresholds"] == 0.25);
  const auto refusal = [](const char* type, const char* config) {
    return message_of([&] { Metric::from_config(type, config); });
  };
  CHECK(refusal("AUC", R"({"multi_label": true})").starts_with("AUC: multi_label = true is not here yet"));
  CHECK(refusal("AUC", R"({"curve": "RoC"})") ==
        "AUC: curve is \"RoC\", but must be one of ROC, PR; did you mean ROC?");
  CHECK(refusal("Precision", R"({"thresholds": [0.1, 0.9]})").starts_with("Precision: thresholds is [0.1,0.9]"));
  CHECK(refusal("Recall", R"({"thresholds": 3})") == "Recall: thresholds is 3.0, but must be between 0 and 1");
  CHECK(refusal("AUK", "{}") == "metric AUK is not here yet; did you mean AUC?");
  CHECK(message_of([] { (void)Metric("accuracy").get_config(); }).starts_with("the metric \"accuracy\" has no class"));
}

TEST_CASE("options: the config of a layer that C++ made says what C++ said") {
  const auto config = [](const Layer& l) { return nn::Json::parse(l.get_config()); };
  nn::Json dense = config(Dense(7, "tanh", {.use_bias = false, .kernel_initializer = HeNormal(3), .name = "d"}));
  CHECK(dense["units"] == 7);
  CHECK(dense["activation"] == "tanh");
  CHECK(dense["use_bias"] == false);
  CHECK(dense["kernel_initializer"]["class_name"] == "HeNormal");
  CHECK(dense["kernel_initializer"]["config"]["seed"] == 3);
  CHECK(dense["bias_initializer"]["class_name"] == "Zeros");
  CHECK(dense["name"] == "d");
  CHECK(dense["trainable"] == true);
  CHECK(dense["kernel_regularizer"].is_null());
  CHECK(config(MaxPooling2D({2, 3}))["strides"] == nn::Json{2, 3});
  CHECK(config(MaxPooling2D({2, 3}, {.strides = 1}))["strides"] == nn::Json{1, 1});
  CHECK(config(MultiHeadAttention(2, 5))["value_dim"] == 5);
  CHECK(config(MultiHeadAttention(2, 5, {.output_shape = 9}))["output_shape"] == nn::Json{9});
  CHECK(config(ZeroPadding2D(1, 2, 3, 4))["padding"] == nn::Json{{1, 2}, {3, 4}});
  CHECK(config(ZeroPadding2D({1, 2}))["padding"] == nn::Json{{1, 1}, {2, 2}});
  CHECK(config(LayerNormalization())["axis"] == -1);
  CHECK(config(LayerNormalization({.axis = {1, 2}}))["axis"] == nn::Json{1, 2});
  CHECK(config(Dropout(0.5))["seed"].is_null());
  CHECK(config(ReLU())["max_value"].is_null());
  Dense fixed(1);
  fixed.set_trainable(false);
  CHECK(config(fixed)["trainable"] == false);
}

TEST_CASE(
    "options: what is not allowed is refused with the layer, what was given, what is allowed and the nearest name") {
  CHECK(refusal_of("Dense", R"({"name": "head", "units": 0})") == "Dense \"head\": units is 0, but must be at least 1");
  CHECK(refusal_of("Dense", R"({"name": "head", "units": "many"})") ==
        "Dense \"head\": units is \"many\", but must be a whole number of at least 1");
  CHECK(refusal_of("Dense", R"({"name": "head"})") ==
        "Dense \"head\" has no \"units\"; give a whole number of at least 1");
  CHECK(refusal_of("Dense", R"({"units": 1, "use_bais": true})") ==
        "Dense: use_bais = true is not here yet; did you mean use_bias?");
  CHECK(refusal_of("Dense", R"({"units": 1, "use_bias": 1})") == "Dense: use_bias is 1, but must be true or false");
  CHECK(refusal_of("Dense", R"({"units": 1, "flavour": 1})") ==
        "Dense: flavour = 1 is not here yet; known are name, trainable, units, activation, use_bias, "
        "kernel_initializer, bias_initializer");
  CHECK(refusal_of("Dens", R"({"units": 1})") == "layer Dens is not here yet; did you mean Dense?");
  CHECK(refusal_of("Conv2D", R"({"filters": 1, "kernel_size": [3, 0]})") ==
        "Conv2D: kernel_size is [3,0], but must be at least 1");
  CHECK(refusal_of("Conv2D", R"({"filters": 1, "kernel_size": [3, 3, 3]})") ==
        "Conv2D: kernel_size is [3,3,3], but must be a whole number or two, each at least 1");
  CHECK(refusal_of("Conv2D", R"({"filters": 1, "kernel_size": 3, "padding": "sane"})") ==
        "Conv2D: padding is \"sane\", but must be one of valid, same; did you mean same?");
  CHECK(refusal_of("Conv2D", R"({"filters": 1, "kernel_size": 3, "data_format": "channels_first"})") ==
        "Conv2D: data_format = \"channels_first\" is not here yet; only \"channels_last\" is");
  CHECK(refusal_of("Dropout", R"({"rate": 1.5})") == "Dropout: rate is 1.5, but must be between 0 and 1");
  CHECK(refusal_of("Dense", R"({"units": 1, "kernel_initializer": "he_norml"})")
            .starts_with("Dense: initializer he_norml is not here yet"));
  CHECK(refusal_of("Dense", R"({"units": 1, "kernel_initializer": {"class_name": "HeNorml"}})") ==
        "Dense: initializer HeNorml is not here yet; did you mean HeNormal?");
  CHECK(
      refusal_of("Dense", R"({"units": 1, "kernel_initializer": {"class_name": "HeNormal", "config": {"sed": 1}}})") ==
      "Dense: HeNormal: sed = 1 is not here yet; did you mean seed?");
  CHECK(
      refusal_of("Dense", R"({"units": 1, "dtype": "float8"})") ==
      "Dense: dtype = \"float8\" is not here yet; only one of float32, float64, bfloat16, float16, mixed_bfloat16 and "
      "mixed_float16 is");
  CHECK(code_of("Dense", R"({"units": 0})") == Code::kUsage);
  CHECK(code_of("Dense", R"({"units": "many"})") == Code::kFormat);
  CHECK(code_of("Dense", R"({"units": 1, "flavour": 1})") == Code::kUnsupported);
  CHECK(code_of("Dens", R"({"units": 1})") == Code::kUnsupported);
  // The same words when C++ says it.
  CHECK(message_of([] { Dense(0, relu, {.name = "head"}); }) == "Dense \"head\": units is 0, but must be at least 1");
  CHECK(message_of([] { Dropout(1.5); }) == "Dropout: rate is 1.5, but must be between 0 and 1");
  CHECK(message_of([] { Conv2D(1, {3, 0}); }) == "Conv2D: kernel_size is [3,0], but must be at least 1");
  CHECK(message_of([] { BatchNormalization({.momentum = 2}); }) ==
        "BatchNormalization: momentum is 2.0, but must be between 0 and 1");
  CHECK(message_of([] { ReLU({.threshold = -1}); }) == "ReLU: threshold is -1.0, but must be at least 0");
  CHECK(message_of([] { Reshape({-1, -1}); }) == "Reshape: target_shape is [-1, -1], but only one dimension may be -1");
  CHECK(message_of([] { Reshape({-2}); }) == "Reshape: target_shape is [-2], but must be at least -1");
}

TEST_CASE("options: an initializer is written as the class that it was made as") {
  CHECK(Initializer("uniform").type() == "RandomUniform");
  CHECK(GlorotUniform(5).get_config() == R"({"seed":5,"input_axes":null,"output_axes":null})");
  CHECK(Constant(0).get_config() == R"({"value":0.0})");
  CHECK(
      VarianceScaling(2, Initializer::Fan::kOut, Initializer::Kind::kNormal).get_config() ==
      R"({"seed":null,"scale":2.0,"mode":"fan_out","distribution":"untruncated_normal","input_axes":null,"output_axes":null})");
  Initializer changed = Zeros();
  changed.a = 3;  // no longer what the class says
  CHECK(nn::Json(nn::initializer_to_json(changed))["class_name"] == "Constant");
  CHECK(nn::Json(nn::initializer_to_json(changed))["config"]["value"] == 3);
  const Initializer back = Initializer::from_config("RandomNormal", R"({"mean": 1, "stddev": 0.5, "seed": -7})");
  CHECK(back.a == 1);
  CHECK(back.b == 0.5);
  CHECK(back.get_config() == R"({"seed":-7,"mean":1.0,"stddev":0.5})");
  CHECK(message_of([] { Initializer::from_config("RandomNormal", R"({"stddev": -1})"); }) ==
        "Initializer: RandomNormal: stddev is -1.0, but must be at least 0");
  CHECK(message_of([] { Initializer("glorot_unifrom"); }) ==
        "initializer \"glorot_unifrom\" is not known; did you mean glorot_uniform?");
}
