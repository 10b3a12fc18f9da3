#include "probe/snapshot.h"

#include <algorithm>

#include "probe/file.h"
#include "probe/live.h"
#include "probe/system.h"

namespace millpond::probe::snapshot {
namespace {

struct Sum {
  uint64_t bytes, oldest_ms;
  double blocks;
  uint64_t by_age[kAgeBins];
};
struct Scratch {
  Sum sums[kStacks];
  uint32_t touched[kStacks];
  SiteBytes sites[kSites + 1];
};
Scratch* scratch = nullptr;

void add(Sum& sum, const Sum& more) {
  sum.bytes += more.bytes;
  sum.blocks += more.blocks;
  sum.oldest_ms = std::min(sum.oldest_ms, more.oldest_ms);
  for (int i = 0; i < kAgeBins; ++i) sum.by_age[i] += more.by_age[i];
}
SiteBytes site_of(uint32_t stack, const Sum& sum) {
  SiteBytes site{};
  site.stack = stack;
  site.blocks = float(sum.blocks);
  site.bytes = sum.bytes;
  for (int i = 0; i < kAgeBins; ++i)
    site.age_kib[i] = uint32_t(std::min<uint64_t>((sum.by_age[i] + 512) >> 10, 0xffffffffu));
  site.oldest_ms = sum.oldest_ms;
  return site;
}

}  // namespace

Taken take(uint64_t now_ms, uint64_t first_period_ms) {
  if (!scratch) {
    scratch = static_cast<Scratch*>(sys::map_private(sizeof(Scratch)));
    if (!scratch) return {};
    file::add(file::shared->probe_bytes, sizeof(Scratch));
  }
  Scratch& s = *scratch;
  uint32_t stacks = 0;
  const uint64_t span = first_period_ms && now_ms > first_period_ms ? now_ms - first_period_ms : 0;
  for (uint32_t i = live::next(0); i < kLiveSlots; i = live::next(i + 1)) {
    Live entry;
    if (!live::read(i, entry)) continue;
    Sum& sum = s.sums[entry.stack];
    if (sum.blocks == 0) {
      s.touched[stacks++] = entry.stack;
      sum.oldest_ms = entry.born_ms;
    }
    Sum one{entry.bytes, entry.born_ms, entry.blocks, {}};
    uint64_t bin = 0;
    if (span && entry.born_ms > first_period_ms)
      bin = std::min<uint64_t>((entry.born_ms - first_period_ms) * kAgeBins / span, kAgeBins - 1);
    one.by_age[bin] = entry.bytes;
    add(sum, one);
  }
  const uint32_t shown = std::min(stacks, kSites);
  std::partial_sort(s.touched, s.touched + shown, s.touched + stacks,
                    [&](uint32_t a, uint32_t b) { return s.sums[a].bytes > s.sums[b].bytes; });
  for (uint32_t i = 0; i < shown; ++i) s.sites[i] = site_of(s.touched[i], s.sums[s.touched[i]]);
  Taken taken{s.sites, shown};
  if (stacks > shown) {
    Sum rest = s.sums[s.touched[shown]];
    for (uint32_t i = shown + 1; i < stacks; ++i) add(rest, s.sums[s.touched[i]]);
    s.sites[taken.count++] = site_of(kRest, rest);
  }
  for (uint32_t i = 0; i < stacks; ++i) s.sums[s.touched[i]] = {};
  return taken;
}

void forget() {
  if (!scratch) return;
  sys::wipe(scratch, sizeof(Scratch));
  if (file::state != file::kInert) file::add(file::shared->probe_bytes, sizeof(Scratch));
}

void release() {
  if (scratch) sys::unmap(scratch, sizeof(Scratch));
  scratch = nullptr;
}

}  // namespace millpond::probe::snapshot
