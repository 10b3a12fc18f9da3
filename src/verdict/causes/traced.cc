// Graphs of TensorFlow: functions that are traced again and again, a loop or an array that is traced into one.
#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

enum class Why { kArgument, kCallable, kShape, kCompiled };

struct Retrace {
  Why why = Why::kArgument;
  std::optional<Place> place;         // the user's line under which it happens
  double count = 0;                   // after warm-up
  const CountedLine* line = nullptr;  // that place, as it was counted
};

bool new_functions(const Case& c) {
  for (const GrowingType& t : c.notes.types)
    if (contains(t.type, "polymorphic_function.Function") || t.type == "Function" || contains(t.type, "tf.function"))
      return t.per_period >= kTable.half_each;
  return false;
}

std::optional<Retrace> retrace(const Case& c) {
  if (!c.leaking()) return {};
  Retrace r;
  r.count = std::max(c.rose("tf.traces"), c.times("trace"));
  const CountedLine* line = c.notes.line("trace");
  if (r.count < kTable.repeats || (!line && c.rose("tf.traces") < kTable.repeats)) return {};
  // A new model or a new compile is traced for training, validation and prediction: no mystery in that.
  const double made = c.times("model", Unit::kModel) + c.times("compile", Unit::kCompile) + c.times("load_model");
  if (r.count <= kTable.each_made * made + 1) return {};
  if (line) r.place = line->place, r.line = line;
  for (const SeenAdvice& a : c.notes.advice)
    if (!r.place && a.what == "retracing") r.place = a.place;
  if (line && line->why.all() >= kTable.repeats) {  // as the agent saw it
    const TraceReasons& why = line->why;
    const double most = std::max({why.fresh + why.object, why.literal, why.shape});
    r.why = most == why.literal ? Why::kArgument : most == why.shape ? Why::kShape : Why::kCallable;
    if (r.why == Why::kCallable && why.jit > kTable.most * line->count) r.why = Why::kCompiled;
    return r;
  }
  r.why = new_functions(c) ? Why::kCallable : Why::kShape;
  return r;
}

Match retrace_match(const Case& c, const Retrace& r) {
  Match m;
  // Traced code calls the user's function: the line that matters is the one that calls it.
  m.blame = r.place ? r.place : c.growing_loop();
  std::optional<double> under;
  if (m.blame) under = c.growth_share(*m.blame);
  m.share = std::clamp(under.value_or(kTable.by_count), kTable.mostly, 1.0) * c.beside_data();
  m.weight = kTable.counted;
  m.holder = "the cache of traces of the tf.function";
  m.evidence.push_back(format("tf.functions were traced {} after warm-up{}", often(r.count),
                              r.place ? ", most often under " + at(*r.place) : ""));
  if (under) m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated under that line", 100 * *under));
  return m;
}

template <Why why, Fix (*fix)(const CountedLine&)>
std::optional<Match> traced_again(const Case& c) {
  const std::optional<Retrace> r = retrace(c);
  if (!r || r->why != why) return {};
  Match m = retrace_match(c, *r);
  if (r->line) take(m, fix(*r->line));
  return m;
}

std::optional<Match> loop_in_function(const Case& c) {
  // One trace, and most of what was taken since the start is small blocks under its line: the whole loop in a graph.
  const CountedLine* line = c.notes.line("trace");
  if (!line || c.notes.count("trace") > kTable.each_made || c.jump() < c.least(kTable.graph, kTable.graph_share))
    return {};
  const auto under = [&](int site) {
    return std::ranges::any_of(c.evidence.sites[size_t(site)].frames,
                               [&](const Frame& f) { return same_line(line->place, f); });
  };
  double small = 0;
  for (const SiteGroup& s : c.sites.groups)
    if (s.block() < kTable.large_block)
      small += s.bytes * double(std::ranges::count_if(s.sites, under)) / double(s.sites.size());
  if (small < kTable.most * c.jump()) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .weight = kTable.made, .bytes = small};
  m.blame = line->place;
  m.evidence.push_back(format("{} in small blocks are alive under {}, which was traced {}", amount(small),
                              at(line->place), often(line->count)));
  return m;
}

bool compiler(const Frame& f) {
  return contains(f.function, "xla::") || contains(f.function, "llvm::") || contains(f.function, "mlir::");
}

