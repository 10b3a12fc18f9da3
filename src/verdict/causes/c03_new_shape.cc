#include "verdict/causes/fixes.h"
#include "verdict/causes/retrace.h"

namespace millpond::verdict {
namespace {

std::optional<Match> new_shape(const Case& c) {
  const std::optional<Retrace> r = retrace(c);
  if (!r || r->why != Why::kShape) return {};
  Match m = retrace_match(c, *r);
  take(m, r->line ? relax_shapes(*r->line) : Fix{});
  return m;
}

}  // namespace

const Cause c03_new_shape = {
    .id = "C3",
    .title = "Inputs keep coming in new shapes, and TensorFlow traces and keeps a graph for each",
    .explanation =
        "A batch of another length or size is another signature. The graphs of old shapes are not freed by del, gc or "
        "clear_session.",
    .fix =
        "Pad the inputs to a few lengths, or declare the dimension as unknown: None in the input_signature of the tf.function, None in the shape of "
        "keras.Input. A ragged last batch goes with drop_remainder=True.",
    .threads = {"tensorflow#124972", "tensorflow#38002"},
    .detect = new_shape};

}  // namespace millpond::verdict
