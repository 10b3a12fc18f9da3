// Hooks: the callbacks of one training, evaluation or prediction. A batch hook that nobody overrides is found out by
// its first call and costs nothing from then on.
#pragma once
#include <span>
#include <vector>

#include "millpond/callbacks.h"
#include "millpond/model.h"

namespace millpond::train {

class Hooks {
 public:
  Hooks(std::span<const CallbackRef> callbacks, Model* model, const Callback::Params& params)
      : callbacks_(callbacks.begin(), callbacks.end()) {
    for (const CallbackRef& c : callbacks_) {
      const Callback::Params outer = c->params();
      before_.push_back({c->attach(model, params), outer});
    }
  }
  /// Gives the callbacks back to the one who had them before: an outer fit, or nobody.
  ~Hooks() {
    for (size_t i = before_.size(); i-- > 0;) callbacks_[i]->attach(before_[i].model, before_[i].params);
  }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;
  /// Joins callbacks that are attached already (validation inside fit).
  explicit Hooks(std::span<const CallbackRef> callbacks) : callbacks_(callbacks.begin(), callbacks.end()) {}

  template <class F>
  void each(F&& f) const {
    for (const CallbackRef& c : callbacks_) f(*c);
  }
  /// Calls f for every callback whose hook is not known to be unused.
  template <class F>
  void batch(Callback::Hook hook, F&& f) const {
    for (const CallbackRef& c : callbacks_)
      if (!(c->unused_hooks() & hook)) f(*c);
  }
  /// Does anybody want these hooks (as far as is known)?
  bool wants(uint8_t hooks) const {
    for (const CallbackRef& c : callbacks_)
      if ((c->unused_hooks() & hooks) != hooks) return true;
    return false;
  }

 private:
  struct Before {
    Model* model;
    Callback::Params params;
  };
  std::vector<CallbackRef> callbacks_;
  std::vector<Before> before_;  // one for each callback that this one attached
};

}  // namespace millpond::train
