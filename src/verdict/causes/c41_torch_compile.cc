#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool dynamo(const Frame& f) {
  return contains(f.file, "torch/_dynamo") || contains(f.file, "torch/_inductor") ||
         contains(f.file, "torch/_functorch");
}

std::optional<Match> torch_compile(const Case& c) {
  if (!c.leaking()) return {};
  const std::optional<double> under = c.growth_share(dynamo);
  if (under.value_or(0) < 0.4) return {};
  Match m{.share = *under * (1 - c.data_share()), .weight = 0.95};
  m.blame = c.growing_place();
  m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated while torch.compile worked", 100 * *under));
  return m;
}

}  // namespace

const Cause c41_torch_compile = {
    .id = "C41",
    .title = "torch.compile compiles again and again, and its caches keep graphs and parameters",
    .explanation = "A new module, shape or closure is compiled anew; the caches live with the process.",
    .fix =
        "Compile once and use the compiled module; mark changing sizes as dynamic (torch.compile(dynamic=True)); "
        "torch._dynamo.reset() frees the caches.",
    .threads = {"pytorch#119607", "pytorch#105181", "pytorch#149834"},
    .detect = torch_compile};

}  // namespace millpond::verdict
