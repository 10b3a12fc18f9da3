// Compares with Keras, case by case, what generate.py has written: predictions, gradients, metrics, ten training steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "base/format.h"
#include "io/npy.h"
#include "millpond/millpond.h"
#include "nn/draw.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "passes/passes.h"
#include "runtime/program.h"
#include "train/model.h"
#include "train/optimizers/kind.h"

using namespace millpond;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& p) {
  std::ifstream in(p);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

struct Case {
  fs::path folder;
  Json json;
  std::vector<Tensor> load(const char* name, int count) const {
    std::vector<Tensor> all;
    for (int i = 0; i < count; ++i)
      all.push_back(io::read_npy((folder / format("{}{}.npy", name, i)).string(), "data/parity"));
    return all;
  }
};

Loss loss_of(const Json& j) { return Loss::from_config(j["class"].get<std::string>(), j["options"].dump()); }

Metric metric_of(const Json& j) {
  if (j.is_string()) return Metric(j.get<std::string>());
  const std::string type = j["class"];
  const Json& o = j["options"];
  if (type == "AUC") {
    const std::string curve = o.value("curve", "ROC"), sum = o.value("summation_method", "interpolation");
    using Sum = AUCOptions::Summation;
    return AUC({.num_thresholds = o.value("num_thresholds", 200),
                .curve = curve == "PR" ? AUCOptions::Curve::kPR : AUCOptions::Curve::kROC,
                .summation = sum == "minoring"   ? Sum::kMinoring
                             : sum == "majoring" ? Sum::kMajoring
                                                 : Sum::kInterpolation,
                .from_logits = o.value("from_logits", false),
                .name = o["name"]});
  }
  if (type == "Precision") return Precision(o["name"], o.value("thresholds", 0.5));
  if (type == "Recall") return Recall(o["name"], o.value("thresholds", 0.5));
  throw Error(Code::kUsage, "metric " + type);
}

// Options as Keras names them, all of which an optimizer must know.
class Options final : public train::SettingsSource {
 public:
  explicit Options(Json options) : options_(std::move(options)) {}
  void number(const char* key, double& value) override { take(key, value); }
  void flag(const char* key, bool& value) override { take(key, value); }
  void text(const char* key, std::string& value) override { take(key, value); }
  bool empty() const { return options_.empty(); }

 private:
  template <class T>
  void take(const char* key, T& value) {
    if (options_.contains(key)) value = options_[key].get<T>(), options_.erase(key);
  }
  Json options_;
};

Optimizer optimizer_of(const Json& j) {
  for (const train::OptimizerKind* kind : train::optimizer_kinds())
    if (kind->type == j["class"].get<std::string>()) {
      Options options(j["options"]);
      const Optimizer made = kind->make(&options);
      REQUIRE(options.empty());
      return made;
    }
  throw Error(Code::kUsage, "optimizer " + j["class"].get<std::string>());
}

double largest(const Tensor& t) {
  double m = 0;
  for (int64_t i = 0; i < t.size(); ++i) m = std::max(m, std::abs(t.at(i)));
  return m;
}

/// Largest difference, in units of the largest value (sums of that size are what both round). Infinite when shapes
/// differ.
double difference(const Tensor& ours, const Tensor& keras, double floor = 1e-3) {
  if (ours.shape() != keras.shape()) return INFINITY;
  double most = 0;
  for (int64_t i = 0; i < keras.size(); ++i) {
    const double d = std::abs(ours.at(i) - keras.at(i));
    if (!(d <= most)) most = std::isnan(d) ? INFINITY : d;
  }
  return most / std::max(floor, largest(keras));
}

/// Gradients of the trainable weights on this batch, in their order.
std::vector<Tensor> gradients_of(Model& model, const Case& c) {
  train::ModelImpl& m = *model.impl();
  const train::Data data =
      train::check_data(m, c.load("x", c.json["inputs"]), c.load("y", c.json["outputs"]), true, "parity");
  runtime::Variable counter("counter", {DType::kInt32, {}});
  train::MetricCounts counts;
  train::Compiled compiled = *m.compiled;
  for (auto& metrics : compiled.metrics) metrics.clear();
  compiled.optimizer = SGD();  // its own slots: none
  // The training step's own trace, with gradients as outputs and no update.
  train::Traced t = train::trace(m.built(), &compiled, train::Kind::kTrain, data.samples, data.shapes, &counter, counts,
                                 runtime::Options().offered_passes());
  std::vector<graph::Value> weights;
  t.graph.updates.clear();
  graph::Builder b(t.graph);
  for (const nn::OwnedWeight& w : nn::owned_weights(m.built()))
    if (w.weight->trainable && w.layer->trainable)
      weights.push_back(b.variable("", w.weight->variable.type(), &w.weight->variable));
  const auto grads = passes::gradients(b, t.graph.outputs[0].value, weights);
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i]) t.graph.outputs.push_back({format("g{}", i), grads[i]});
  runtime::Variable* const own[] = {&counter};
  runtime::place(own, "slots");
  nn::materialize(m.weights());
  train::Ready ready({train::Kind::kTrain, data.samples, 1, data.shapes}, std::move(t), {});
  const backend::Memory arena = ready.program.backend().take(ready.program.arena_bytes(), "arena");
  ready.bind(arena.address());
  train::connect(ready, data, true);
  Team alone(1);
  train::stage_batch(alone, ready, data, {nullptr, 0, data.samples});
  ready.program.run(alone);
  ready.program.wait();
  std::vector<Tensor> copies;
  for (size_t i = 0; i < grads.size(); ++i) {
    Tensor g(weights[i].dtype(), weights[i].shape());
    if (grads[i]) std::memcpy(g.data(), ready.program.output(format("g{}", i)), size_t(g.bytes().value));
    copies.push_back(std::move(g));
  }
  return copies;
}

