// The numbers that decide, each with its reason; what only bounds memory or time, or formats text, stands where it is
// used. Error rates in here are of series of known truth (tests/verdict/course_test.cc prints them): a rise of 5 MB and
// more of 12 to 200 rounds, begun at any round but the last eight, with noise up to 2 MB. `make judge` prints those of
// the whole on unseen programs.
#pragma once
#include <cstddef>

namespace millpond::verdict {

struct Table {
  // By definition: growth below both, of a process or of alike ones together, is listed and does not set the verdict.
  double small = 5e6, small_share = 0.01;  // bytes; of resident memory

  // What a level does from round to round (course.h).
  int fewest = 6;  // rounds: below it second differences say nothing
  double grain =
      128 << 10;     // bytes: allocators take memory from the system by such pieces, or larger ones; less is no rise
  double noise = 3;  // deviations: a rise is more than that. 2 made one flat series in 12 rise, 4 hides 1 % more leaks
  double worth = 0.02;  // of all that rose: less is not what rose
  int quiet = 5;    // rounds without a rise, at least: what was kept in each of the last five is a leak by definition
  double late = 2;  // rounds: what began later is not told from what a round does within itself
  double missing = 2.5;             // times what is a rise: so much should have come since it rose last, and did not
  double longest = 1.5;             // times the longest pause before: 1 calls 3 % of uneven leaks stopped
  double tooth = 1.5;               // times the deepest fall before: what rose since may fall again
  int parts = 6;                    // equal parts of the rise
  double alike = 4, alike_few = 5;  // t of five or six parts, of three or four: at 3 and 4 twice as many walks at
                                    // random grow (9 % for 4 %), at 5 and 6 3 % more leaks are unclear
  size_t few = 4;                   // rounds: what a change of the rate is told from, to either side
  double faster = 1.5;              // times the rate before: less is the same rate
  double jump = 8;  // deviations: a round that gained so much more than others took something else, once
  size_t rare = 8;  // at most one round in so many, and two in all
  double lone =
      0.25;  // of all that rose, in one round, and no more than that of it in the rounds around: taken at once
  double slows = 0.5;  // the last third of the rise against the first

  // Who holds it (walks.h, leaks.h).
  double samples = 4;           // of a holder: three births at random times leave a quarter empty more often than not
  double births_quiet = 2;      // of the sixteen parts of the time: less may be the rest of a round
  size_t looks_of_lengths = 9;  // at a holder's length: below it thirds of the time are one or two looks each
  int looks = 3;                // that found a container or a holder larger than before: of two one may be its start
  double told = 0.5e6;  // bytes of one leak among several: below it what a program does once in a while looks the same
  double most = 0.5;    // what is named as the reason explains at least half
  double part = 0.2;    // of what a line allocates: a holder of less is none of it
  double exact = 0.03,
         weighed =
             0.15;  // of a container's gain: how far the agent's weight of its items is off, of all of them or of a few
  double estimated =
      0.4;  // of the growth: weights of containers and survivors are estimates, off by a third now and then
  double too_much = 1.5;  // times all that was counted: a container that weighs more was weighed wrongly
  double small_block = 512,
         small_rounding = 0.3;  // Python's allocator rounds 24 bytes up to 32, and keeps pools that are not full
  double pieces = 1e6, rounding = 0.03;  // allocators count whole pieces of so many bytes, and round sizes up: how far
                                         // sampled and counted bytes may lie apart besides chance
  double add_up =
      1.5;  // deviations: what allocators count beyond the samples by more than chance is something else, and nobody's
  double mapped_pages =
      0.1;             // of the bytes of one thing: how far they may lie from whole pages where each is a mapping
  double several = 3;  // blocks: one that grows itself is not added to by the block

  // What it is (growth.h).
  double wanders = 0.03;  // of resident memory: it goes up and down by that with nothing kept
  double objects = 1000;  // collected by all probes: a program leaves a few dozen in circles, whatever it does

  // Which finding is told for what (judge.cc).
  double others = 0.7;  // of the whole: what keeps more than that is no part beside another
  double explained =
      0.8;  // of the growth: when causes that were named explain so much, the rest of the list is other names for it
  double name = 0.15;  // of the growth: a cause that explains less is none of it

  // The account (account.h).
  double account_part = 0.03;                     // of what was sampled: smaller parts are told together
  double walk_sees = 0.1, walk_sees_some = 0.03;  // of the sampled growth: walks that found less were made before it
  double walk_early = 0.75;  // of the births of one walk alone: warm-up has no more than that of them
  double mapped = 1e6;       // bytes: below it mappings and files in memory are pages that libraries leave
};
inline constexpr Table kTable;

}  // namespace millpond::verdict
