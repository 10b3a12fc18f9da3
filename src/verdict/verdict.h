// judge: evidence in, verdict out. Pure.
//
// A verdict is the worst of its findings: leak, fragmentation, retention, cache, reserve, flat; `unsure` only when
// something may be a leak and nothing is proven. A finding below max(1 % of resident memory, 5 MB) is listed and does
// not set the verdict.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "verdict/evidence.h"

namespace millpond::verdict {

enum class Kind { kLeak, kFragmentation, kRetention, kCache, kReserve, kFlat, kUnsure };
std::string_view to_string(Kind kind);  // "leak", ...
/// Worst first: a leak, what may be one, and then as the enumerators stand.
int severity(Kind kind);

struct Place {
  std::string file, function, snippet;
  int line = 0;
};

struct Interval {
  double low = 0, high = 0;
};

/// When growth at this rate reaches a limit.
struct Forecast {
  std::string limit;   // "cgroup", "machine", "--limit"
  Bytes bytes;         // of the limit
  double seconds = 0;  // from the end of the run
  Interval seconds_range;
  Unit unit = Unit::kRun;            // of the rate
  std::optional<double> unit_index;  // "epoch 1310", counted as the program counts
  double units_left = 0;             // of `unit`; 0 where there is no index
};

/// Whole lines of a file as they were and as they should be, without the last newline.
struct Edit {
  int line = 0;  // the first of them
  std::string before, after;
};

/// A fix that can be carried out: edits of one file, or a variable of the environment.
struct Change {
  std::string file{}, digest{};  // digest: of the file as it was when the program ran (change.h)
  std::vector<Edit> edits{};     // by line
  std::string variable{}, value{};
};

struct Finding {
  Kind kind = Kind::kFlat;
  std::string cause;  // "C14" of the catalogue, or an id of ours; empty: not known
  std::string title;  // one sentence in plain words
  Unit unit = Unit::kRun;
  std::string each;  // "every epoch", "each time line 5 runs"; empty: by the unit
  double bytes_per_unit = 0;
  Interval bytes_per_unit_range;
  double units_seen = 0;
  Bytes total;
  std::optional<Place> blame;         // the line to change
  std::optional<Place> born_at;       // where what stays is allocated, if that is another line
  std::string holder;                 // "list self.saved of SavePredictions"
  std::vector<std::string> evidence;  // sentences with numbers
  std::string fix;                    // words, and code where possible
  std::optional<Change> fix_change;   // the same to carry out; absent: only words can be given
  std::vector<std::string> threads;   // public threads that fit, at most two: "tensorflow#24726"
  std::optional<Forecast> forecast;
  bool sets_verdict = true;          // false: too small
  bool fills = false;                // a cache that has not reached its limit yet
  int64_t process = 0;               // row of the run file; 0: not known
  int processes = 1;                 // alike ones that it speaks for; the rate is that of one of them
  std::string space = "host";        // where it grows: "host", "shared", "gpu:0"
  std::string account{};             // what of that space grows; empty: not told apart
  std::optional<Interval> born{};    // seconds of the run in which what stays was allocated
  std::vector<std::string> chain{};  // from what grows to the name that holds it
};

struct Advice {
  std::string what, text;
  std::optional<Place> place;
};

struct Account;

struct Verdict {
  Kind kind = Kind::kFlat;
  std::string sentence;           // the answer, in plain words
  std::vector<Finding> findings;  // the one that sets the verdict first
  std::vector<Advice> advice;
  std::string would_settle;                // for kUnsure
  std::shared_ptr<const Account> account;  // where the growth went (account.h); null: no rounds were seen
  std::shared_ptr<const std::vector<Account>>
      accounts;            // by process and space, the tree first; null: they were not asked for
  bool too_short = false;  // it ended before its memory was looked at: no verdict, which is told as kUnsure
};

Verdict judge(const Evidence& evidence);

/// Leaks that were found beside it (in other processes, in files): unless it tells of one already, the verdict is theirs
/// with this sentence; otherwise they come after its own.
void add_leaks(std::vector<Finding> leaks, const std::string& sentence, Verdict& verdict);

/// The fields of `watch --json` that a verdict fills: verdict, findings, advice.
nlohmann::json to_json(const Verdict& verdict);

}  // namespace millpond::verdict
