#include <doctest/doctest.h>

#include "base/format.h"
#include "plan/graphs.h"

using namespace millpond;
using namespace millpond::plan;
using Sentences = std::vector<std::string>;

namespace {

// a and b live together at calls 1 and 2; v is a view of a; r is reserved; z comes when all are dead.
Problem small() {
  return {.buffers = {{.name = "a", .size = 128_B, .first = 0, .last = 2},
                      {.name = "b", .size = 64_B, .first = 1, .last = 3},
                      {.name = "v", .size = 64_B, .first = 2, .last = 2, .inside = BufferId{0}, .inside_offset = 64_B},
                      {.name = "r", .size = 64_B, .first = 0, .last = 0, .offset = 256_B},
                      {.name = "z", .size = 64_B, .first = 5, .last = 5}},
          .calls = 6};
}
Plan good() { return {.offsets = {0_B, 128_B, 64_B, 256_B, 0_B}, .size = 320_B, .lower_bound = 320_B, .method = {}}; }

}  // namespace

TEST_CASE("violations: a good plan has none") { CHECK(violations(small(), good()) == Sentences{}); }

TEST_CASE("violations: an overlap of two that live at once is found, with the call where they meet") {
  Plan plan = good();
  plan.offsets[1] = 64_B;
  CHECK(violations(small(), plan) == Sentences{"\"a\" [0, 128) and \"b\" [64, 128) share bytes at call 1"});
}

TEST_CASE("violations: an overlap with a view is found after its root has died") {
  Problem problem = small();
  problem.buffers[2].last = 5;
  CHECK(violations(problem, good()) == Sentences{"\"a\" [0, 128) and \"z\" [0, 64) share bytes at call 5"});
}

TEST_CASE("violations: an overlap with what escapes is found after its last call") {
  Problem problem = small();
  problem.buffers[0].escapes = true;
  CHECK(violations(problem, good()) == Sentences{"\"a\" [0, 128) and \"z\" [0, 64) share bytes at call 5"});
}

TEST_CASE("violations: a misaligned offset is found") {
  Plan plan = good();
  plan.offsets[1] = 160_B;
  CHECK(violations(small(), plan) == Sentences{"\"b\" [160, 224) is not aligned to 64"});
}

TEST_CASE("violations: a moved reservation is found") {
  Plan plan = good();
  plan.offsets[3] = 192_B;
  CHECK(violations(small(), plan) == Sentences{"\"r\" [192, 256) has left its reservation at 256"});
}

TEST_CASE("violations: an alias out of place is found") {
  Plan plan = good();
  plan.offsets[2] = 0_B;
  CHECK(violations(small(), plan) == Sentences{"\"v\" [0, 64) is not 64 bytes into \"a\" [0, 128)"});
}

TEST_CASE("violations: an alias that sticks out is found") {
  Problem problem = small();
  problem.buffers[2].size = 128_B;
  CHECK(violations(problem, good()) == Sentences{"\"v\" [64, 192) sticks out of \"a\" [0, 128)"});
}

TEST_CASE("violations: an arena that is too small is found, and one below the bound") {
  Plan plan = good();
  plan.size = 300_B;
  CHECK(violations(small(), plan) == Sentences{"the arena of 300 bytes is smaller than the lower bound of 320",
                                               "\"r\" [256, 320) ends beyond the arena of 300 bytes"});
}

TEST_CASE("violations: a buffer before the arena is found") {
  Plan plan = good();
  plan.offsets[4] = Bytes{-64};
  CHECK(violations(small(), plan) == Sentences{"\"z\" [-64, 0) begins before the arena"});
}

TEST_CASE("violations: a plan for another problem is found") {
  Plan plan = good();
  plan.offsets.pop_back();
  CHECK(violations(small(), plan) == Sentences{"the plan has 4 offsets for 5 buffers"});
}

TEST_CASE("violations: an alias of nothing is found") {
  Problem problem = small();
  problem.buffers[2].inside = BufferId{9};
  CHECK(violations(problem, good()).front() == "\"v\" lies inside buffer 9, which leads to no root");
}

TEST_CASE("violations: any two buffers that meet are found when one is moved onto the other") {
  const Problem problem = testing::random_graph(60, 3);
  const Plan plan = solve(problem);
  for (size_t a = 0; a < problem.buffers.size(); ++a) {
    for (size_t b = 0; b < problem.buffers.size(); ++b) {
      const Buffer &x = problem.buffers[a], &y = problem.buffers[b];
      if (a == b || x.last < y.first || y.last < x.first) continue;
      Plan moved = plan;
      moved.offsets[a] = plan.offsets[b];
      CHECK_FALSE(violations(problem, moved).empty());
    }
  }
}