std::optional<Match> xla_programs(const Case& c) {
  if (const std::optional<Retrace> r = retrace(c); r && r->why == Why::kCompiled) {
    Match m = retrace_match(c, *r);
    m.holder = "XLA's compiled programs";
    m.title = "A new function is compiled by XLA in every round, and compiled programs are never thrown away";
    m.fix =
        "Make the function once, outside the loop, and give it what changes as tensors; or leave out jit_compile=True.";
    if (r->line) take(m, without_xla(*r->line));
    m.evidence.push_back("each of them is a new function with jit_compile=True");
    return m;
  }
  if (!c.leaking() || !c.notes.has("tensorflow") ||
      c.times("model", Unit::kModel) + c.times("compile", Unit::kCompile) < kTable.repeats)
    return {};
  const std::optional<double> under = c.growth_share(compiler);
  if (under.value_or(0) < kTable.frames) return {};
  Match m{.share = *under, .weight = kTable.counted};
  if (c.periods.rate(Unit::kModel) > 0) m.unit = Unit::kModel;
  m.blame = c.made_at();
  m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated by the XLA compiler", 100 * *under));
  return m;
}

std::optional<Match> baked_constant(const Case& c) {
  if (c.leaking()) {
    // Every trace brings the same large blocks again; a graph's own are far smaller on the average of a place.
    const CountedLine* line = c.notes.line("trace");
    if (!line || std::max(c.rose("tf.traces"), c.times("trace")) < kTable.repeats) return {};
    const double large = c.grown_in_blocks(kTable.large_constant);
    const std::optional<double> under = c.growth_share(line->place);
    if (large < kTable.most * c.growth.total || under.value_or(0) < kTable.mostly) return {};
    Match m{.share = std::min(1.0, *under) * (1 - c.data_share())};
    m.blame = line->place;
    m.evidence.push_back(
        format("{} of the growth are large blocks, made while tracing under {}", amount(large), at(line->place)));
    return m;
  }
  const Stage* slices = c.notes.stage("from_tensor_slices");
  if (!slices) slices = c.notes.stage("from_tensors");
  if (!slices) return {};
  const double bytes = c.reserved_at(slices->place);
  if (bytes < c.least(kTable.named, kTable.named_share)) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .bytes = bytes};
  m.blame = slices->place;
  m.evidence.push_back(format("{} are alive that {} took once", amount(bytes), at(slices->place)));
  return m;
}

}  // namespace

const std::vector<Cause> kTraced = {
    {.id = "C1",
     .title = "A tf.function gets a Python number that changes, so every call is traced anew and every trace is kept",
     .fix = "Pass the number as a tensor of the type that the function computes with (tf.constant with that dtype), "
            "or keep it in a tf.Variable that is assigned to, so that the function is traced once.",
     .threads = {"tensorflow#24726", "tensorflow#29027", "tensorflow/addons#807"},
     .detect = traced_again<Why::kArgument, give_tensor>},
    {.id = "C2",
     .title = "A new tf.function or callable is made in every round of the loop, and each brings a graph that stays",
     .fix = "Make the function once, outside the loop, and pass objects that stay the same.",
     .threads = {"tensorflow#31175", "tensorflow#26311", "tensorflow#50379"},
     .detect = traced_again<Why::kCallable, make_once>},
    {.id = "C3",
     .title = "Inputs keep coming in new shapes, and TensorFlow traces and keeps a graph for each",
     .fix = "Pad the inputs to a few lengths, or declare the dimension as unknown: None in the input_signature of "
            "the tf.function, None in the shape of keras.Input. A ragged last batch goes with drop_remainder=True.",
     .threads = {"tensorflow#124972", "tensorflow#38002"},
     .detect = traced_again<Why::kShape, relax_shapes>},
    {.id = "C4",
     .title = "A whole training loop was traced into one graph",
     .fix = "Decorate the step, not the loop; make optimizer and variables outside; loop with tf.range if the loop "
            "must be inside.",
     .threads = {"tensorflow#36988", "tensorflow#48732"},
     .detect = loop_in_function},
    {.id = "C6",
     .title = "Each new model is compiled by XLA, and compiled programs are never thrown away",
     .fix = "Use one model again, or give model.compile the argument `jit_compile=False`.",
     .threads = {"tensorflow#64170", "tensorflow#66434", "tensorflow#52645"},
     .detect = xla_programs},
    {.id = "C11",
     .title = "An array was copied into a graph as a constant",
     .fix = "Pass the array as an argument or keep it in a tf.Variable; feed large arrays by a generator or by "
            "keras.utils.PyDataset.",
     .threads = {"tensorflow#38693", "jax#16278", "jax#11448"},
     .detect = baked_constant}};

}  // namespace millpond::verdict
