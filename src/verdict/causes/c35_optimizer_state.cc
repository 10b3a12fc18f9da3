#include "base/format.h"
#include "verdict/causes/fit_copy.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> optimizer_state(const Case& c) {
  const CountedLine* line = nullptr;
  for (const char* what : {"optimizer_step", "fit", "train_on_batch", "tape_gradient"})
    if (!line) line = c.notes.line(what);
  if (!line) return {};
  const double least = std::max(16e6, 0.02 * c.growth.level);
  const double copied = fit_copy(c).bytes;
  Match m{.kind = Kind::kReserve, .share = 1, .weight = 1, .bytes = 0};
  m.blame = line->place;
  const double seen = c.reserved_at(line->place) - copied;
  if (!c.sites.empty() && seen >= least) {
    m.bytes = seen;
    m.evidence.push_back(
        format("{} in large blocks were taken under {} when training began and stayed", amount(seen), at(line->place)));
  } else {
    // Nothing sampled there: a jump at the first step that no pipeline explains, and then a level. Frameworks' own
    // threads may have taken it.
    const double jump = c.jump() - copied;
    if (!c.sites.empty() && c.reserved_natively(true) < 0.5 * jump) return {};
    if (c.leaking() || c.notes.stage("cache") || c.notes.stage("shuffle") ||
        jump < std::max(64e6, 0.08 * c.growth.level))
      return {};
    m.bytes = jump;
    m.weight = 0.7;
    m.evidence.push_back(format("memory rose by {} when training began and then stayed", amount(jump)));
  }
  return m;
}

}  // namespace

const Cause c35_optimizer_state = {
    .id = "C35",
    .title = "Gradients and the optimizer's state appeared at the first step",
    .explanation =
        "Adam keeps two values for each weight, and gradients are as large as the weights: plan for four times the "
        "weights.",
    .fix = "Not a leak. If it does not fit: SGD or Adafactor instead of Adam, a smaller model, or lower precision.",
    .threads = {"pytorch#9439", "pytorch#18643", "Megatron-LM#640"},
    .detect = optimizer_state};

}  // namespace millpond::verdict
