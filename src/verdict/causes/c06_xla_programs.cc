#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/retrace.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool compiler(const Frame& f) {
  return contains(f.function, "xla::") || contains(f.function, "llvm::") || contains(f.function, "mlir::");
}

std::optional<Match> xla_programs(const Case& c) {
  if (const std::optional<Retrace> r = retrace(c); r && r->why == Why::kCompiled) {
    Match m = retrace_match(c, *r);
    m.holder = "XLA's compiled programs";
    m.title = "A new function is compiled by XLA in every round, and compiled programs are never thrown away";
    m.fix = "Make the function once, outside the loop, and give it what changes as tensors; or leave out jit_compile=True.";
    if (r->line) take(m, without_xla(*r->line));
    m.evidence.push_back("each of them is a new function with jit_compile=True");
    return m;
  }
  if (!c.leaking() || !c.notes.has("tensorflow") ||
      c.times("model", Unit::kModel) + c.times("compile", Unit::kCompile) < 3)
    return {};
  const std::optional<double> under = c.growth_share(compiler);
  if (under.value_or(0) < 0.4) return {};
  Match m{.share = *under, .weight = 0.95};
  if (c.periods.rate(Unit::kModel) > 0) m.unit = Unit::kModel;
  if (const CountedLine* line = c.notes.line("model")) m.blame = line->loop ? *line->loop : c.loop_place(line->place);
  m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated by the XLA compiler", 100 * *under));
  return m;
}

}  // namespace

const Cause c06_xla_programs = {
    .id = "C6",
    .title = "Each new model is compiled by XLA, and compiled programs are never thrown away",
    .explanation = "TensorFlow has no limit on XLA executables; they live as long as the process.",
    .fix = "Use one model again, or give model.compile the argument `jit_compile=False`.",
    .threads = {"tensorflow#64170", "tensorflow#66434", "tensorflow#52645"},
    .detect = xla_programs};

}  // namespace millpond::verdict
