#include <doctest/doctest.h>

#include "base/format.h"
#include "millpond/error.h"
#include "plan/plan.h"

using namespace millpond;
using namespace millpond::plan;

namespace {

std::string refusal(const Problem& problem, Code code) {
  try {
    solve(problem);
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "not refused";
}

Problem one(Buffer b) { return {.buffers = {std::move(b)}, .calls = 4}; }

}  // namespace

TEST_CASE("solve: a malformed buffer is refused with its name, the number that is wrong and the rule") {
  CHECK(refusal(one({.name = "a", .size = Bytes{-1}}), Code::kUsage) ==
        "plan: buffer 0 \"a\" has -1 bytes; a size is 0 or more");
  CHECK(refusal(one({.name = "a", .size = 8_B, .first = 2, .last = 1}), Code::kUsage) ==
        "plan: buffer 0 \"a\" is alive from call 2 to 1 of a program of 4 calls; 0 <= first <= last < calls must hold");
  CHECK(refusal(one({.name = "a", .size = 8_B, .first = 0, .last = 4}), Code::kUsage)
            .starts_with("plan: buffer 0 \"a\" is alive"));
  CHECK(refusal(one({.name = "a", .size = 8_B, .alignment = 48_B}), Code::kUsage) ==
        "plan: buffer 0 \"a\" has the alignment 48; an alignment is a power of two");
  CHECK(refusal(one({.name = "a", .size = 8_B, .alignment = 0_B}), Code::kUsage)
            .starts_with("plan: buffer 0 \"a\" has the alignment 0"));
  CHECK(refusal(one({.name = "a", .size = 8_B, .offset = 32_B}), Code::kUsage) ==
        "plan: buffer 0 \"a\" is fixed at offset 32, which its alignment 64 forbids; fix it at a multiple of its "
        "alignment");
  CHECK(refusal(one({.name = "a", .size = Bytes{int64_t{1} << 60}}), Code::kUsage)
            .ends_with("check how the size was computed"));
}

TEST_CASE("solve: a buffer inside nothing, inside itself, or sticking out is refused") {
  const auto with = [](Buffer b) {
    return Problem{.buffers = {{.name = "outer", .size = 128_B}, std::move(b)}, .calls = 1};
  };
  CHECK(refusal(with({.name = "v", .size = 64_B, .inside = BufferId{7}}), Code::kUsage) ==
        "plan: buffer 1 \"v\" lies inside buffer 7, but there are only 2; inside takes the index of a buffer");
  CHECK(refusal(with({.name = "v", .size = 64_B, .inside = BufferId{1}}), Code::kUsage) ==
        "plan: buffer 1 \"v\" lies inside itself, over others; a chain of inside must end in a buffer that is inside "
        "none");
  CHECK(refusal(with({.name = "v", .size = 100_B, .inside = BufferId{0}, .inside_offset = 64_B}), Code::kUsage) ==
        "plan: buffer 1 \"v\" (100 bytes) lies 64 bytes into \"outer\", which has 128; what lies inside a buffer must "
        "end inside it");
  CHECK(refusal(with({.name = "v", .size = 8_B, .inside = BufferId{0}, .inside_offset = 48_B}), Code::kUsage) ==
        "plan: buffer 1 \"v\" lies 48 bytes into \"outer\", which its alignment 64 forbids; give it the alignment 16");
}

TEST_CASE("solve: reservations that share bytes at one call are refused; those that take turns are kept") {
  Problem p{.buffers = {{.name = "weights", .size = 1_KiB, .first = 0, .last = 3, .offset = 0_B},
                        {.name = "ring", .size = 1_KiB, .first = 2, .last = 3, .offset = 512_B}},
            .calls = 4};
  CHECK(refusal(p, Code::kMemory) ==
        "plan: the reservations of \"weights\" at offset 0 and \"ring\" at offset 512 share 512 B at call 2; "
        "move one of them, or let the plan choose its offset");
  p.buffers[0].last = 1;
  CHECK(violations(p, solve(p)).empty());
}

TEST_CASE("solve: reservations of a buffer and of what lies inside it must agree") {
  Problem p{.buffers = {{.name = "outer", .size = 1_KiB, .offset = 0_B},
                        {.name = "part", .size = 64_B, .offset = 512_B, .inside = BufferId{0}, .inside_offset = 64_B}},
            .calls = 1};
  CHECK(refusal(p, Code::kMemory) ==
        "plan: \"part\" is fixed at offset 512, so \"outer\", around it, would begin at 448, but is fixed at 0; "
        "fix only one of the two, or both to agree");
  p.buffers[0].offset.reset();
  CHECK(solve(p).offsets[0] == 448_B);
}
