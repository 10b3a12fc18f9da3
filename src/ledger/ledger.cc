#include "ledger/ledger.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "millpond/error.h"

namespace millpond::ledger {
namespace {

void check_name(std::string_view account) {
  const bool bad = account.empty() || account.front() == '/' || account.back() == '/' ||
                   account.find("//") != account.npos ||
                   std::ranges::any_of(account, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (bad)
    throw Error(Code::kUsage, format("\"{}\" is not the name of an account", account))
        .hint("write a path such as weights/dense_1/kernel");
}

void check_amount(std::string_view account, Bytes amount, const char* verb) {
  if (amount.value < 0)
    throw Error(Code::kUsage, format("{} {} bytes: account {}", verb, amount.value, account))
        .hint("an amount of memory is 0 or more");
}

const AccountLine* line_of(const std::vector<AccountLine>& lines, std::string_view account) {
  const auto at = std::ranges::lower_bound(lines, account, {}, &AccountLine::name);
  return at != lines.end() && at->name == account ? &*at : nullptr;
}

}  // namespace

std::string_view to_string(PhaseKind kind) {
  static constexpr std::string_view kNames[] = {"run",        "build",    "compile", "fit",  "epoch", "step",
                                                "validation", "evaluate", "predict", "save", "load",  "other"};
  return kNames[int(kind)];
}

Bytes Snapshot::total(std::string_view account) const {
  const AccountLine* l = line_of(accounts, account);
  return account.empty() ? current : l ? l->current : Bytes{};
}
Bytes Snapshot::peak_of(std::string_view account) const {
  const AccountLine* l = line_of(accounts, account);
  return account.empty() ? peak : l ? l->peak : Bytes{};
}

int Ledger::find(std::string_view account) const {
  const auto at = by_name_.find(account);
  return at == by_name_.end() ? -1 : at->second;
}

int Ledger::find_or_make(std::string_view account) {
  if (const int known = find(account); known >= 0) return known;
  const size_t slash = account.rfind('/');
  const int parent = slash == account.npos ? -1 : find_or_make(account.substr(0, slash));
  int node = int(nodes_.size());
  if (spare_.empty())
    nodes_.emplace_back();
  else
    node = spare_.back(), spare_.pop_back();
  nodes_[node] = {.name = std::string(account),
                  .parent = parent,
                  .children = 0,
                  .own = {},
                  .current = {},
                  .peak = {},
                  .used = true};
  if (parent >= 0) ++nodes_[parent].children;
  for (OpenPhase& phase : open_) {
    phase.peaks.resize(nodes_.size());
    phase.peaks[node] = Bytes{};
  }
  by_name_.emplace(account, node);
  return node;
}

void Ledger::add(int node, Bytes amount) {
  nodes_[node].own += amount;
  for (int n = node; n >= 0; n = nodes_[n].parent) {
    nodes_[n].current += amount;
    nodes_[n].peak = std::max(nodes_[n].peak, nodes_[n].current);
    for (OpenPhase& phase : open_) phase.peaks[n] = std::max(phase.peaks[n], nodes_[n].current);
  }
  current_ += amount;
  peak_ = std::max(peak_, current_);
  for (OpenPhase& phase : open_) phase.record.peak = std::max(phase.record.peak, current_);
}

void Ledger::subtract(int node, Bytes amount) {
  nodes_[node].own -= amount;
  for (int n = node; n >= 0; n = nodes_[n].parent) nodes_[n].current -= amount;
  current_ -= amount;
  forget_if_empty(node);
}

void Ledger::forget_if_empty(int node) {
  while (open_.empty() && node >= 0) {
    Node& n = nodes_[node];
    const int parent = n.parent;
    if (n.current.value != 0 || n.children > 0 || parent < 0) return;
    by_name_.erase(n.name);
    --nodes_[parent].children;
    n = Node{};
    spare_.push_back(node);
    node = parent;
  }
}

void Ledger::charge(std::string_view account, Bytes amount) {
  check_name(account);
  check_amount(account, amount, "charge of");
  if (amount.value == 0) return;
  const std::lock_guard guard(lock_);
  add(find_or_make(account), amount);
}

void Ledger::release(std::string_view account, Bytes amount) {
  check_name(account);
  check_amount(account, amount, "release of");
  const std::lock_guard guard(lock_);
  const int node = find(account);
  const Bytes balance = node < 0 ? Bytes{} : nodes_[node].own;
  if (amount > balance)
    throw Error(Code::kMemory, format("account {} has {} bytes, but {} are released ({} too many)", account,
                                      balance.value, amount.value, (amount - balance).value))
        .hint("something is released twice, or was charged to another account");
  if (node >= 0 && amount.value > 0) subtract(node, amount);
}

RangeId Ledger::charge(std::string_view account, const void* begin, Bytes size) {
  check_name(account);
  check_amount(account, size, "charge of");
  const std::lock_guard guard(lock_);
  const RangeId id{++last_id_};
  ranges_.emplace(id.value, ChargedRange{std::string(account), begin, size});
  if (size.value > 0) add(find_or_make(account), size);
  return id;
}

void Ledger::release(RangeId range) {
  const std::lock_guard guard(lock_);
  const auto at = ranges_.find(range.value);
  if (at == ranges_.end())
    throw Error(Code::kMemory, format("range {} is released, but it is not charged", range.value))
        .hint("something is released twice");
  const ChargedRange r = std::move(at->second);
  ranges_.erase(at);
  if (r.size.value == 0) return;
  const int node = find(r.account);
  MP_ASSERT(node >= 0 && nodes_[node].own >= r.size);
  subtract(node, r.size);
}

Bytes Ledger::current(std::string_view account) const {
  const std::lock_guard guard(lock_);
  const int node = find(account);
  return account.empty() ? current_ : node < 0 ? Bytes{} : nodes_[node].current;
}

Bytes Ledger::peak(std::string_view account) const {
  const std::lock_guard guard(lock_);
  const int node = find(account);
  return account.empty() ? peak_ : node < 0 ? Bytes{} : nodes_[node].peak;
}

AccountLine Ledger::line(int node, Bytes peak) const {
  return {nodes_[node].name, nodes_[node].own, nodes_[node].current, peak};
}

Snapshot Ledger::snapshot() const {
  const std::lock_guard guard(lock_);
  Snapshot s{.current = current_, .peak = peak_, .accounts = {}, .ranges = {}};
  for (const auto& [name, node] : by_name_) s.accounts.push_back(line(node, nodes_[node].peak));
  for (const auto& [id, range] : ranges_) s.ranges.push_back(range);
  return s;
}

PhaseId Ledger::begin_phase(PhaseKind kind, std::string name, int64_t index) {
  const std::lock_guard guard(lock_);
  OpenPhase phase;
  phase.record = {.id = {++last_id_},
                  .parent = open_.empty() ? PhaseId{} : open_.back().record.id,
                  .kind = kind,
                  .name = std::move(name),
                  .index = index,
                  .at_begin = current_,
                  .at_end = {},
                  .peak = current_,
                  .accounts = {}};
  for (const Node& n : nodes_) phase.peaks.push_back(n.current);
  open_.push_back(std::move(phase));
  return open_.back().record.id;
}

PhaseRecord Ledger::end_phase(PhaseId phase) {
  const std::lock_guard guard(lock_);
  const auto at = std::ranges::find(open_, phase, [](const OpenPhase& p) { return p.record.id; });
  if (at == open_.end())
    throw Error(Code::kUsage, format("phase {} is ended, but it is not open", phase.value)).hint("end each phase once");
  OpenPhase ended = std::move(*at);
  open_.erase(at);
  ended.record.at_end = current_;
  for (const auto& [name, node] : by_name_) ended.record.accounts.push_back(line(node, ended.peaks[node]));
  if (open_.empty())
    for (int node = int(nodes_.size()); node-- > 0;)
      if (nodes_[node].used) forget_if_empty(node);
  return std::move(ended.record);
}

Ledger& process_ledger() {
  static Ledger* const ledger = new Ledger;
  return *ledger;
}

Charge::Charge(Ledger& ledger, std::string_view account, Bytes amount) : account_(account), amount_(amount) {
  ledger.charge(account, amount);
  ledger_ = &ledger;
}
Charge::Charge(Ledger& ledger, std::string_view account, const void* begin, Bytes size)
    : account_(account), amount_(size) {
  range_ = ledger.charge(account, begin, size);
  ledger_ = &ledger;
}
Charge::Charge(Charge&& o) noexcept { *this = std::move(o); }
Charge& Charge::operator=(Charge&& o) noexcept {
  if (this == &o) return *this;
  drop();
  ledger_ = std::exchange(o.ledger_, nullptr);
  account_ = std::exchange(o.account_, {});
  amount_ = std::exchange(o.amount_, Bytes{});
  range_ = std::exchange(o.range_, RangeId{});
  return *this;
}
void Charge::resize(Bytes amount) {
  MP_ASSERT(ledger_ && range_ == RangeId{});
  if (amount > amount_)
    ledger_->charge(account_, amount - amount_);
  else
    ledger_->release(account_, amount_ - amount);
  amount_ = amount;
}
// Only what this object charged itself is released, so an Error here is a bug and ends the program (noexcept).
void Charge::drop() noexcept {
  if (!ledger_) return;
  if (range_ != RangeId{})
    ledger_->release(range_);
  else
    ledger_->release(account_, amount_);
  ledger_ = nullptr;
}

}  // namespace millpond::ledger
