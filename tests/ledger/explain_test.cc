#include "ledger/explain.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/format.h"

using namespace millpond;
using namespace millpond::ledger;

namespace {

Bytes counted(const Explanation& e, std::string_view name) {
  for (const ExplainedLine& l : e.lines)
    if (l.name == name) return l.counted;
  return Bytes{-1};
}

MappingGroup group(std::string name, MappingKind kind, Bytes resident) {
  return {std::move(name), kind, resident, {}, 1};
}

// 100 MiB resident: 20 files, 1 stack, 2 code, 30 heap, 45 anonymous, 2 static.
Observation machine() {
  Observation o;
  o.resident = 100_MiB;
  o.groups = {group("/lib/libc.so", MappingKind::kFile, 12_MiB), group("/bin/x", MappingKind::kFile, 8_MiB),
              group("stack", MappingKind::kStack, 1_MiB),        group("jit code", MappingKind::kCode, 2_MiB),
              group("heap", MappingKind::kHeap, 30_MiB),         group("anonymous", MappingKind::kAnonymous, 45_MiB),
              group("static data", MappingKind::kStatic, 2_MiB)};
  return o;
}

Snapshot charged(Bytes on_heap, std::vector<ChargedRange> ranges = {}) {
  Snapshot s;
  s.current = on_heap;
  for (const ChargedRange& r : ranges) s.current += r.size;
  s.ranges = std::move(ranges);
  return s;
}

}  // namespace

TEST_CASE("explain: without charges only files, stacks and JIT code are explained") {
  const Explanation e = explain({}, machine());
  CHECK(e.explained == 23_MiB);
  CHECK(e.share() == doctest::Approx(0.23));
  CHECK(counted(e, "file /lib/libc.so") == 12_MiB);
  CHECK(to_string(e) ==
        "explained 23.0 MiB of 100 MiB (23.0 %); the rest is memory no one charged 75.0 MiB, static data 2.00 MiB");
}

TEST_CASE("explain: a range counts with what is resident of it, not with what was charged") {
  Observation o = machine();
  o.ranges = {{.account = "arena/unet", .charged = 1_GiB, .in_heap = {}, .in_anonymous = 40_MiB}};
  const Explanation e = explain(charged(0_B, {{"arena/unet", nullptr, 1_GiB}}), o);
  CHECK(counted(e, "arena/unet") == 40_MiB);
  CHECK(e.explained == 63_MiB);
}

TEST_CASE("explain: charges without an address are clipped to what malloc has and what is resident") {
  Observation o = machine();
  o.allocator = {.taken = 25_MiB, .in_use = 20_MiB, .free = 5_MiB, .free_resident = 5_MiB};
  CHECK(counted(explain(charged(10_MiB), o), "accounts on the heap") == 10_MiB);
  CHECK(counted(explain(charged(500_MiB), o), "accounts on the heap") == 25_MiB);
  o.allocator = {.taken = 1_GiB, .in_use = 1_GiB, .free = {}, .free_resident = {}};
  CHECK(counted(explain(charged(500_MiB), o), "accounts on the heap") == 75_MiB);
}

TEST_CASE("explain: free bytes of the allocator count only as far as they can be resident, and never twice") {
  Observation o = machine();
  o.allocator = {.taken = 32_MiB, .in_use = 20_MiB, .free = 12_MiB, .free_resident = 11_MiB};
  CHECK(counted(explain(charged(20_MiB), o), "free in the allocator") == 11_MiB);
  CHECK(counted(explain(charged(30_MiB), o), "free in the allocator") == 2_MiB);  // 30 of the 32 are taken already
  o.groups[4].resident = 10_MiB, o.groups[5].resident = 12_MiB;  // 22 of malloc's 32 can be resident at most
  CHECK(counted(explain(charged(0_B), o), "free in the allocator") == 2_MiB);
}

TEST_CASE("explain: never explains more than is resident") {
  Observation o = machine();
  o.ranges = {{.account = "a", .charged = 1_GiB, .in_heap = 900_MiB, .in_anonymous = 900_MiB}};
  o.allocator = {.taken = 1_GiB, .in_use = 0_B, .free = 1_GiB, .free_resident = 1_GiB};
  const Explanation e = explain(charged(1_GiB, {{"a", nullptr, 1_GiB}}), o);
  CHECK(e.explained <= e.resident);
  CHECK(e.explained == 98_MiB);  // all but the static data
}

TEST_CASE("growth: has its own share, and none where nothing grew") {
  Explanation start, now;
  start.resident = 100_MiB, start.explained = 50_MiB;
  now.resident = 140_MiB, now.explained = 89_MiB;
  CHECK(*growth(start, now).share == doctest::Approx(39.0 / 40));
  now.explained = 95_MiB;
  CHECK(*growth(start, now).share == 1);
  now.explained = 45_MiB;
  CHECK(*growth(start, now).share == 0);
  CHECK_FALSE(growth(now, start).share.has_value());
}

TEST_CASE("observe: charges of this very process are found in its resident memory, and its growth is explained") {
  Ledger l;
  const Explanation start = explain(l.snapshot(), observe(l.snapshot()));
  CHECK(start.share() > 0.3);  // libraries and stacks alone
  const Bytes size = 64_MiB;
  void* block =
      mmap(nullptr, size_t(size.value), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(block != MAP_FAILED);
  const Charge range(l, "arena/test", block, size);
  CHECK(counted(explain(l.snapshot(), observe(l.snapshot())), "arena/test") == 0_B);  // reserved, not touched

  std::memset(block, 1, size_t((24_MiB).value));
  const auto heap = std::make_unique<char[]>(size_t((16_MiB).value));
  std::memset(heap.get(), 1, size_t((16_MiB).value));
  const Charge on_heap(l, "data/synthetic", 16_MiB);
  const Explanation now = explain(l.snapshot(), observe(l.snapshot()));
  CHECK(counted(now, "arena/test") == 24_MiB);
  CHECK(now.explained <= now.resident);
  munmap(block, size_t(size.value));
  if (heap_state().taken == 0_B) return;  // a sanitizer's allocator, which does not tell
  CHECK(counted(now, "accounts on the heap") == 16_MiB);
  const Growth g = growth(start, now);
  CHECK(g.resident >= 40_MiB);
  CHECK(*g.share > 0.97);
}

TEST_CASE("observe: ranges that overlap count once") {
  Ledger l;
  void* block = mmap(nullptr, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(block, 1, 8 << 20);
  const Charge whole(l, "arena/whole", block, 8_MiB);
  const Charge half(l, "arena/half", static_cast<char*>(block) + (4 << 20), 4_MiB);
  const Explanation e = explain(l.snapshot(), observe(l.snapshot()));
  CHECK(counted(e, "arena/whole") == 8_MiB);
  CHECK(counted(e, "arena/half") == 0_B);
  munmap(block, 8 << 20);
}
