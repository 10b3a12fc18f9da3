#include "verdict/causes/retention.h"

namespace millpond::verdict {
namespace {

std::optional<Match> detect(const Case& c) {
  const std::optional<Retention> r = retention(c);
  if (!r) return {};
  return retention_match(c, *r);
}

}  // namespace

const Cause c25_allocator_keeps = {
    .id = "C25",
    .title = "The program freed memory, and the C allocator keeps it for later",
    .explanation = "glibc returns pages only from the top of its heaps; each thread may have heaps of its own.",
    .fix =
        "Not a leak. MALLOC_ARENA_MAX=2 or preloading jemalloc or tcmalloc keeps it lower; one large array instead of "
        "many blocks is given back "
        "at once; ctypes.CDLL(None).malloc_trim(0) returns it.",
    .threads = {"vllm-omni#6462", "SynaLinks/synalinks#102", "dask#3530"},
    .detect = detect};

}  // namespace millpond::verdict
