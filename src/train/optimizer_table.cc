// Alone in its file: tests/new_rules makes it anew with one optimizer more.
#include "train/optimizers/kind.h"

namespace millpond::train {

std::span<const OptimizerKind* const> optimizer_kinds() {
  static constexpr const OptimizerKind* kAll[] = {
#define MP_OPTIMIZER(name) &kinds::name,
#include "train/optimizers/list.inc"
#undef MP_OPTIMIZER
  };
  return kAll;
}

}  // namespace millpond::train