/// Whole epochs in the same order from the same weights: the curves stay together, and both networks have learnt.
void compare_curve(Model& model, const Case& c, const Arrays& x, const Arrays& y) {
  const Json& fit = c.json["fit"];
  const double split = fit["validation_split"];
  const History h = model.fit(x, y,
                              {.batch_size = fit["batch_size"],
                               .epochs = fit["epochs"],
                               .verbose = 0,
                               .validation_split = split,
                               .shuffle = false});
  // One step differs by kOnce in its gradients (see compare). Adam divides by their size, so a weight moves by its rate
  // times that, and the steps of all epochs add up: 132 of them make 1.3e-3 of a loss if no error ever cancels another.
  constexpr double kLoss = 1.3e-3;
  const double samples = double(x[0].shape()[0]);
  for (const auto& [name, keras] : c.json["history"].items())
    for (size_t e = 0; e < keras.size(); ++e) {
      INFO(name, " of epoch ", e);
      const double value = keras[e];
      const double count = samples * (name.starts_with("val_") ? split : 1 - split);
      if (name.ends_with("accuracy"))
        CHECK(std::abs(h[name][e] - value) < 1.5 / count);  // one sample at the border may fall to the other side
      else if (name.ends_with("auc") || name.ends_with("pr"))
        CHECK(std::abs(h[name][e] - value) <
              4 / count);  // one at a border is a few of the pairs of a right and a wrong one
      else if (name.ends_with("precision") || name.ends_with("recall"))
        CHECK(std::abs(h[name][e] - value) < 6 / count);  // a third of the samples or more are positive
      else
        CHECK(h[name][e] == doctest::Approx(value).epsilon(kLoss));
    }
  const double learns = c.json["learns"];
  CHECK(h["val_accuracy"].back() >= learns);
  CHECK(c.json["history"]["val_accuracy"].back().get<double>() >= learns);
}

