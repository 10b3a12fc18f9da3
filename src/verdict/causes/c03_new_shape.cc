#include "verdict/causes/retrace.h"

namespace millpond::verdict {
namespace {

std::optional<Match> detect(const Case& c) {
  const std::optional<Retrace> r = retrace(c);
  if (!r || r->why != Why::kShape) return {};
  return retrace_match(c, *r);
}

}  // namespace

const Cause c03_new_shape = {
    .id = "C3",
    .title = "Inputs keep coming in new shapes, and TensorFlow traces and keeps a graph for each",
    .explanation =
        "A batch of another length or size is another signature. The graphs of old shapes are not freed by del, gc or "
        "clear_session.",
    .fix =
        "Pad or bucket the inputs to a few lengths, declare the dimension as None (input_signature, keras.Input((None, "
        "...))), or set "
        "reduce_retracing=True; a ragged last batch goes with drop_remainder=True.",
    .threads = {"tensorflow#124972", "tensorflow#38002"},
    .detect = detect};

}  // namespace millpond::verdict
