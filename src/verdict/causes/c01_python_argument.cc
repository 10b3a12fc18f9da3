#include "verdict/causes/fixes.h"
#include "verdict/causes/retrace.h"

namespace millpond::verdict {
namespace {

std::optional<Match> python_argument(const Case& c) {
  const std::optional<Retrace> r = retrace(c);
  if (!r || r->why != Why::kArgument) return {};
  Match m = retrace_match(c, *r);
  take(m, r->line ? give_tensor(*r->line) : Fix{});
  return m;
}

}  // namespace

const Cause c01_python_argument = {
    .id = "C1",
    .title = "A tf.function gets a Python number that changes, so every call is traced anew and every trace is kept",
    .explanation =
        "TensorFlow makes a graph for each value of a Python argument and keeps them all as long as the function "
        "lives.",
    .fix =
        "Pass the number as a tensor of the type that the function computes with (tf.constant with that dtype), or keep it in a tf.Variable that is "
        "assigned to, so that the function is traced once.",
    .threads = {"tensorflow#24726", "tensorflow#29027", "tensorflow/addons#807"},
    .detect = python_argument};

}  // namespace millpond::verdict
