#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"
#include "verdict/pattern.h"

namespace millpond::verdict {
namespace {

/// By name: torch hands a hook its module, inputs and output, and people call what they make of it by these words.
bool in_hook(const Container& k) {
  const std::string function = lower(k.place.function);
  if (contains(k.words(), "hook") || contains(function, "hook")) return true;
  const std::optional<Addition> add = addition(k.place.snippet);
  if (!add || !is_tensor(k.item_type)) return false;
  static const Pattern given(R"(\b(outputs?|outp?|inputs?|inp|grad_outputs?|grad_inputs?|activations?)\b)");
  static const Pattern records(R"(record|captur|activation|extract|probe|spy|tap)");
  return given.in(add->argument) && records.in(function);
}

/// A hook is called by torch's Module: the line that adds is then reached from module.py.
bool called_by_module(const Case& c, const Container& k) {
  for (const Site& s : c.evidence.sites)
    for (size_t i = 0; i + 1 < s.frames.size(); ++i)
      if (s.frames[i].function == k.place.function && s.frames[i].file == k.place.file &&
          contains(s.frames[i + 1].file, "torch/nn/modules/module.py"))
        return true;
  return false;
}

std::optional<Match> detect(const Case& c) {
  if (!c.leaking() || !c.notes.has("torch")) return {};
  for (const Container& k : c.notes.containers) {
    if (!k.still || k.bounded) continue;
    const bool named = in_hook(k);
    if (!named && !(is_tensor(k.item_type) && called_by_module(c, k))) continue;
    Match m{.share = std::max(c.share(k), named ? 0.6 : 0.0), .weight = 1.1, .confidence = 0.88};
    if (m.share < 0.3) continue;
    m.blame = k.place;
    m.holder = tell(k);
    m.evidence.push_back(format("{} is filled by a hook: {:.3g} more {}, {} in all", tell(k), k.per_period, every(c),
                                amount(k.bytes_per_period)));
    const std::optional<Addition> add = addition(k.place.snippet);
    if (add)
      m.fix = format("Keep the latest only: `{}_latest = {}` instead of `{}`, and call handle.remove() when done.",
                     add->target, add->argument, k.place.snippet);
    return m;
  }
  return {};
}

}  // namespace

const Cause c38_hook_keeps = {
    .id = "C38",
    .title = "A hook of a torch module keeps the activations of every forward pass",
    .explanation =
        "A forward hook runs with every batch; what it stores, or what its closure refers to, lives as long as the "
        "module.",
    .fix = "Keep only the latest activation or a running statistic, detached, and remove the handle when done.",
    .threads = {"pytorch#82528", "pytorch#46386", "opacus#176"},
    .detect = detect};

}  // namespace millpond::verdict
