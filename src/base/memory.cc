#include "millpond/memory.h"

#include <map>

#include "base/process.h"
#include "base/segment.h"

namespace millpond {

Bytes MemoryReport::account(std::string_view name) const {
  Bytes sum;
  for (const auto& [account, bytes] : accounts)
    if (account == name || (account.size() > name.size() && account.starts_with(name) && account[name.size()] == '/'))
      sum += bytes;
  return sum;
}

MemoryReport memory() {
  std::map<std::string, Bytes> sums;
  each_holding([&](const std::string& account, Bytes bytes) { sums[account] += bytes; });
  MemoryReport report;
  for (const auto& [account, bytes] : sums) {
    if (bytes.value == 0) continue;
    report.accounts.emplace_back(account, bytes);
    report.taken += bytes;
  }
  report.resident = resident().value_or(Bytes{});
  if (const auto os = totals()) report.peak = os->peak;
  return report;
}

}  // namespace millpond
