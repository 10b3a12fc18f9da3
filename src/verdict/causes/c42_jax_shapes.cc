#include "verdict/causes/jax_compile.h"

namespace millpond::verdict {
namespace {

std::optional<Match> jax_shapes(const Case& c) {
  const std::optional<JaxCompiles> j = jax_compiles(c);
  if (!j || j->fresh) return {};
  return jax_match(c, *j);
}

}  // namespace

const Cause c42_jax_shapes = {.id = "C42",
                              .title = "JAX compiles a program for every new shape or static value, and keeps them all",
                              .explanation =
                                  "A jitted function is compiled for each shape of its arguments; the cache is bounded "
                                  "by a number of programs, not by bytes.",
                              .fix =
                                  "Pad or bucket the inputs (for example to multiples of 64) so that few programs are "
                                  "compiled; make static arguments dynamic; "
                                  "jax.clear_caches() frees old programs.",
                              .threads = {"jax#2072", "jax#11923", "jax#10828"},
                              .detect = jax_shapes};

}  // namespace millpond::verdict
