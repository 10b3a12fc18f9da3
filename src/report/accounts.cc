#include "report/accounts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "verdict/sites.h"

namespace millpond::report {
namespace {

/// Programs that mark nothing are looked at by the clock, from outside: what is known is what was sampled.
AccountTable of_samples(const verdict::Evidence& e, const AccountLimits& limits) {
  std::vector<const verdict::Mark*> marks;
  for (const verdict::Mark& m : e.marks)
    if (m.rss && m.rss->value > 0 && !m.sites.empty()) marks.push_back(&m);
  AccountTable table;
  if (marks.empty()) return table;
  Account own{"your code, sampled blocks", AccountKind::kUse, {}},
      other{"libraries, sampled blocks", AccountKind::kUse, {}}, rest{"not in sampled blocks", AccountKind::kRest, {}},
      reserved{"mapped, not touched", AccountKind::kReserved, {}};
  for (const size_t i : spread(marks.size(), limits.moments)) {
    const verdict::Mark& m = *marks[i];
    int64_t mine = 0, theirs = 0;
    for (const verdict::SiteState& s : m.sites) {
      if (s.site < 0 || size_t(s.site) >= e.sites.size()) continue;
      (own_frame(e.sites[size_t(s.site)]) ? mine : theirs) += s.bytes.value;
    }
    int64_t over = std::max<int64_t>(0, mine + theirs - m.rss->value);
    reserved.bytes.push_back(over);
    for (int64_t* part : {&theirs, &mine}) {
      const int64_t less = std::min(over, *part);
      *part -= less, over -= less;
    }
    own.bytes.push_back(mine), other.bytes.push_back(theirs), rest.bytes.push_back(m.rss->value - mine - theirs);
    table.t.push_back(m.t), table.resident.push_back(m.rss->value);
  }
  for (Account* a : {&rest, &other, &own, &reserved})
    if (a->most() > 0) table.accounts.push_back(std::move(*a));
  return table;
}

AccountTable of_watch(const verdict::Evidence& e, const AccountLimits& limits) {
  std::vector<const verdict::Mark*> marks;
  for (const verdict::Mark& m : e.marks)
    if (m.rss && m.rss->value > 0 && m.heap_in_use) marks.push_back(&m);
  constexpr size_t kFew = 3;  // the beginning and the end: no way over time
  if (marks.size() < kFew)
    if (AccountTable sampled = of_samples(e, limits); sampled.t.size() > marks.size()) return sampled;
  AccountTable table;
  if (marks.empty()) return table;
  Account use{"malloc, in use", AccountKind::kUse, {}}, large{"malloc, large blocks", AccountKind::kUse, {}},
      python{"Python objects", AccountKind::kUse, {}}, free{"malloc, free but kept", AccountKind::kRetained, {}},
      rest{"code, libraries, stacks", AccountKind::kRest, {}},
      reserved{"mapped, not touched", AccountKind::kReserved, {}};
  for (const size_t i : spread(marks.size(), limits.moments)) {
    const verdict::Mark& m = *marks[i];
    const auto value = [](const std::optional<Bytes>& b) { return b ? b->value : 0; };
    // Allocators tell of addresses, resident memory is of pages. Where they name more than is there, pages were never
    // touched, or were given back: of large blocks first, then of free ones. So the bands are resident bytes and add up
    // to it, and what is beyond stands beside them.
    int64_t over = std::max<int64_t>(
        0, value(m.heap_in_use) + value(m.heap_mapped) + value(m.python_arenas) + value(m.heap_free) - m.rss->value);
    reserved.bytes.push_back(over);
    const auto there = [&](int64_t named) {
      const int64_t less = std::min(over, named);
      over -= less;
      return named - less;
    };
    large.bytes.push_back(there(value(m.heap_mapped)));
    free.bytes.push_back(there(value(m.heap_free)));
    python.bytes.push_back(there(value(m.python_arenas)));
    use.bytes.push_back(there(value(m.heap_in_use)));
    rest.bytes.push_back(m.rss->value - large.bytes.back() - free.bytes.back() - python.bytes.back() -
                         use.bytes.back());
    table.t.push_back(m.t);
    table.resident.push_back(m.rss->value);
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
  const size_t most_accounts =
      std::min(limits.accounts, limits.cells / std::max<size_t>(1, std::min(limits.moments, run.os.size())));
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
    case AccountKind::kUse:
      return "use";
    case AccountKind::kRetained:
      return "retained";
    case AccountKind::kReserved:
      return "reserved";
    case AccountKind::kRest:
      return "rest";
  }
  return "use";
}

int64_t Account::most() const { return bytes.empty() ? 0 : *std::ranges::max_element(bytes); }

AccountTable accounts_over_time(const RunContents& run, const AccountLimits& limits) {
  return run.engine ? of_engine(run, limits) : of_watch(run.evidence, limits);
}

AccountTable accounts_over_time(const verdict::Evidence& watched, const AccountLimits& limits) {
  return of_watch(watched, limits);
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
