#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool onednn(const Frame& f) {
  return contains(f.function, "dnnl") || contains(f.function, "mkldnn") || contains(f.file, "dnnl");
}

std::optional<Match> onednn_cache(const Case& c) {
  const std::optional<double> under = c.growth_share(onednn);
  if (under.value_or(0) < 0.4) return {};
  if (!c.leaking() && (c.growth.outcome != Outcome::kStopped || c.sites.gained < c.growth.small)) return {};
  Match m{.kind = c.leaking() ? Kind::kLeak : Kind::kCache,
          .share = *under * (1 - c.data_share()),
          .weight = 0.9,
          .bytes = *under * c.sites.gained};
  m.blame = c.growing_place();
  const std::string pad = "Pad the inputs to a few shapes, or ";
  take(m, c.notes.has("tensorflow") ? set_variable(pad + "run TensorFlow without oneDNN: TF_ENABLE_ONEDNN_OPTS=0.", "TF_ENABLE_ONEDNN_OPTS", "0")
                                    : set_variable(pad + "let oneDNN keep fewer: ONEDNN_PRIMITIVE_CACHE_CAPACITY=64.", "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64"));
  m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated by oneDNN", 100 * *under));
  return m;
}

}  // namespace

const Cause c31_onednn_cache = {
    .id = "C31",
    .title = "oneDNN prepares and keeps an operation for every new input shape",
    .explanation = "The cache is bounded by a number of entries (1,024), not by bytes.",
    .fix = "Pad the inputs to a few shapes, or let oneDNN keep fewer (ONEDNN_PRIMITIVE_CACHE_CAPACITY).",
    .threads = {"pytorch#29893", "pytorch#98688", "dudarenok-maker/Castwright#1378"},
    .detect = onednn_cache};

}  // namespace millpond::verdict
