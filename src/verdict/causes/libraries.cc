// Growth that lies in a library, by the frames that allocate it, and programs that JAX compiles and keeps.
#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool in_tensorboard(const Frame& f) {
  return contains(lower(f.file), "tensorboard") || contains(f.file, "summary_ops");
}
bool in_onednn(const Frame& f) {
  return contains(f.function, "dnnl") || contains(f.function, "mkldnn") || contains(f.file, "dnnl");
}
bool in_dynamo(const Frame& f) {
  return contains(f.file, "torch/_dynamo") || contains(f.file, "torch/_inductor") ||
         contains(f.file, "torch/_functorch");
}
bool in_jaxlib(const Frame& f) { return contains(f.file, "jaxlib") || contains(f.function, "xla::"); }

/// `words`: "% of the sampled growth ..." of what lies there, if that is at least `least` of all.
std::optional<Match> inside(const Case& c, bool (*library)(const Frame&), double least, double weight,
                            const char* words) {
  const std::optional<double> under = c.growth_share(library);
  if (under.value_or(0) < least) return {};
  Match m{.share = *under * (1 - c.data_share()), .weight = weight, .bytes = *under * c.sites.gained};
  m.blame = c.growing_place();
  m.evidence.push_back(format("{:.0f} % of the sampled growth {}", 100 * *under, words));
  return m;
}

std::optional<Match> tensorboard(const Case& c) {
  if (!c.leaking()) return {};
  return inside(c, in_tensorboard, kTable.frames, kTable.counted, "was allocated by TensorBoard's writers");
}

std::optional<Match> torch_compile(const Case& c) {
  if (!c.leaking()) return {};
  return inside(c, in_dynamo, kTable.frames, kTable.counted, "was allocated while torch.compile worked");
}

std::optional<Match> jax_residue(const Case& c) {
  if (!c.leaking() || !c.notes.has("jax") || c.rose("jax.compiles") >= kTable.repeats ||
      c.times("jax_compile") >= kTable.repeats)
    return {};
  if (c.rose("jax.live_bytes") > kTable.some * c.growth.total) return {};
  return inside(c, in_jaxlib, kTable.mostly, kTable.by_shape,
                "is native memory of JAX that belongs to no living array");
}

std::optional<Match> onednn_cache(const Case& c) {
  if (!c.leaking() && (c.growth.outcome != Outcome::kStopped || c.sites.gained < c.growth.small)) return {};
  std::optional<Match> m = inside(c, in_onednn, kTable.frames, kTable.made, "was allocated by oneDNN");
  if (!m) return {};
  m->kind = c.leaking() ? Kind::kLeak : Kind::kCache;
  const bool tensorflow = c.notes.has("tensorflow");
  take(*m,
       set_variable(format("Pad the inputs to a few shapes, or {}",
                           tensorflow ? "run TensorFlow without oneDNN: TF_ENABLE_ONEDNN_OPTS=0."
                                      : "let oneDNN keep fewer: ONEDNN_PRIMITIVE_CACHE_CAPACITY=64."),
                    tensorflow ? "TF_ENABLE_ONEDNN_OPTS" : "ONEDNN_PRIMITIVE_CACHE_CAPACITY", tensorflow ? "0" : "64"));
  return m;
}

/// `fresh`: a new function is jitted each time, as the calls of jax.jit tell.
std::optional<Match> jax_compiles(const Case& c, bool fresh) {
  const CountedLine* line = c.notes.line("jax_compile");
  // Lines are counted from the start on: a counter says what happened after warm-up.
  const bool counted = !counter(c.evidence, c.periods, "jax.compiles").empty();
  const double count = counted ? c.rose("jax.compiles") : c.times("jax_compile");
  if (!c.leaking() || count < kTable.repeats || (!line && !counted) || (counted && !c.still_rises("jax.compiles")))
    return {};
  // A new Keras model is compiled too: that is C5.
  if (count <= kTable.each_made * c.times("model", Unit::kModel)) return {};
  if (fresh != (c.times("jax_jit") >= kTable.most * count)) return {};
  Match m{.share = c.by_count(), .weight = kTable.counted};
  m.blame = line ? line->place : c.growing_loop();
  m.holder = "JAX's cache of compiled programs";
  m.evidence.push_back(
      format("JAX compiled {} after warm-up{}", often(count), line ? ", most often under " + at(line->place) : ""));
  const double arrays = c.rose("jax.live_bytes");
  if (!counter(c.evidence, c.periods, "jax.live_bytes").empty())
    m.evidence.push_back(format("living arrays grew by {} only", amount(arrays)));
  if (arrays > kTable.most * c.growth.total) m.share *= kTable.most;  // then the arrays are the growth
  return m;
}
std::optional<Match> jax_shapes(const Case& c) { return jax_compiles(c, false); }
std::optional<Match> jit_in_loop(const Case& c) { return jax_compiles(c, true); }

}  // namespace

const std::vector<Cause> kLibraries = {
    {.id = "C15",
     .title = "TensorBoard's histograms or profile keep memory",
     .fix = "TensorBoard(histogram_freq=0, profile_batch=0), or flush and close the writer each epoch.",
     .threads = {"keras#12481", "tensorflow#60917"},
     .detect = tensorboard},
    {.id = "C31",
     .title = "oneDNN prepares and keeps an operation for every new input shape",
     .fix = "Pad the inputs to a few shapes, or let oneDNN keep fewer (ONEDNN_PRIMITIVE_CACHE_CAPACITY).",
     .threads = {"pytorch#29893", "pytorch#98688", "dudarenok-maker/Castwright#1378"},
     .detect = onednn_cache},
    {.id = "C41",
     .title = "torch.compile compiles again and again, and its caches keep graphs and parameters",
     .fix = "Compile once and use the compiled module; mark changing sizes as dynamic (torch.compile(dynamic=True)); "
            "torch._dynamo.reset() frees the caches.",
     .threads = {"pytorch#119607", "pytorch#105181", "pytorch#149834"},
     .detect = torch_compile},
    {.id = "C44",
     .title = "Native memory of JAX stays after arrays and caches are gone",
     .fix = "Compile fewer shapes; restart the process for very long runs.",
     .threads = {"jax#19429"},
     .detect = jax_residue},
    {.id = "C42",
     .title = "JAX compiles a program for every new shape or static value, and keeps them all",
     .fix = "Pad or bucket the inputs (for example to multiples of 64) so that few programs are compiled; make "
            "static arguments dynamic; jax.clear_caches() frees old programs.",
     .threads = {"jax#2072", "jax#11923", "jax#10828"},
     .detect = jax_shapes},
    {.id = "C43",
     .title = "jax.jit is called in the loop on a function that is new each time",
     .fix = "Define and jit the function once, outside the loop, and pass what changes as arguments.",
     .threads = {"jax#282", "jax#7930"},
     .detect = jit_in_loop}};

}  // namespace millpond::verdict
