#include "verdict/causes/torch_hook.h"

#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

/// A hook is called by torch's Module, right above the line's own function.
bool called_by_module(const Case& c, const Place& line) {
  for (const Site& s : c.evidence.sites)
    for (size_t i = 0; i + 1 < s.frames.size(); ++i)
      if (s.frames[i].function == line.function && s.frames[i].file == line.file && contains(s.frames[i + 1].file, "torch/nn/modules/module.py")) return true;
  return false;
}

}  // namespace

bool filled_by_hook(const Case& c, const Container& k) {
  if (!c.notes.has("torch")) return false;
  return contains(k.holder, " hook of ") || (is_tensor(k.item_type) && called_by_module(c, k.place));  // the agent's own words: it was reached through a module's table of hooks
}

}  // namespace millpond::verdict
