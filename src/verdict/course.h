// What a level of memory does from round to round, and whether it still does so at the end. Pure; no names, no causes.
//
// Asked in this order: what of it stays (the least of what follows each round: spikes and saw-teeth fall away), since when it rises, how long it has
// not risen now beside the longest pause there was while it rose, whether it rises by less and less, and whether equal parts of the rise are alike
// enough (a random walk's are not).
#pragma once
#include <span>
#include <string_view>

#include "verdict/statistics.h"

namespace millpond::verdict {

enum class Move {
  kShort,    // too few rounds to tell anything
  kFlat,     // no more than noise
  kGrows,    // up to the end, in parts that are alike
  kSlows,    // up to the end, by less and less
  kStopped,  // it rose, and has not for longer than it ever paused
  kStep,     // at the very end, in fewer rounds than a rate is made of
  kUnclear   // up to the end, in parts that are too different: a walk at random does so too
};
std::string_view to_string(Move move);

struct Course {
  Move move = Move::kShort;
  double total = 0;         // from the least to what stays at the end
  double onset = 0;         // x where the rise begins that goes on at the end, or went on until it stopped
  double last = 0;          // x where it rose last
  Slope slope;              // from the onset to `last`; 90 %
  double noise = 0;         // a round's deviation from its neighbours
  double alike = 0;         // Student's t of the rises of equal parts
  bool rises() const { return move == Move::kGrows || move == Move::kUnclear || move == Move::kSlows || move == Move::kStep; }
};

/// x does not fall. `grain`: less than this is no rise, whatever the noise (allocators take memory by the piece).
Course course(std::span<const double> x, std::span<const double> y, double grain);

/// What is added in one of x.
struct Rate {
  double value = 0, variance = 0;
  double off() const;  // half of the 95 % interval
};
/// By least squares. What came by chance in one round stays in all later ones, so that rounds do not err independently: the variance is the long-run one of what
/// each of them gained (Bartlett's weights), with the errors of single looks beside it.
Rate rate(std::span<const double> x, std::span<const double> y);

/// The numbers that decide it. Each has its error rates on series of known truth (tests/verdict/course_test.cc prints them): a rise of 5 MB and more of
/// 12 to 200 rounds, begun at any round but the last eight, with noise up to 2 MB.
struct CourseTable {
  int fewest = 6;        // rounds: below it second differences say nothing
  double noise = 3;      // deviations: a rise is more than that. 2 made one flat series in 12 rise, 4 hides 1 % more leaks
  double worth = 0.02;   // of all that rose: less is not what rose
  int quiet = 5;         // rounds without a rise, at least: what was kept in each of the last five is a leak by definition
  double late = 2;       // rounds: what began later is not told from what a round does within itself
  double missing = 2.5;  // times what is a rise: so much should have come since it rose last, and did not
  double longest = 1.5;  // times the longest pause before: 1 calls 3 % of uneven leaks stopped
  double tooth = 1.5;    // times the deepest fall before: what rose since may fall again
  int parts = 6;         // equal parts of the rise
  double alike = 4, alike_few = 5;  // t of five or six parts, of three or four: at 3 and 4 twice as many walks at random grow (9 % for 4 %), at 5 and 6 3 % more leaks are unclear
  size_t few = 4;        // rounds: what a change of the rate is told from, to either side
  double faster = 1.5;   // times the rate before: less is the same rate
  double jump = 8;       // deviations: a round that gained so much more than others took something else, once
  size_t rare = 8;       // at most one round in so many, and two in all
  double lone = 0.25;    // of all that rose, in one round, and no more than that of it in the rounds around: taken at once
  double slows = 0.5;    // the last third of the rise against the first
  double told = 0.5e6;   // bytes of one leak among several: below it what a program does once in a while looks the same
  double samples = 4;    // of a holder: three births at random times leave a quarter empty more often than not
  double most = 0.5, part = 0.2;  // of what a line allocates: held so, the rest is not asked; a holder of less is none of it
  int looks = 3;         // that found a container larger than before: of two one may be its start
  double exact = 0.03, weighed = 0.15;  // of a container's gain: how far the agent's weight of its items is off, of all of them or of a few
  double too_much = 1.5; // times all that was counted: a container that weighs more was weighed wrongly
  double small_block = 512, small_rounding = 0.3;  // Python's allocator rounds 24 bytes up to 32, and keeps pools that are not full
  double pieces = 1e6, rounding = 0.03;  // allocators count whole pieces of so many bytes, and round sizes up: how far sampled and counted bytes may lie apart besides chance
};
inline constexpr CourseTable kCourse;

}  // namespace millpond::verdict