/// Epochs over batches of several lengths: what each tells, and the weights at the end.
void compare_batches(Model& model, const Case& c) {
  const int count = c.json["batches"];
  const auto xs = c.load("bx", count), ys = c.load("by", count);
  const Dataset data = Dataset::from_generator([&] {
    return [&, at = size_t{0}](Element& e, Buffers& buffers) mutable {
      if (at == xs.size()) return false;
      e.clear();
      for (const Tensor* from : {&xs[at], &ys[at]}) {
        e.push_back(buffers.tensor(from->dtype(), from->shape()));
        std::memcpy(e.back().data(), from->data(), size_t(from->bytes().value));
      }
      return ++at, true;
    };
  });
  const Json& history = c.json["history"];
  const History h = model.fit(data, {.epochs = int(history["loss"].size()), .verbose = 0});
  for (const auto& [name, keras] : history.items())
    for (size_t e = 0; e < keras.size(); ++e) {
      INFO(name, " of epoch ", e);
      CHECK(h[name][e] == doctest::Approx(keras[e].get<double>()).epsilon(1e-4));
    }
  const auto after = model.get_weights(), keras = c.load("t", c.json["weights"]);
  for (size_t i = 0; i < after.size(); ++i)
    CHECK_MESSAGE(difference(after[i], keras[i], 0.1) < 1e-4, "after three epochs ", model.weight_names()[i]);
}

/// Both are draws from one distribution: their means, deviations and shares below any value agree within five sigmas.
void compare_statistics(const Tensor& ours, const Tensor& keras) {
  REQUIRE(ours.shape() == keras.shape());
  const auto sorted = [](const Tensor& t) {
    std::vector<double> v;
    for (int64_t i = 0; i < t.size(); ++i) v.push_back(t.at(i));
    std::sort(v.begin(), v.end());
    return v;
  };
  const std::vector<double> a = sorted(ours), b = sorted(keras);
  const double n = double(a.size());
  const auto mean = [n](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0) / n; };
  const auto deviation = [&](const std::vector<double>& v) {
    double sum = 0;
    const double middle = mean(v);
    for (const double x : v) sum += (x - middle) * (x - middle);
    return std::sqrt(sum / n);
  };
  // The mean of n draws has the deviation sigma / sqrt(n), the difference of two such means sqrt(2) of that. The
  // deviation of n draws has sigma / sqrt(2 n) for a normal distribution and less for those with lighter tails, which
  // all others here are.
  const double sigma = deviation(b), rounding = 1e-6 * std::max(std::abs(b.front()), std::abs(b.back()));
  CHECK(std::abs(mean(a) - mean(b)) <= 5 * sigma * std::sqrt(2 / n) + rounding);
  CHECK(std::abs(deviation(a) - sigma) <= 5 * sigma * std::sqrt(1 / n) + rounding);
  // Kolmogorov and Smirnov: the largest difference of the shares below a value passes c sqrt(2 / n) with probability 2
  // exp(-2 c^2), which for c = 2.7 is five sigmas' 6e-7 (and less where many draws are equal). Values within a rounding
  // are the same value.
  double apart = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double at = std::min(a[i], b[j]) + rounding;
    while (i < a.size() && a[i] <= at) ++i;
    while (j < b.size() && b[j] <= at) ++j;
    apart = std::max(apart, std::abs(double(i) - double(j)) / n);
  }
  CHECK(apart <= 2.7 * std::sqrt(2 / n));
}

/// What is drawn anew by each: first weights, or what a layer drops while training.
std::vector<Tensor> draw(const Model& model, const Case& c) {
  if (c.json["statistics"] == "weights") return model.get_weights();
  const Arrays x(c.load("x", 1));
  const Input in({x[0].shape()[1]});
  Model dropping({in}, {model.layers().back()(in, {.training = true})});
  return dropping.predict(x, {.batch_size = x[0].shape()[0]});  // one batch: the next would drop the same places
}

