#include "verdict/causes/fixes.h"
#include "verdict/causes/retention.h"

namespace millpond::verdict {
namespace {

std::optional<Match> allocator_keeps(const Case& c) {
  const std::optional<Retention> r = retention(c);
  if (!r) return {};
  Match m = retention_match(c, *r);
  take(m, give_back(c, m.blame));
  return m;
}

}  // namespace

const Cause c25_allocator_keeps = {
    .id = "C25",
    .title = "The program freed memory, and the C allocator keeps it for later",
    .explanation = "glibc returns pages only from the top of its heaps; each thread may have heaps of its own.",
    .fix =
        "Not a leak. One large array instead of many blocks is given back at once when it is freed; `ctypes.CDLL(None).malloc_trim(0)` returns what is kept; "
        "with many threads MALLOC_ARENA_MAX=2 in the environment, or preloading jemalloc or tcmalloc, keeps it lower.",
    .threads = {"vllm-omni#6462", "SynaLinks/synalinks#102", "dask#3530"},
    .detect = allocator_keeps};

}  // namespace millpond::verdict
