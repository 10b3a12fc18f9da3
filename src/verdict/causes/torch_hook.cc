#include "verdict/causes/torch_hook.h"

#include <algorithm>

#include "verdict/causes/words.h"
#include "verdict/pattern.h"

namespace millpond::verdict {
namespace {

enum class Caller { kUnknown, kModule, kUser };

/// A hook is called by torch: by its Module, or by the backward pass. What reaches the line without any of torch's
/// files in between is a plain loop, whatever it is called.
Caller caller_of(const Case& c, const Place& line) {
  Caller caller = Caller::kUnknown;
  for (const Site& s : c.evidence.sites)
    for (size_t i = 0; i < s.frames.size(); ++i) {
      if (s.frames[i].function != line.function || s.frames[i].file != line.file) continue;
      const std::span<const Frame> above = std::span(s.frames).subspan(i + 1);
      if (!above.empty() && contains(above.front().file, "torch/nn/modules/module.py")) return Caller::kModule;
      const bool torch = std::ranges::any_of(above, [](const Frame& f) { return contains(f.file, "/torch/"); });
      if (!torch) caller = Caller::kUser;
      break;
    }
  return caller;
}

}  // namespace

bool named_after_hook(const Container& k) {
  const std::string function = lower(k.place.function);
  if (contains(k.words(), "hook") || contains(function, "hook")) return true;
  const std::optional<Addition> add = addition(k.place.snippet);
  if (!add || !is_tensor(k.item_type)) return false;
  // torch hands a hook its module, inputs and output, and people call what they make of it by these words.
  static const Pattern given(R"(\b(outputs?|outp?|inputs?|inp|grad_outputs?|grad_inputs?|activations?)\b)");
  static const Pattern records(R"(record|captur|activation|extract|probe|spy|tap)");
  return given.in(add->argument) && records.in(function);
}

bool filled_by_hook(const Case& c, const Container& k) {
  const bool tensors = is_tensor(k.item_type), named = named_after_hook(k);
  if (!c.notes.has("torch") || (!tensors && !named)) return false;
  const Caller caller = caller_of(c, k.place);
  if (caller == Caller::kModule && tensors) return true;
  // A line that registers hooks is called by the user too: only what adds to the container itself is no hook then.
  return named && !(caller == Caller::kUser && addition(k.place.snippet));
}

}  // namespace millpond::verdict
