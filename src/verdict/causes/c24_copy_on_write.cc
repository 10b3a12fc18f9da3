#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> copy_on_write(const Case& c) {
  if (!c.leaking() || !c.growth.by_tree) return {};
  Match m{.share = 0.9, .weight = 0.9};
  // The many small objects that were there before the workers came: reading one writes its reference count.
  const SiteGroup* objects = nullptr;
  for (const SiteGroup& s : c.sites.groups)
    if (s.user && s.block() < 1024 && !c.imports(s) && s.bytes > 0.2 * c.growth.total && (!objects || s.bytes > objects->bytes)) objects = &s;
  if (objects) m.blame = c.with_text(objects->place);
  for (const char* what : {"dataloader", "fit"})
    if (const CountedLine* line = c.notes.line(what); line && !m.blame) m.blame = line->place;
  const int processes = c.periods.marks.back()->processes;
  m.evidence.push_back(
      format("{} processes; resident memory of each hides it, the sum of their private pages shows it", processes));
  return m;
}

}  // namespace

const Cause c24_copy_on_write = {
    .id = "C24",
    .title = "Worker processes copy the pages of Python objects by touching their reference counts",
    .explanation =
        "A worker shares the parent's memory until it writes. Reading a Python object writes its reference count, so "
        "lists and dicts are copied page by page.",
    .fix =
        "Hold the data in one NumPy array, tensor or Arrow table (or shared memory) instead of a list or dict of "
        "Python objects.",
    .threads = {"pytorch#13246", "pytorch#20433"},
    .detect = copy_on_write};

}  // namespace millpond::verdict
