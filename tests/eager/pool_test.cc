// The pool of eager tensors' bytes.
#include "eager/pool.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "base/random.h"
#include "base/segment.h"

using namespace millpond;

namespace {
Bytes held() {
  Bytes sum;
  each_holding([&](const std::string& account, Bytes b) { sum += account == "eager/pool" ? b : Bytes{}; });
  return sum;
}
}  // namespace

TEST_CASE("pool: blocks never overlap, are aligned, and waste at most a fifth above 256 bytes") {
  eager::Pool pool(backend::default_backend(), 1_MiB);
  std::map<std::byte*, Bytes> taken;
  std::vector<eager::Pool::Block> blocks;
  Random random(1);
  Bytes asked;
  for (int i = 0; i < 2000; ++i) {
    const Bytes size{int64_t(std::exp(random.uniform() * 14))};
    const eager::Pool::Block b = pool.take(size);
    CHECK(reinterpret_cast<uintptr_t>(b.at) % 64 == 0);
    const auto after = taken.lower_bound(b.at);
    if (after != taken.end()) CHECK(b.at + size.value <= after->first);
    if (after != taken.begin()) CHECK(std::prev(after)->first + std::prev(after)->second.value <= b.at);
    taken[b.at] = size;
    blocks.push_back(b);
    if (random.below(3) == 0) {
      const size_t k = size_t(random.below(blocks.size()));
      taken.erase(blocks[k].at);
      pool.give(blocks[k]);
      blocks.erase(blocks.begin() + ptrdiff_t(k));
    }
  }
  for (const eager::Pool::Block& b : blocks) pool.give(b);
  CHECK(pool.used() == 0_B);
  for (int64_t n : {257, 300, 1000, 4097, 70000, 3000001}) {
    const eager::Pool::Block b = pool.take(Bytes{n});
    CHECK(pool.used().value >= n);
    CHECK(double(pool.used().value) <= 1.25 * double(n) + 64);
    pool.give(b);
  }
}

TEST_CASE("pool: what is idle stays within the bound, is found again, and goes when it is trimmed or forgotten") {
  const Bytes before = held();
  eager::Pool pool(backend::default_backend(), 1_MiB);
  std::vector<eager::Pool::Block> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(pool.take(100_KiB));
  CHECK((held() - before).value >= 40 * 100 * 1024);
  for (const eager::Pool::Block& b : blocks) pool.give(b);
  CHECK(pool.idle() <= 1_MiB);
  CHECK(held() - before <= 1_MiB);
  CHECK(pool.idle() > 0_B);
  const Bytes kept = pool.idle();
  for (int i = 0; i < 1000; ++i) pool.give(pool.take(100_KiB));
  CHECK(pool.idle() == kept);
  CHECK(pool.trim() == kept);
  CHECK(held() == before);
  // What was not taken for long goes by itself; the size that is taken all the time stays.
  pool.give(pool.take(300_KiB));
  for (int i = 0; i < 40000; ++i) pool.give(pool.take(64_B));
  CHECK(held() - before == 64_KiB);
}
