// The cached unwinder against that of the compiler: the same frames, through functions of every shape.
#include <alloca.h>
#include <doctest/doctest.h>
#include <string.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "probe/native_frames.h"

namespace {

using millpond::probe::stacks::Trace;
volatile int sink;
int compared, different;
uint32_t deepest;

__attribute__((noinline)) void compare() {
  Trace fast, slow;
  const void* caller = __builtin_return_address(0);
  millpond::probe::native::walk(fast, caller);
  millpond::probe::native::walk_slowly(slow, caller);
  ++compared;
  deepest = std::max(deepest, fast.count);
  different += fast.count != slow.count || memcmp(fast.frames, slow.frames, fast.count * sizeof(Frame)) != 0;
}

void descend(int depth);
__attribute__((noinline)) void plain(int depth) {
  descend(depth - 1);
  sink = depth;
}
__attribute__((noinline)) void with_alloca(int depth) {
  auto* p = static_cast<volatile char*>(alloca(size_t(16 + depth * 24)));
  p[0] = 1;
  descend(depth - 1);
  sink = p[0];
}
__attribute__((noinline)) void aligned(int depth) {
  alignas(128) volatile char room[256];
  room[depth] = 2;
  descend(depth - 1);
  sink = room[depth];
}
__attribute__((noinline)) void aligned_alloca(int depth) {
  alignas(64) volatile char room[64];
  auto* p = static_cast<volatile char*>(alloca(size_t(depth * 40 + 8)));
  p[0] = 3;
  room[1] = 3;
  descend(depth - 1);
  sink = p[0] + room[1];
}
__attribute__((noinline)) void through_library(int depth) {
  std::vector<int> values{3, 1, 2};
  bool once = false;
  std::sort(values.begin(), values.end(), [&](int a, int b) {
    if (!once) once = true, descend(depth - 1);
    return a < b;
  });
  sink = values[0];
}
extern "C" int compare_by(const void* a, const void*) {
  const int depth = *static_cast<const int*>(a);
  if (depth > 0) descend(depth - 1);
  return 0;
}
__attribute__((noinline)) void through_qsort(int depth) {
  int values[2] = {depth, depth};
  qsort(values, 2, sizeof(int), compare_by);
}
__attribute__((noinline)) void descend(int depth) {
  compare();
  if (depth <= 0) return;
  switch (depth % 6) {
    case 0:
      return plain(depth);
    case 1:
      return with_alloca(depth);
    case 2:
      return aligned(depth);
    case 3:
      return aligned_alloca(depth);
    case 4:
      return through_library(depth);
    default:
      return through_qsort(depth);
  }
}

}  // namespace

TEST_CASE("native walk: cached rules and the compiler's unwinder see the same frames") {
  millpond::probe::native::start();
  for (int round = 0; round < 20; ++round) descend(24);
  std::thread([] { descend(90); }).join();
  CHECK(different == 0);
  CHECK(compared == 20 * 25 + 91);
  CHECK(deepest == kMaxDepth);
}
