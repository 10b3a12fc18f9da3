// The pieces of memory against a search through both lists: the same region and block for every address.
#include "probe/pieces.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

namespace {

using millpond::probe::Pieces;

struct Range {
  uint64_t begin, end;
};

// Sorted, one behind another, of every size from a few bytes to some pieces, here and there right behind each other, in
// a few far parts of the addresses.
std::vector<Range> ranges(std::mt19937_64& random, uint64_t alignment) {
  std::vector<Range> all;
  for (const uint64_t part :
       {uint64_t{0x10000}, uint64_t{0x5500'0000'0000}, uint64_t{0x7f00'0000'0000}, uint64_t{0x7fff'fff0'0000}}) {
    uint64_t at = part;
    for (int i = 0; i < 40; ++i) {
      at += random() % 3 == 0 ? 0 : random() % 200'000 / alignment * alignment;
      const uint64_t size = (1 + (random() % 4 == 0 ? random() % 300'000 : random() % 5'000) / alignment) * alignment;
      if (at + size > uint64_t{1} << 47) break;
      all.push_back({at, at + size});
      at += size;
    }
  }
  return all;
}

int last_that_holds(const std::vector<Range>& all, uint64_t address) {
  for (size_t i = 0; i < all.size(); ++i)
    if (address >= all[i].begin && address < all[i].end) return int(i);
  return -1;
}

// As scan.cc goes on from where a piece says that the search begins.
int found(const std::vector<Range>& all, bool any, size_t i, uint64_t address) {
  if (!any) return -1;
  while (i + 1 < all.size() && all[i + 1].begin <= address) ++i;
  return address >= all[i].begin && address < all[i].end ? int(i) : -1;
}

}  // namespace

TEST_CASE("pieces: every address leads to the region and the block that a search through all of them finds") {
  std::mt19937_64 random(20261118);
  for (int round = 0; round < 20; ++round) {
    const std::vector<Range> regions = ranges(random, 4096), blocks = ranges(random, 16);
    size_t most = 0;
    for (const Range& r : regions) most += Pieces::touched(r.begin, r.end);
    for (const Range& b : blocks) most += Pieces::touched(b.begin, b.end);
    Pieces pieces;
    REQUIRE(pieces.start(most));
    for (size_t i = 0; i < regions.size(); ++i) pieces.add_region(regions[i].begin, regions[i].end, uint32_t(i));
    for (size_t i = 0; i < blocks.size(); ++i) pieces.add_block(blocks[i].begin, blocks[i].end, uint32_t(i));
    REQUIRE_FALSE(pieces.is_full());
    std::vector<uint64_t> asked{0, 1, ~uint64_t{0}, uint64_t{1} << 47, (uint64_t{1} << 47) - 1};
    for (const auto& all : {regions, blocks})
      for (const Range& r : all)
        for (const uint64_t at : {r.begin - 1, r.begin, r.begin + (r.end - r.begin) / 2, r.end - 1, r.end})
          asked.push_back(at);
    for (const uint64_t at : asked) {
      const uint32_t piece = pieces.of(at);
      const Pieces::Piece& p = pieces[piece];  // number 0 has neither
      CHECK(found(regions, p.has_region, p.region, at) == last_that_holds(regions, at));
      CHECK(found(blocks, p.has_block, p.block, at) == last_that_holds(blocks, at));
    }
  }
}

TEST_CASE("pieces: a place is new once") {
  Pieces pieces;
  REQUIRE(pieces.start(4));
  pieces.add_region(0x20000, 0x40000, 0);
  std::set<uint64_t> seen;
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t at = 0x20000 + random() % 0x20000 / 16 * 16;
    CHECK(pieces.is_new(pieces.of(at), at) == seen.insert(at).second);
  }
}

TEST_CASE("pieces: more than there is room for is told") {
  Pieces pieces;
  REQUIRE(pieces.start(2));
  pieces.add_region(0x10000, 0x30000, 0);
  CHECK_FALSE(pieces.is_full());
  pieces.add_region(0x30000, 0x50000, 1);
  CHECK(pieces.is_full());
}
