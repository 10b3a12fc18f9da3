#include "cli/compile_config.h"

#include <cctype>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "millpond/error.h"
#include "train/optimizers/kind.h"

namespace millpond::cli {
namespace {

using nlohmann::json;

std::string lower(std::string text) {
  for (char& letter : text) letter = char(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

// The "config" of an optimizer, read key by key; whatever was not read must say "not used".
class Config final : public train::SettingsSource {
 public:
  Config(std::string optimizer, const json& config) : optimizer_(std::move(optimizer)), config_(config) {}

  void number(const char* key, double& value) override {
    const json* v = find(key);
    if (!v || v->is_null()) return;
    if (v->is_object())
      throw refusal(key, format("is a {}", v->value("class_name", "schedule")), "--learning-rate gives a fixed one");
    if (!v->is_number()) throw Error(Code::kFormat, format("{}: {} is {}, not a number", optimizer_, key, v->dump()));
    value = v->get<double>();
  }
  void flag(const char* key, bool& value) override {
    if (const json* v = find(key); v && v->is_boolean()) value = v->get<bool>();
  }
  void text(const char* key, std::string& value) override {
    if (const json* v = find(key); v && v->is_string() && !v->get<std::string>().empty()) value = v->get<std::string>();
  }
  /// Settings that change nothing while they are null or false; their companions are of no account then.
  void expect_unused(std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (const json* v = find(key); v && !v->is_null() && *v != false)
        throw refusal(key, format("is {}", v->dump()), "--optimizer chooses another");
  }
  void ignore(const char* key) { find(key); }
  void expect_no_more() const {
    for (const auto& [key, value] : config_.items())
      if (!seen_.contains(key))
        throw refusal(key.c_str(), format("is {}", value.dump()), "--optimizer chooses another");
  }

 private:
  const json* find(const char* key) {
    seen_.insert(key);
    const auto at = config_.find(key);
    return at == config_.end() ? nullptr : &*at;
  }
  Error refusal(const char* key, const std::string& what, const char* hint) const {
    return Error(Code::kUnsupported,
                 format("the file's optimizer {} is not here with this setting: {} {}", optimizer_, key, what))
        .hint(hint);
  }
  std::string optimizer_;
  const json& config_;
  std::set<std::string, std::less<>> seen_;
};

Optimizer optimizer_from(const json& entry) {
  if (entry.is_string()) return Optimizer(entry.get<std::string>());
  if (!entry.is_object() || !entry.contains("class_name") || !entry["class_name"].is_string())
    throw Error(Code::kFormat, "the file's optimizer has no class_name");
  const std::string type = entry["class_name"], wanted = lower(type);
  const json none = json::object();
  const auto at = entry.find("config");
  Config config(type, at != entry.end() && at->is_object() ? *at : none);
  for (const train::OptimizerKind* kind : train::optimizer_kinds()) {
    if (lower(std::string(kind->type)) != wanted) continue;
    config.expect_unused({"use_ema", "loss_scale_factor", "gradient_accumulation_steps", "amsgrad", "jit_compile"});
    for (const char* companion : {"ema_momentum", "ema_overwrite_frequency"}) config.ignore(companion);
    Optimizer made = kind->make(&config);
    config.expect_no_more();
    return made;
  }
  std::string known;
  for (const std::string& name : Optimizer::known()) known += (known.empty() ? "" : ", ") + name;
  throw Error(Code::kUnsupported, format("the file's optimizer {} is not here", type))
      .hint("--optimizer chooses another: " + known);
}

Loss loss_from(const json& entry) {
  if (entry.is_null()) return {};
  if (entry.is_string()) return Loss(entry.get<std::string>());
  if (!entry.is_object() || !entry.contains("class_name") || !entry["class_name"].is_string())
    throw Error(Code::kFormat, format("the file's loss {} has no class_name", entry.dump()));
  return Loss::from_config(entry["class_name"].get<std::string>(), entry.value("config", json::object()).dump());
}

// One, a list in the order of the outputs, or an object by their names.
LossList losses_from(const json& entry) {
  if (entry.is_string() || (entry.is_object() && entry.contains("class_name"))) return loss_from(entry);
  LossList all;
  if (entry.is_array() || entry.is_object())
    for (const auto& [key, value] : entry.items()) {
      all.push_back(loss_from(value));
      if (entry.is_object()) all.names.push_back(key);
    }
  return all;
}

LossWeights weights_from(const json& entry) {
  LossWeights all;
  if (entry.is_number()) all.push_back(entry.get<double>());
  if (entry.is_array() || entry.is_object())
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_number()) throw Error(Code::kFormat, format("the file's loss_weights are {}", entry.dump()));
      all.push_back(value.get<double>());
      if (entry.is_object()) all.names.push_back(key);
    }
  return all;
}

Metric metric_from(const json& entry) {
  if (entry.is_string()) return Metric(entry.get<std::string>());
  if (!entry.is_object() || !entry.contains("class_name") || !entry["class_name"].is_string())
    throw Error(Code::kFormat, format("the file's metric {} has no class_name", entry.dump()));
  return Metric::from_config(entry["class_name"].get<std::string>(), entry.value("config", json::object()).dump());
}

// Of one output: null, one or a list.
std::vector<Metric> metrics_of_output(const json& entry) {
  if (entry.is_null()) return {};
  if (!entry.is_array()) return {metric_from(entry)};
  std::vector<Metric> all;
  for (const json& one : entry) all.push_back(metric_from(one));
  return all;
}

// A list of metrics; or of several outputs a list with a metric, a list or null for each, or an object by their names.
MetricList metrics_from(const json& entry, size_t outputs) {
  if (entry.is_null()) return {};
  MetricList all;
  const bool by_name = entry.is_object() && !entry.contains("class_name");
  if (by_name || (entry.is_array() && (outputs > 1 || std::ranges::any_of(entry, &json::is_array)))) {
    for (const auto& [key, value] : entry.items()) {
      all.by_output.push_back(metrics_of_output(value));
      if (by_name) all.names.push_back(key);
    }
  } else {
    all.by_output.push_back(metrics_of_output(entry));
  }
  return all;
}

}  // namespace

CompileConfig compile_config(const std::string& text, bool with_optimizer, size_t metrics_of) {
  const json whole = json::parse(text, nullptr, false);
  if (!whole.is_object()) return {};
  const auto at = whole.find("compile_config");
  if (at == whole.end() || !at->is_object()) return {};
  CompileConfig c;
  if (const auto loss = at->find("loss"); loss != at->end()) c.losses = losses_from(*loss);
  if (const auto weights = at->find("loss_weights"); weights != at->end()) c.loss_weights = weights_from(*weights);
  if (const auto optimizer = at->find("optimizer"); with_optimizer && optimizer != at->end() && !optimizer->is_null())
    c.optimizer = optimizer_from(*optimizer);
  if (metrics_of == 0) return c;
  if (const auto metrics = at->find("metrics"); metrics != at->end()) c.metrics = metrics_from(*metrics, metrics_of);
  if (const auto weighted = at->find("weighted_metrics"); weighted != at->end() && !weighted->is_null())
    throw Error(Code::kUnsupported, "the file's weighted_metrics are not here yet")
        .hint("compile the model with metrics, not weighted_metrics: samples have no weights here");
  return c;
}

}  // namespace millpond::cli
