// Where growth went: parts that add up to what was measured, for each process, each memory space, and the tree of processes.
//
//   growth between like rounds = referenced by objects of Python (by holder) + held by native code (by birth line) + garbage until gc runs
//                              + in use, holder not known + free in the allocator (given back by trim, or pinned) + stacks + files + shared mappings
//                              + pages of a parent that were written to + memory of a GPU + not seen from inside
//                              - asked for and never written + not explained
//
// Every part but the last two has a number of its own: the system's, an allocator's or that of sampled blocks. Intervals are of resampling (resample.h).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verdict/case.h"
#include "verdict/resample.h"

namespace millpond::verdict {

struct AccountPart {
  enum class Kind {
    kHeld,
    kNative,
    kGarbage,
    kInUse,
    kFree,
    kPinned,
    kStacks,
    kFiles,
    kShared,
    kCopied,
    kGpu,
    kOutside,
    kUntouched,
    kUnexplained
  };
  Kind kind = Kind::kHeld;
  std::string name;                  // "attribute seen of Trainer"; of others a few words
  std::vector<std::string> chain{};  // of a holder
  std::optional<Place> born{};       // where most of it was allocated
  double bytes = 0;
  Interval range{};  // 95 %
  double error() const { return (range.high - range.low) / 2; }
  /// More than chance: the interval is above 0.
  bool grows() const { return range.low > 0; }
};
/// "held", "native", "garbage", "in use", "free", "pinned", "stacks", "files", "shared", "copied", "gpu", "outside",
/// "untouched", "unexplained"
std::string_view to_string(AccountPart::Kind kind);

struct Account {
  int64_t process = 0;  // row of the run file; 0: not known, or the tree
  bool tree = false;    // of all processes together, shared pages once
  std::string space =
      "all";          // "host", "shared", "gpu:0"; "all": host and shared, which is what the system calls resident
  double level = 0;   // in the last rounds
  double growth = 0;  // after warm-up
  Interval range{};   // of it, 95 %
  double rounds = 0;  // over which it grew so
  Unit unit = Unit::kRun;
  double from = 0, to = 0;           // seconds of the run: the first and the last of these rounds
  std::vector<AccountPart> parts{};  // their sum is `growth`; most bytes first, what is not explained last
  double error() const { return (range.high - range.low) / 2; }

  /// What is in use and was seen to stay: by holders, by native code, in circles, by lines whose holder is not known,
  /// and in shared mappings.
  AccountPart staying() const;
  /// All parts of a kind as one.
  AccountPart of(AccountPart::Kind kind) const;
};

/// Of the process that is judged and all its memory on this machine. Nothing where no round was seen, or resident
/// memory was not.
std::optional<Account> account(const Case& c);

/// By process and space, the judged one first; where there are several processes the tree (its space is "all") comes
/// before them. `children`: evidence of others that were seen from inside.
std::vector<Account> accounts(const Evidence& main, std::span<const Evidence> children);

/// What of a verdict the account of the judged process speaks against, as sentences; empty: nothing.
///   leak       nothing that stays was seen to grow, or not half of what is told; pages of a parent are said to be copied, and none were
///   flat       what is in use grew by more than what is called small
///   retention  resident memory grew, and what is in use grew by more than what is free in the allocator
///   unsure     memory is said to have risen, and it did not
std::vector<std::string> contradictions(const Verdict& verdict);

}  // namespace millpond::verdict
