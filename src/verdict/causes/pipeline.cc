#include "verdict/causes/pipeline.h"

#include "verdict/causes/fit_copy.h"

namespace millpond::verdict {

double held_by_pipeline(const Case& c) {
  double bytes = c.jump() - fit_copy(c).bytes;
  for (const char* what : {"fit", "train_on_batch", "optimizer_step", "tape_gradient"})
    if (const CountedLine* line = c.notes.line(what)) bytes -= c.reserved_at(line->place);
  if (!c.sites.empty()) bytes = std::min(bytes, c.reserved_natively());
  return bytes >= std::max(32e6, 0.05 * c.growth.level) ? bytes : 0;
}

}  // namespace millpond::verdict
