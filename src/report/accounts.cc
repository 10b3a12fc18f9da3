#include "report/accounts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace millpond::report {
namespace {

AccountTable of_watch(const RunContents& run, const AccountLimits& limits) {
  std::vector<const verdict::Mark*> marks;
  for (const verdict::Mark& m : run.evidence.marks)
    if (m.rss && m.heap_in_use) marks.push_back(&m);
  AccountTable table;
  if (marks.empty()) return table;
  Account use{"malloc, in use", AccountKind::kUse, {}}, large{"malloc, large blocks", AccountKind::kUse, {}}, python{"Python objects", AccountKind::kUse, {}},
      free{"malloc, free but kept", AccountKind::kRetained, {}}, rest{"code, libraries, stacks", AccountKind::kRest, {}},
      reserved{"mapped, not touched", AccountKind::kReserved, {}};
  for (const size_t i : spread(marks.size(), limits.moments)) {
    const verdict::Mark& m = *marks[i];
    const auto value = [](const std::optional<Bytes>& b) { return b ? b->value : 0; };
    const int64_t sum = value(m.heap_in_use) + value(m.heap_mapped) + value(m.python_arenas) + value(m.heap_free);
    table.t.push_back(m.t);
    table.resident.push_back(m.rss->value);
    use.bytes.push_back(value(m.heap_in_use));
    large.bytes.push_back(value(m.heap_mapped));
    python.bytes.push_back(value(m.python_arenas));
    free.bytes.push_back(value(m.heap_free));
    rest.bytes.push_back(std::max<int64_t>(0, m.rss->value - sum));
    reserved.bytes.push_back(std::max<int64_t>(0, sum - m.rss->value));
  }
  for (Account* a : {&rest, &python, &use, &large, &free, &reserved})
    if (a->most() > 0) table.accounts.push_back(std::move(*a));
  return table;
}

AccountKind kind_of(const std::string& name) {
  if (name.starts_with("process/free")) return AccountKind::kRetained;
  return name.starts_with("process/") ? AccountKind::kRest : AccountKind::kUse;
}

AccountTable of_engine(const RunContents& run, const AccountLimits& limits) {
  // A value holds until the next row of its account. Moments: whenever resident memory was asked.
  std::vector<const runfile::SeriesRow*> rows;
  std::map<std::string, int64_t> most;
  for (const runfile::SeriesRow& r : run.series) {
    if (r.kind != runfile::SeriesKind::kCurrent) continue;
    rows.push_back(&r);
    most[r.account] = std::max(most[r.account], r.bytes.value);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->t < b->t; });
  std::vector<size_t> changes;
  for (size_t i = 0, r = 0; i < run.os.size(); ++i) {
    bool changed = false;
    for (; r < rows.size() && rows[r]->t <= run.os[i].t; ++r) changed = true;
    if (changed && changes.size() < limits.moments / 2) changes.push_back(i);
  }
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [name, bytes] : most)
    if (bytes > 0) order.emplace_back(-bytes, name);
  std::sort(order.begin(), order.end());
  AccountTable table;
  const size_t most_accounts = std::min(limits.accounts, limits.cells / std::max<size_t>(1, std::min(limits.moments, run.os.size())));
  std::map<std::string, size_t> place, others;  // of an account; of a group's small ones
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string& name = order[i].second;
    if (i < most_accounts) {
      place[name] = table.accounts.size();
      table.accounts.push_back({name, kind_of(name), {}});
      continue;
    }
    const auto [at, fresh] = others.try_emplace(group_of(name), table.accounts.size());
    if (fresh) table.accounts.push_back({group_of(name) + "/all others", kind_of(name), {}});
    place[name] = at->second;
  }
  std::map<std::string, int64_t> held;  // now, by account
  std::vector<int64_t> now(table.accounts.size(), 0);
  size_t r = 0;
  for (const size_t i : spread(run.os.size(), limits.moments, changes)) {
    for (; r < rows.size() && rows[r]->t <= run.os[i].t; ++r) {
      const auto at = place.find(rows[r]->account);
      if (at == place.end()) continue;  // never held anything
      int64_t& before = held[rows[r]->account];
      now[at->second] += rows[r]->bytes.value - std::exchange(before, rows[r]->bytes.value);
    }
    table.t.push_back(run.os[i].t);
    table.resident.push_back(run.os[i].rss ? std::optional(run.os[i].rss->value) : std::nullopt);
    for (size_t a = 0; a < now.size(); ++a) table.accounts[a].bytes.push_back(now[a]);
  }
  return table;
}

}  // namespace

std::string_view to_string(AccountKind kind) {
  switch (kind) {
    case AccountKind::kUse: return "use";
    case AccountKind::kRetained: return "retained";
    case AccountKind::kReserved: return "reserved";
    case AccountKind::kRest: return "rest";
  }
  return "use";
}

int64_t Account::most() const { return bytes.empty() ? 0 : *std::ranges::max_element(bytes); }

AccountTable accounts_over_time(const RunContents& run, const AccountLimits& limits) {
  return run.engine ? of_engine(run, limits) : of_watch(run, limits);
}

std::string group_of(const std::string& account) {
  const size_t slash = account.find('/');
  if (slash == account.npos) return account;
  if (!account.starts_with("process/")) return account.substr(0, slash);
  return account.substr(0, account.find('/', slash + 1));
}

AccountTable grouped(const AccountTable& table, size_t most_groups) {
  AccountTable out{table.t, table.resident, {}};
  std::map<std::string, size_t> place;
  for (const Account& a : table.accounts) {
    const std::string name = group_of(a.name);
    const auto [at, fresh] = place.try_emplace(name, out.accounts.size());
    if (fresh) out.accounts.push_back({name, a.kind, std::vector<int64_t>(table.t.size(), 0)});
    for (size_t i = 0; i < a.bytes.size(); ++i) out.accounts[at->second].bytes[i] += a.bytes[i];
  }
  std::ranges::stable_sort(out.accounts, std::ranges::greater{}, &Account::most);
  if (out.accounts.size() > most_groups && most_groups > 0) {
    Account rest{"all others", AccountKind::kUse, std::vector<int64_t>(table.t.size(), 0)};
    for (size_t a = most_groups - 1; a < out.accounts.size(); ++a)
      for (size_t i = 0; i < rest.bytes.size(); ++i) rest.bytes[i] += out.accounts[a].bytes[i];
    out.accounts.resize(most_groups - 1);
    out.accounts.push_back(std::move(rest));
  }
  return out;
}

std::vector<size_t> spread(size_t n, size_t most, const std::vector<size_t>& always) {
  std::vector<size_t> list;
  if (n <= most) {
    for (size_t i = 0; i < n; ++i) list.push_back(i);
    return list;
  }
  std::set<size_t> chosen(always.begin(), always.end());
  const size_t even = most > chosen.size() + 1 ? most - chosen.size() : 2;
  for (size_t i = 0; i < even; ++i) chosen.insert(i * (n - 1) / (even - 1));
  return {chosen.begin(), chosen.end()};
}

}  // namespace millpond::report
