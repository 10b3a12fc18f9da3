#include <algorithm>

#include "base/format.h"
#include "verdict/account.h"
#include "verdict/growth.h"
#include "verdict/table.h"

namespace millpond::verdict {
namespace {

using Part = AccountPart::Kind;
constexpr auto kStays = {Part::kHeld, Part::kNative,  Part::kGarbage, Part::kInUse, Part::kShared,
                         Part::kGpu,  Part::kOutside, Part::kCopied,  Part::kFiles};

bool stays(const AccountPart& p) { return std::ranges::find(kStays, p.kind) != kStays.end(); }

/// Something that stays was seen to grow.
bool has_grown(const Account& a) {
  // What libraries take in a few large pieces has a wide interval of its own; the whole has not.
  const bool mostly_in_use = a.range.low > 0 && a.staying().bytes > kTable.most * a.growth;
  return (a.from_outside() && a.range.low > 0) || a.staying().grows() || mostly_in_use ||
         std::ranges::any_of(a.parts, [](const AccountPart& p) { return p.grows() && stays(p); });
}

/// The most that what stays can have grown by.
double most_that_stays(const Account& a) {
  double sum = 0;
  for (const AccountPart& p : a.parts) sum += stays(p) ? std::max(0.0, p.range.high) : 0;
  return std::max(sum, a.from_outside() ? a.range.high : a.staying().range.high);
}

const Finding* leading(const Verdict& v) {
  return v.findings.empty() || !v.findings.front().sets_verdict ? nullptr : &v.findings.front();
}

/// What is told of another process, of children or of a device is held against its own account, or the tree's.
std::vector<const Account*> accounts_of(const Verdict& v, const Finding* first) {
  std::vector<const Account*> of;
  const bool device = first && first->space.starts_with("gpu");
  if (!device && !(first && first->process != 0 && first->process != v.account->process)) of.push_back(v.account.get());
  for (size_t i = 0; v.accounts && !device && i < v.accounts->size(); ++i)
    if (const Account& other = (*v.accounts)[i]; other.tree || (first && other.process == first->process))
      of.push_back(&other);
  return of;
}

/// The account leaves out warm-up and half of the rounds at either end: what a leak has in the rounds that it is of.
double expected(const Finding& f, const Account& a) {
  const double share = f.unit == a.unit && f.units_seen > a.rounds ? a.rounds / f.units_seen : 1;
  return kTable.most * share * double(f.total.value);
}

}  // namespace

std::vector<std::string> contradictions(const Verdict& v) {
  std::vector<std::string> found;
  if (!v.account || v.too_short) return found;
  const Account& a = *v.account;
  const Finding* first = leading(v);
  const std::vector<const Account*> of = accounts_of(v, first);
  if (of.empty()) return found;
  const AccountPart in_use = a.staying(), free = a.of({Part::kFree, Part::kPinned});
  const double small = std::max(kTable.small, kTable.small_share * a.level);
  const auto told = [&](std::string_view what, std::string_view more = "") {
    found.push_back(format("{}, and what is in use grew by {} to {}{}", what, amount(in_use.range.low),
                           amount(in_use.range.high), more));
  };
  if (v.kind == Kind::kLeak) {
    double most = 0;
    for (const Account* one : of) most = std::max(most, most_that_stays(*one));
    if (std::ranges::none_of(of, [](const Account* one) { return has_grown(*one); })) {
      told("a leak");
    } else if (first && first->processes == 1 && double(first->total.value) > small && most < expected(*first, a)) {
      found.push_back(format("a leak of {}, and what stays grew by {} at most", first->total, amount(most)));
    }
    for (const Account* one : of)
      if (first && first->cause == "C24" && one->tree && !one->of(Part::kCopied).grows())
        found.push_back("pages of a parent that were copied, and none were");
  }
  if (v.kind == Kind::kFlat && in_use.range.low > small && a.range.low > small) told("flat");
  if ((v.kind == Kind::kRetention || v.kind == Kind::kFragmentation) && a.range.low > small &&
      std::max(small, free.range.high) < in_use.range.low)
    told(to_string(v.kind), ", more than what is free");
  if (v.kind == Kind::kUnsure && !first && a.range.high <= 0 && in_use.range.high <= 0)
    found.push_back(
        format("a rise, and memory did not: it grew by {} to {}", amount(a.range.low), amount(a.range.high)));
  return found;
}

void hold_to_account(Verdict& v) {
  const std::vector<std::string> against = contradictions(v);
  if (against.empty()) return;
  for (Finding& f : v.findings) f.sets_verdict = false;
  if (v.kind == Kind::kUnsure) {
    v.kind = Kind::kFlat;
    v.would_settle.clear();
    v.sentence = format("Memory did not rise after warm-up: {}.", against.front());
    return;
  }
  v.kind = Kind::kUnsure;
  v.would_settle = "let it run for longer, so that its rounds can be told apart";
  v.sentence =
      format("What was seen does not agree: there are signs of {}. A longer run would settle it.", against.front());
  if (!contradictions(v).empty()) hold_to_account(v);  // nothing rose at all
}

}  // namespace millpond::verdict
