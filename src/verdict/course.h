// What a level of memory does from round to round, and whether it still does so at the end. Pure; no names, no causes.
//
// Asked in this order: what of it stays (the least of what follows each round: spikes and saw-teeth fall away), since
// when it rises, how long it has not risen now beside the longest pause there was while it rose, whether it rises by
// less and less, and whether equal parts of the rise are alike enough (a random walk's are not).
#pragma once
#include <span>
#include <string_view>

#include "verdict/statistics.h"
#include "verdict/table.h"

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
  double total = 0;  // from the least to what stays at the end
  double onset = 0;  // x where the rise begins that goes on at the end, or went on until it stopped
  double last = 0;   // x where it rose last
  Slope slope;       // from the onset to `last`; 90 %
  double noise = 0;  // a round's deviation from its neighbours
  double least = 0;  // less than this was no rise here
  double alike = 0;  // Student's t of the rises of equal parts
  bool rises() const {
    return move == Move::kGrows || move == Move::kUnclear || move == Move::kSlows || move == Move::kStep;
  }
};

/// x does not fall. `grain`: less than this is no rise, whatever the noise (allocators take memory by the piece).
Course course(std::span<const double> x, std::span<const double> y, double grain);

/// What is added in one of x.
struct Rate {
  double value = 0, variance = 0;
  double off() const;  // half of the 95 % interval
};
/// By least squares. What came by chance in one round stays in all later ones, so that rounds do not err independently:
/// the variance is the long-run one of what each of them gained (Bartlett's weights), with the errors of single looks
/// beside it.
Rate rate(std::span<const double> x, std::span<const double> y);

}  // namespace millpond::verdict
