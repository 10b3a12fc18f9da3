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
  size_t rare = 8;  // at most one round in so many
  double lone =
      0.25;  // of all that rose, in one round, and no more than that of it in the rounds around: taken at once
  double slows = 0.5;                          // the last third of the rise against the first
  double slows_end = 0.75, slows_begin = 0.9;  // the last third against the middle, the middle against the first
  double slows_off = 1.5;  // deviations between first and last third: of three thirds one falls below that by chance
  double jitter = 0.1;     // of the noise, added to the deviation of parts, so that parts alike to the byte have a t
  size_t jumps = 2;        // rounds that took something else, at most: three are a habit

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
  double both_resident =
      0.75;  // of what two leaks gained together: resident memory that gained less has one of them only
  double mapped_pages =
      0.1;             // of the bytes of one thing: how far they may lie from whole pages where each is a mapping
  double several = 3;  // blocks: one that grows itself is not added to by the block

  // What it is (growth.h).
  double wanders = 0.03;  // of resident memory: it goes up and down by that with nothing kept
  double objects = 1000;  // collected by all probes: a program leaves a few dozen in circles, whatever it does

  double parent = 0.3;  // of what the processes gained: with less than that the main process is not the one that grows
  double old = 0.25;    // of the rounds: a count that was made before the last quarter of them says nothing of the end

  // Which rounds are compared (periods.h).
  size_t rounds = 5;      // of one kind: fewer have no rhythm
  double warm_up = 0.25;  // of the rounds: what libraries take while they start
  double let_go = 0.9;  // of resident memory: by the clock a look that finds less at the end found a program that ends
  double same_count = 0.05;  // of one for each round: it is another name for the round
  double varies = 0.2;       // of the usual count of a round: it is not the same in each
  double straight = 0.9;     // of the variance: a count explains growth that its straight line explains so well

  // How old what lives is (sites.h): eight parts of the time, of which samples leave some thin.
  double thin = 0.3;   // of the usual part: less is an empty one
  double rest = 0.1;   // of all: what is left over when it is said that something is gone, or was there before
  double bulk = 0.6;   // of all: what came at one time, or in one block, when it is said to have come at once
  double fresh = 0.7;  // of what is not old: in the last part alone it is freed soon

  // Which finding is told for what (judge.cc).
  double others = 0.7;  // of the whole: what keeps more than that is no part beside another
  double explained =
      0.8;  // of the growth: when causes that were named explain so much, the rest of the list is other names for it
  double name = 0.15;         // of the growth: a cause that explains less is none of it
  double some = 0.3;          // of the growth or the bytes in question: what is seen of it for a cause to be its name
  double short_run = 20e6;    // bytes: in fewer rounds than have a rhythm the start of a library takes less than that
  double second_name = 0.95;  // of weight: below it a second name for the same kind of memory is left out
  double vague = 0.33;        // of a slope: one that is known no better makes no forecast

  // How particular the evidence of a cause is (Match::weight): of two that explain the same the more particular one.
  double own_words = 1.2;   // the framework tells of the thing itself, and nothing else can be it
  double its_holder = 1.1;  // what holds it was seen, and what kind of thing that is
  double plain = 1;         // a line or stage with bytes of its own
  double counted = 0.95;    // something was counted that brings memory each time
  double made = 0.9;        // the same, where what was counted brings other things too
  double by_level = 0.8;    // the level of memory and a line that fits
  double library = 0.7;     // a library's line, or one that may have other reasons
  double by_shape = 0.6;    // the shape of a level, or frames of a library alone
  double no_cause = 0.5;    // a holder or a line of which no cause is known
  double no_holder = 0.4, no_line = 0.35, no_name = 0.3;

  // Causes by what was counted: that something is made says how often, not what it weighs.
  double repeats = 3;     // times after warm-up, at least: twice is a beginning and an end
  double by_count = 0.9;  // of the growth, where nothing was weighed
  double data = 0.8;      // of what the user's own containers explain is taken off that: they were weighed
  double each_made = 4;   // traces or compilations of one new model: training, validation and prediction have one each
  double calls = 20;      // of predict after warm-up: a program that calls it less does not do so in a loop
  double pending = 100, pending_each = 5;  // futures, and more in each round: a queue that is emptied has fewer
  double half_each = 0.5;                  // objects in a round: less is one now and then
  double frames = 0.4;  // of the sampled growth under a library's frames: what others call it for is beside it
  double mostly = 0.6;  // of it, where versions of today do not leak there: only when it can be nothing else
  double native = 0.8;  // of a line's bytes taken by foreign functions: objects of Python beside them are the rest

  // Names of what does not grow: bytes, and of resident memory. Less is not worth a name.
  double named = 16e6, named_share = 0.02;  // a line or stage has so much of its own
  double level = 32e6, level_share = 0.05;  // known by the level alone, which moves by some megabytes whatever happens
  double step = 64e6, step_share = 0.08;    // a jump at the first step, where frameworks make their own tables
  double nameless = 32e6, nameless_share = 0.25;  // no name at all: a good part of the process, or it is not said
  double graph = 200e6, graph_share = 0.3;        // a loop in a graph: graphs of steps have tens of megabytes
  double elements = 100;                          // of a shuffle buffer: smaller ones hold a few batches
  size_t looks_at_use = 8;                        // rounds: to see that what is in use filled, and then stayed
  double steady = 0.8;                            // of its most: a window that moves is never emptier
  double large_block = 64 << 10;     // bytes: graphs and Python objects are made of smaller blocks, weights of larger
  double large_constant = 96 << 10;  // bytes on the average of a place: a graph's own blocks are far smaller
  double element = 1 << 10;          // bytes: elements of a data set are larger
  double object = 1 << 10;           // bytes: objects with reference counts of their own are smaller
  double recorded = 512 << 10;       // bytes: from the first sampling interval on every block is recorded
  double piece = 4 << 10;            // bytes: what is written to a buffer in smaller pieces comes in many sizes
  double one_way = 0.85;  // of the growth: as long as so much of it goes through one function, that is the loop

  // Freed and kept (causes/freed.cc).
  double freed = 20e6;           // bytes: every allocator keeps less than that between two steps
  double freed_share = 1.0 / 3;  // of the process: a compiler leaves less
  double freed_once = 0.45;      // of it, when one probe alone gave it back: a compiler may leave a third, once
  double refilled = 0.05;        // of it, when it comes back after each probe
  double called_free = 0.25;     // of it, by the allocator's count, which trim was not asked about
  double shuffled = 48e6, shuffled_share = 0.1;  // where a shuffle buffer is emptied between epochs
  double circles = 100;                          // objects: fewer are in circles in any program
  double arenas = 0.15, hollow = 0.4;  // of the process, and of Python's arenas: less than that is empty in any program
  double usual_object = 128;           // bytes of a small block, with what rounding takes: 100 on average
  double unreturned = 0.3;             // of what is free: when trim gives back less, it is pinned

  // Pools of frameworks on a device (causes/gpu.cc, devices.cc).
  double pool = 64e6;     // bytes: a pool has some segments of 2 and 20 MiB whatever it is used for
  double far = 0.5;       // of what is reserved: with less ever in use at once it is twice as large as a round needs
  double beside = 0.6;    // seconds: a pool is read right after a mark; marks of a clock are a second apart
  double swapped = 64e6;  // bytes that went to swap: less is what a system puts away of any program
  double doubles = 8e6;   // bytes of float64 data: a copy of less is not worth advice

  // The account (account.h).
  double account_part = 0.03;                     // of what was sampled: smaller parts are told together
  double walk_sees = 0.1, walk_sees_some = 0.03;  // of the sampled growth: walks that found less were made before it
  double walk_early = 0.75;  // of the births of one walk alone: warm-up has no more than that of them
  double mapped = 1e6;       // bytes: below it mappings and files in memory are pages that libraries leave
};
inline constexpr Table kTable;

}  // namespace millpond::verdict
