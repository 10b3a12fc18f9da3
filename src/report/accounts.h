// accounts: memory over time by account, the same for both kinds of run. Pure.
//
//   engine   its own accounts, exact: weights/dense/kernel, activations/conv1, process/code, ...
//   watched  what the allocators of the program said at its marks: in use, large blocks, Python's objects, free; the rest of resident memory is
//            code, libraries and stacks. What is mapped and not touched is not resident and is told apart.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/contents.h"

namespace millpond::report {

enum class AccountKind { kUse, kRetained, kReserved, kRest };
std::string_view to_string(AccountKind kind);  // "use", "retained", "reserved", "rest"

struct Account {
  std::string name;
  AccountKind kind = AccountKind::kUse;
  std::vector<int64_t> bytes;  // at each moment
  int64_t most() const;
};

struct AccountTable {
  std::vector<double> t;                         // moments, rising
  std::vector<std::optional<int64_t>> resident;  // then
  std::vector<Account>
      accounts;  // most bytes first; those beyond the limit are summed up by group, so that groups are exact
};

struct AccountLimits {
  size_t moments = 1500, accounts = 4000;
  size_t cells = 400'000;  // of both together
};
AccountTable accounts_over_time(const RunContents& run, const AccountLimits& limits = {});
/// Of one watched process.
AccountTable accounts_over_time(const verdict::Evidence& watched, const AccountLimits& limits = {});

/// "weights" of "weights/dense/kernel"; accounts of the process itself keep two parts.
std::string group_of(const std::string& account);
/// The same by group: what a chart of few colours can show.
AccountTable grouped(const AccountTable& table, size_t most_groups);

/// At most `most` of n places: the first, the last and evenly between; `always` are in it whatever happens.
std::vector<size_t> spread(size_t n, size_t most, const std::vector<size_t>& always = {});

}  // namespace millpond::report
