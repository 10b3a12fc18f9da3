// Ledger: who holds how many bytes, by account and by phase. Pure arithmetic: it asks neither clock nor operating
// system.
//
//   accounts are paths                          phases nest
//   weights               4.2 MiB  (a total)    fit
//   weights/dense_1       2.1 MiB  (a total)      epoch 3     each open phase keeps the peak of every account
//   weights/dense_1/kernel                          validation    for as long as it is open
//
// Invariant: an account's total is its own balance plus the totals right below it, and no balance is ever negative: a
// release of more than was charged is an Error, at once, because a ledger that is wrong is worse than none.
// Memory: about 150 bytes for each account, and 16 for each account and open phase. It does not grow with time: an
// account at zero is forgotten when no phase is open (those at the top, such as "weights", stay, so that their peaks
// can be read). Charging takes a lock and walks the path: for building and closing things, never for a step.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/bytes.h"

namespace millpond::ledger {

enum class PhaseKind {
  kRun,
  kBuild,
  kCompile,
  kFit,
  kEpoch,
  kStep,
  kValidation,
  kEvaluate,
  kPredict,
  kSave,
  kLoad,
  kOther
};
std::string_view to_string(PhaseKind kind);  // "run", "build", "compile", ...

struct PhaseId {
  int64_t value = 0;  // 0: none. Never used twice
  auto operator<=>(const PhaseId&) const = default;
};
struct RangeId {
  int64_t value = 0;
  auto operator<=>(const RangeId&) const = default;
};

struct AccountLine {
  std::string name;
  Bytes own;      // charged to this very name
  Bytes current;  // with everything below it
  Bytes peak;     // of `current`, ever or within the phase
};

/// Charged memory whose address is known: a segment, JIT code, the stack of a thread.
struct ChargedRange {
  std::string account;
  const void* begin = nullptr;  // borrowed; only its address is used
  Bytes size;
};

struct Snapshot {
  Bytes current, peak;
  std::vector<AccountLine> accounts;  // by name, totals such as "weights" included
  std::vector<ChargedRange> ranges;

  /// Of an account and everything below it; 0 when there is none of that name.
  Bytes total(std::string_view account) const;
  Bytes peak_of(std::string_view account) const;
};

/// What a phase leaves behind when it ends. The ledger itself keeps nothing of it.
struct PhaseRecord {
  PhaseId id, parent;
  PhaseKind kind = PhaseKind::kOther;
  std::string name;
  int64_t index = 0;
  Bytes at_begin, at_end, peak;
  std::vector<AccountLine> accounts;  // at the end; peaks within the phase
};

class Ledger {
 public:
  /// Bytes from the heap, at no particular address. Throws Error(kUsage) on a malformed name or a negative amount.
  void charge(std::string_view account, Bytes amount);
  /// Throws Error(kMemory) with account, balance and amount when more is given back than was charged.
  void release(std::string_view account, Bytes amount);

  /// Bytes at an address, so that what is resident of them can be measured.
  RangeId charge(std::string_view account, const void* begin, Bytes size);
  void release(RangeId range);

  Bytes current(std::string_view account = "") const;  // "": everything
  Bytes peak(std::string_view account = "") const;
  Snapshot snapshot() const;

  /// `index` counts phases of a kind: epoch 3, step 17. The parent is the phase opened last and still open.
  PhaseId begin_phase(PhaseKind kind, std::string name = "", int64_t index = 0);
  PhaseRecord end_phase(PhaseId phase);

 private:
  struct Node {
    std::string name;
    int parent = -1;
    int children = 0;
    Bytes own, current, peak;
    bool used = false;
  };
  struct OpenPhase {
    PhaseRecord record;
    std::vector<Bytes> peaks;  // by node
  };

  int find_or_make(std::string_view account);
  int find(std::string_view account) const;  // -1: none
  void add(int node, Bytes amount);
  void subtract(int node, Bytes amount);
  void forget_if_empty(int node);
  AccountLine line(int node, Bytes peak) const;

  mutable std::mutex lock_;
  std::vector<Node> nodes_;
  std::vector<int> spare_;  // unused places in nodes_
  std::map<std::string, int, std::less<>> by_name_;
  std::map<int64_t, ChargedRange> ranges_;
  std::vector<OpenPhase> open_;
  int64_t last_id_ = 0;
  Bytes current_, peak_;
};

/// The ledger of this process. Never destroyed, so that anything may release until the very end.
Ledger& process_ledger();

/// Charges when made, releases when destroyed. The ledger must outlive it.
class Charge {
 public:
  Charge() = default;
  Charge(Ledger& ledger, std::string_view account, Bytes amount);
  Charge(Ledger& ledger, std::string_view account, const void* begin, Bytes size);
  ~Charge() { drop(); }
  Charge(Charge&& o) noexcept;
  Charge& operator=(Charge&& o) noexcept;

  Bytes amount() const { return amount_; }
  /// For memory without an address, such as a vector that grows.
  void resize(Bytes amount);

 private:
  void drop() noexcept;
  Ledger* ledger_ = nullptr;  // borrowed
  std::string account_;
  Bytes amount_;
  RangeId range_;
};

/// A phase for the length of a scope, for callers who do not want its record.
class ScopedPhase {
 public:
  ScopedPhase(Ledger& ledger, PhaseKind kind, std::string name = "", int64_t index = 0)
      : ledger_(ledger), id_(ledger.begin_phase(kind, std::move(name), index)) {}
  ~ScopedPhase() { ledger_.end_phase(id_); }
  ScopedPhase(const ScopedPhase&) = delete;
  ScopedPhase& operator=(const ScopedPhase&) = delete;

 private:
  Ledger& ledger_;
  PhaseId id_;
};

}  // namespace millpond::ledger