void compare(const Case& c) {
  // Both sum in float32 in their own order: n terms differ by about sqrt(n) roundings of 6e-8, and the longest sum here
  // has some thousands. A training step adds the error of the step before, so ten of them get ten times as much.
  const double kOnce = c.json.value("near", 1e-5), kTenTimes = c.json.contains("near") ? 3 * kOnce : 1e-4;
  set_random_seed(1);
  Model model = model_from_json(read(c.folder / "model.json"));
  const std::string json = model.to_json();  // Keras reads it in read_models.py
  CHECK(model_from_json(json).to_json() == json);
  std::ofstream(c.folder / "ours.json") << json;
  if (c.json.contains("statistics")) {
    const std::vector<Tensor> ours = draw(model, c), keras = c.load("s", c.json["drawn"]);
    REQUIRE(ours.size() == keras.size());
    for (size_t i = 0; i < keras.size(); ++i) compare_statistics(ours[i], keras[i]);
    return;
  }
  const int outputs = c.json["outputs"], weights = c.json["weights"], trainable = c.json.value("trainable", 0);
  REQUIRE(int(model.get_weights().size()) == weights);
  model.set_weights(c.load("w", weights));
  const Arrays x(c.load("x", c.json["inputs"])), y(c.load("y", outputs));

  const Arrays predicted = model.predict(x, {.batch_size = 1000});
  const auto out = c.load("out", outputs);
  for (int i = 0; i < outputs; ++i)
    CHECK_MESSAGE(difference(predicted[size_t(i)], out[size_t(i)]) < c.json.value("near_outputs", kOnce), "output ", i);

  // Weight files, both ways: from Keras's own come the same weights and outputs, and what we write Keras reads
  // (read_weights.py).
  Model from_file = model_from_json(read(c.folder / "model.json"));
  from_file.load_weights((c.folder / "keras.weights.h5").string());
  for (int i = 0; i < weights; ++i)
    CHECK_MESSAGE(difference(from_file.get_weights()[size_t(i)], model.get_weights()[size_t(i)]) == 0,
                  "keras.weights.h5, weight ", i);
  const Arrays again = from_file.predict(x, {.batch_size = 1000});
  for (int i = 0; i < outputs; ++i)
    CHECK_MESSAGE(difference(again[size_t(i)], predicted[size_t(i)]) == 0, "keras.weights.h5, output ", i);
  model.save_weights((c.folder / "ours.weights.h5").string());

  std::vector<Loss> losses;
  for (const Json& l : c.json["losses"]) losses.push_back(loss_of(l));
  std::vector<std::vector<Metric>> metrics;
  for (const Json& list : c.json["metrics"]) {
    metrics.emplace_back();
    for (const Json& m : list) metrics.back().push_back(metric_of(m));
  }
  const Optimizer optimizer = optimizer_of(c.json["optimizer"]);
  if (c.json.contains("named")) {
    LossList by_name(losses);
    LossWeights weighing(c.json["loss_weights"].get<std::vector<double>>());
    MetricList each = MetricList::each_output(metrics);
    by_name.names = weighing.names = each.names = c.json["named"].get<std::vector<std::string>>();
    model.compile({.optimizer = optimizer, .loss = by_name, .metrics = each, .loss_weights = weighing});
  } else {
    model.compile({.optimizer = optimizer, .loss = losses, .metrics = MetricList::each_output(metrics)});
  }
  if (c.json.contains("batches")) return compare_batches(model, c);
  if (c.json.contains("fit")) return compare_curve(model, c, x, y);
  const Results evaluated = model.evaluate(x, y, {.batch_size = 1000, .verbose = 0});
  for (const auto& [name, value] : c.json["evaluated"].items()) {
    INFO(name);
    CHECK(evaluated[name] == doctest::Approx(value.get<double>()).epsilon(kOnce));
  }
  if (c.json.contains("evaluate_batch")) {
    const Results parts = model.evaluate(x, y, {.batch_size = c.json["evaluate_batch"], .verbose = 0});
    for (const auto& [name, value] : c.json["evaluated_in_batches"].items()) {
      INFO(name, " in batches");
      CHECK(parts[name] == doctest::Approx(value.get<double>()).epsilon(kOnce));
    }
  }
  const auto keras_gradients = c.load("g", trainable);
  if (trainable) {
    const auto grads = gradients_of(model, c);
    double scale = 1e-3;
    for (const Tensor& g : keras_gradients) scale = std::max(scale, largest(g));
    for (int i = 0; i < trainable; ++i)
      CHECK_MESSAGE(difference(grads[size_t(i)], keras_gradients[size_t(i)],
                               std::max(0.01 * scale, c.json.value("floor", 0.0))) < 3 * kOnce,
                    "gradient ", i);
  }
  for (size_t s = 0; s < c.json["curve"].size(); ++s) {
    INFO("step ", s);
    CHECK(model.train_on_batch(x, y)["loss"] == doctest::Approx(c.json["curve"][s].get<double>()).epsilon(kTenTimes));
  }
  const auto after = model.get_weights(), keras_after = c.load("t", weights);
  for (int i = 0; i < weights; ++i)
    CHECK_MESSAGE(difference(after[size_t(i)], keras_after[size_t(i)], 0.1) < kTenTimes, "after ten steps ",
                  model.weight_names()[size_t(i)]);
}

}  // namespace

