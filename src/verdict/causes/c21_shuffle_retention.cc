#include "verdict/causes/retention.h"

namespace millpond::verdict {
namespace {

std::optional<Match> detect(const Case& c) {
  const Stage* stage = c.notes.stage("shuffle");
  const std::optional<Retention> r = retention(c);
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
    .detect = detect};

}  // namespace millpond::verdict
