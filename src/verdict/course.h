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

/// The numbers that decide it. Each has its error rates on series of known truth (tests/verdict/course_test.cc prints them): a rise of 5 MB and more of
/// 12 to 200 rounds, begun at any round but the last eight, with noise up to 2 MB.
struct CourseTable {
  int fewest = 6;        // rounds: below it second differences say nothing
  double noise = 3;      // deviations: a rise is more than that. 2 made one flat series in 12 rise, 4 hides 1 % more leaks
  double worth = 0.02;   // of all that rose: less is not what rose
  int quiet = 5;         // rounds without a rise, at least: what was kept in each of the last five is a leak by definition
  double longest = 1.5;  // times the longest pause before: 1 calls 3 % of uneven leaks stopped
  double tooth = 1.5;    // times the deepest fall before: what rose since may fall again
  int parts = 6;         // equal parts of the rise
  double alike = 4, alike_few = 5;  // t of five or six parts, of three or four: at 3 and 4 twice as many walks at random grow (9 % for 4 %), at 5 and 6 3 % more leaks are unclear
  double jump = 8;       // deviations: a round that gained so much more than others took something else, once
  size_t rare = 8;       // at most one round in so many, and two in all
  double slows = 0.5;    // the last third of the rise against the first
};
inline constexpr CourseTable kCourse;

}  // namespace millpond::verdict
