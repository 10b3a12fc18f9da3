#include <algorithm>

#include "base/format.h"
#include "verdict/causes/retention.h"

namespace millpond::verdict {
namespace {

std::optional<Match> shuffle_retention(const Case& c) {
  const Stage* stage = c.notes.stage("shuffle");
  std::optional<Retention> r = retention(c);
  const Growth& g = c.growth;
  // Between epochs the buffer is empty and the allocator has kept it: with such a buffer in the program less is enough.
  const double freed = g.returned - g.by_gc;
  if (!r && stage && stage->buffer.value_or(1e9) >= 100 && !c.leaking() && !g.garbage && freed >= std::max(48e6, 0.1 * g.returned_rss))
    r = Retention{freed, false, format("trim gave back {} of {} at once", amount(freed), amount(g.returned_rss))};
  if (!stage || !r) return {};
  Match m = retention_match(c, *r);
  m.weight = 1;
  m.blame = stage->place;
  return m;
}

}  // namespace

const Cause c21_shuffle_retention = {
    .id = "C21",
    .title = "Elements of the shuffle buffer were freed, and the C allocator keeps their memory",
    .explanation = "The buffer's many blocks are freed between epochs; glibc keeps the pages for later.",
    .fix =
        "Not a leak. Shuffle before decoding, use a smaller buffer, preload tcmalloc or jemalloc, or set "
        "MALLOC_ARENA_MAX=2.",
    .threads = {"tensorflow#44176", "tensorflow#34942"},
    .detect = shuffle_retention};

}  // namespace millpond::verdict