/// Layers, losses and metrics of every class with drawn options, for Keras to open (read_models.py).
void write_drawn(const fs::path& to) {
  std::mt19937_64 random(1);
  nn::Written all = nn::Written::array();
  for (const std::string& type : nn::layer_types())
    for (int i = 0; i < 20; ++i) {
      const auto layer = nn::layer_classes().at(type).make();
      Drawer draw(random);
      layer->describe(draw);
      nn::settle_layer(*layer);
      all.push_back(nn::as_object("keras.layers", type, nn::write_options(*layer)));
    }
  for (const nn::LossClass& c : nn::loss_classes())
    for (int i = 0; i < 5; ++i) {
      const auto loss = c.make();
      Drawer draw(random);
      loss->describe(draw);
      loss->name = "drawn";
      all.push_back(nn::as_object("keras.losses", c.type, nn::write_options(*loss)));
    }
  for (const nn::MetricFile* file : nn::metric_table())
    for (const nn::MetricKind& kind : file->metrics)
      for (int i = 0; kind.make && i < 5; ++i) {
        const auto metric = kind.make();
        Drawer draw(random);
        metric->describe(draw);
        metric->name = "drawn";
        if (!metric->type().empty())
          all.push_back(nn::as_object("keras.metrics", metric->type(), nn::write_options(*metric)));
      }
  std::ofstream(to) << all.dump();
}

TEST_CASE("parity: every layer, loss and optimizer computes what Keras computes") {
  const char* build = std::getenv("MILLPOND_BUILD_DIR");
  const char* given = std::getenv("MILLPOND_PARITY");
  const fs::path folder = given ? fs::path(given) : fs::path(build ? build : ".") / "parity";
  if (!fs::exists(folder / "stamp")) {
    MESSAGE("no cases in " << folder.string() << ": 'make peers' and tests/parity/generate.py make them");
    return;
  }
  std::vector<fs::path> cases;
  for (const auto& e : fs::directory_iterator(folder))
    if (e.is_directory()) cases.push_back(e.path());
  std::sort(cases.begin(), cases.end());
  write_drawn(folder / "drawn.json");
  const std::vector<std::string> known = nn::layer_types();
  std::set<std::string> untried(known.begin(), known.end());
  for (const train::OptimizerKind* kind : train::optimizer_kinds()) untried.emplace(kind->type);
  REQUIRE(untried.contains("Dense"));
  for (const fs::path& p : cases) {
    INFO(p.filename().string());
    try {
      for (const Layer& l : model_from_json(read(p / "model.json")).layers()) untried.erase(std::string(l.type()));
      const Case c{p, Json::parse(read(p / "case.json"))};
      if (c.json.contains("optimizer")) untried.erase(c.json["optimizer"]["class"].get<std::string>());
      compare(c);
    } catch (const Error& e) {
      FAIL_CHECK(std::string(e.what()));
    }
  }
  if (read(folder / "stamp").starts_with("all "))
    for (const std::string& one : untried) FAIL_CHECK(one << " has no case");
  MESSAGE(cases.size() << " cases compared");
}
