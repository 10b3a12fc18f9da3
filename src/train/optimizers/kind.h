// What a file of this folder says of its optimizer. Two functions over its options in millpond/optimizers.h:
//   settings(s, o)   the options by Keras's names, with the range of each, `s.common(o)` for those that all have
//   formula(f, o)    slots, numbers and what weight and slots become (ops/formula.h); decay and clipping are done before
// and two definitions that follow from them: the constructor (make_optimizer), and the entry `kinds::<file name>` by which it is found by
// its name and read from a Keras file. The list of entries is made from the names of the files.
#pragma once
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "millpond/optimizers.h"
#include "ops/formula.h"
#include "train/optimizer.h"

namespace millpond::train {

/// Where options come from beside their defaults: a Keras file.
class SettingsSource {
 public:
  virtual ~SettingsSource() = default;
  /// Null, or what is not there, leaves a value as it is. Throw Error for what has another type.
  virtual void number(const char* key, double& value) = 0;
  virtual void flag(const char* key, bool& value) = 0;
  virtual void text(const char* key, std::string& value) = 0;
};

/// Visits an optimizer's options one by one: reads them, where there is a source, and checks their ranges.
class Settings {
 public:
  static constexpr double kAny = std::numeric_limits<double>::max();

  Settings(std::string_view optimizer, SettingsSource* source) : optimizer_(optimizer), source_(source) {}
  /// Throws Error(kUsage) when the value does not lie in [low, high].
  void number(const char* key, double& value, double low = 0, double high = kAny) const;
  void flag(const char* key, bool& value) const {
    if (source_) source_->flag(key, value);
  }
  /// weight_decay, the three ways to clip, name. Throws Error(kUsage) for more than one way to clip.
  template <class Options>
  void common(Options& o) const {
    number("weight_decay", o.weight_decay);
    number("clipnorm", o.clipnorm);
    number("clipvalue", o.clipvalue);
    number("global_clipnorm", o.global_clipnorm);
    expect_one_way(o.clipnorm, o.clipvalue, o.global_clipnorm);
    if (source_) source_->text("name", o.name);
  }

 private:
  void expect_one_way(double norm, double value, double global) const;
  std::string optimizer_;
  SettingsSource* source_;  // borrowed; null: only checks
};

/// An optimizer with these options, once they are checked.
template <class Options>
std::shared_ptr<OptimizerImpl> make_optimizer(double learning_rate, Options o) {
  const Settings check(o.name, nullptr);
  check.number("learning_rate", learning_rate);
  settings(check, o);
  const NormClipping clipping{o.clipnorm, o.global_clipnorm};
  ops::Formula f(o.name, {.weight_decay = o.weight_decay, .clip_value = o.clipvalue, .scaled = clipping.any()});
  formula(f, o);
  return std::make_shared<OptimizerImpl>(o.name, f.rule(), clipping, learning_rate);
}

struct OptimizerKind {
  std::string_view type;                      // Keras's class; in small letters the name it is asked for by
  Optimizer (*make)(SettingsSource* source);  // null: with its defaults
};

template <class Kind, class Options>
Optimizer read_optimizer(SettingsSource* source) {
  Options o;
  double rate = Kind().learning_rate();
  const Settings reading(o.name, source);
  reading.number("learning_rate", rate);
  settings(reading, o);
  return Kind(rate, o);
}

/// All of them, in the order of their files' names.
std::span<const OptimizerKind* const> optimizer_kinds();

namespace kinds {
#define MP_OPTIMIZER(name) extern const OptimizerKind name;
#include "train/optimizers/list.inc"
#undef MP_OPTIMIZER
}  // namespace kinds

}  // namespace millpond::train
