// Hooks: the callbacks of one training, evaluation or prediction. A batch hook that nobody overrides is found out by its
// first call and costs nothing from then on.
#pragma once
#include <span>
#include <vector>

#include "millpond/callbacks.h"
#include "millpond/model.h"

namespace millpond::train {

class Hooks {
 public:
  Hooks(std::span<const CallbackRef> callbacks, Model* model, const Callback::Params& params) : callbacks_(callbacks.begin(), callbacks.end()) {
    for (const CallbackRef& c : callbacks_) c->attach(model, params);
  }
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
  std::vector<CallbackRef> callbacks_;
};

}  // namespace millpond::train
