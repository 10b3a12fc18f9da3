// The filter of sampled blocks: it never denies one that is alive, and says "no" to nearly all others.
#include "probe/filter.h"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace {

namespace live = millpond::probe::live;

const void* address(uint64_t number) { return reinterpret_cast<const void*>(0x7f00'0000'0000 + 16 * number); }

}  // namespace

TEST_CASE("filter: with 8,000 blocks alive it holds every one of them, and fewer than 1 in 20 others") {
  std::mt19937_64 random(7);
  std::vector<const void*> alive;
  for (int i = 0; i < 8000; ++i) live::enter(alive.emplace_back(address(random() >> 24)));
  for (const void* p : alive) CHECK(live::may_hold(p));
  int held = 0;
  constexpr int kAsked = 100'000;
  for (int i = 0; i < kAsked; ++i) held += live::may_hold(address((uint64_t{1} << 41) + (random() >> 24)));
  CHECK(held < kAsked / 20);
  for (const void* p : alive) live::leave(p);
  held = 0;
  for (const void* p : alive) held += live::may_hold(p);
  CHECK(held == 0);  // no counter was ever full
}

TEST_CASE("filter: what one thread has entered it finds, whatever others enter and leave by the same bits") {
  // Some share a bit, all have theirs in the same word.
  std::vector<const void*> shared;
  for (uint64_t number = 0; number < 64; ++number) shared.push_back(address(number));
  std::atomic<bool> begin{false};
  std::atomic<int64_t> denied{0}, others{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!begin) std::this_thread::yield();
      for (int i = 0; i < 500'000; ++i) {
        const void* p = shared[random() % shared.size()];
        live::enter(p);
        for (int look = 0; look < 3; ++look) denied += !live::may_hold(p);
        live::leave(p);
      }
    });
  begin = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(denied == 0);
  for (const void* p : shared) others += live::may_hold(p);
  CHECK(others == 0);
}

TEST_CASE("filter: what is marked stays, however often its neighbours leave") {
  const void* p = address(12345);
  live::mark(p);
  for (int i = 0; i < 300; ++i) live::enter(p), live::leave(p);
  for (int i = 0; i < 10; ++i) live::leave(p);
  CHECK(live::may_hold(p));
  live::forget_filter();
  CHECK(!live::may_hold(p));
}
