#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool jaxlib(const Frame& f) { return contains(f.file, "jaxlib") || contains(f.function, "xla::"); }

std::optional<Match> jax_residue(const Case& c) {
  if (!c.leaking() || !c.notes.has("jax") || c.rose("jax.compiles") >= 3 || c.times("jax_compile") >= 3) return {};
  const std::optional<double> under = c.growth_share(jaxlib);
  if (under.value_or(0) < 0.6 || c.rose("jax.live_bytes") > 0.3 * c.growth.total) return {};
  Match m{.share = *under * (1 - c.data_share()), .weight = 0.6};
  m.blame = c.growing_place();
  m.evidence.push_back(
      format("{:.0f} % of the sampled growth is native memory of JAX that belongs to no living array", 100 * *under));
  return m;
}

}  // namespace

const Cause c44_jax_residue = {
    .id = "C44",
    .title = "Native memory of JAX stays after arrays and caches are gone",
    .explanation = "About 20 KB for each compiled shape remain, also after jax.clear_caches().",
    .fix = "Compile fewer shapes; restart the process for very long runs.",
    .threads = {"jax#19429"},
    .detect = jax_residue};

}  // namespace millpond::verdict
