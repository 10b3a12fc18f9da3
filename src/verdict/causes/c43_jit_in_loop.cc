#include "verdict/causes/jax_compile.h"

namespace millpond::verdict {
namespace {

std::optional<Match> jit_in_loop(const Case& c) {
  const std::optional<JaxCompiles> j = jax_compiles(c);
  if (!j || !j->fresh) return {};
  return jax_match(c, *j);
}

}  // namespace

const Cause c43_jit_in_loop = {
    .id = "C43",
    .title = "jax.jit is called in the loop on a function that is new each time",
    .explanation =
        "A lambda or closure made in the loop is another function each time: nothing compiled can be used again, and "
        "what it captured stays.",
    .fix = "Define and jit the function once, outside the loop, and pass what changes as arguments.",
    .threads = {"jax#282", "jax#7930"},
    .detect = jit_in_loop};

}  // namespace millpond::verdict
