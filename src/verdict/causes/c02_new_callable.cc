#include "verdict/causes/fixes.h"
#include "verdict/causes/retrace.h"

namespace millpond::verdict {
namespace {

std::optional<Match> new_callable(const Case& c) {
  const std::optional<Retrace> r = retrace(c);
  if (!r || r->why != Why::kCallable) return {};
  Match m = retrace_match(c, *r);
  take(m, r->line ? make_once(*r->line) : Fix{});
  return m;
}

}  // namespace

const Cause c02_new_callable = {
    .id = "C2",
    .title = "A new tf.function or callable is made in every round of the loop, and each brings a graph that stays",
    .explanation =
        "A lambda, a bound method or tf.function(...) inside a loop is a new object each time, so nothing that was "
        "traced can be used again.",
    .fix = "Make the function once, outside the loop, and pass objects that stay the same.",
    .threads = {"tensorflow#31175", "tensorflow#26311", "tensorflow#50379"},
    .detect = new_callable};

}  // namespace millpond::verdict
