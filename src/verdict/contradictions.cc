#include <algorithm>

#include "base/format.h"
#include "verdict/account.h"

namespace millpond::verdict {
namespace {

using Part = AccountPart::Kind;

/// Nothing but pages was counted: no allocator, no sample, no walk.
bool from_outside(const Account& a) {
  return std::ranges::none_of(a.parts, [](const AccountPart& p) {
    return p.kind == Part::kHeld || p.kind == Part::kNative || p.kind == Part::kGarbage || p.kind == Part::kInUse ||
           p.kind == Part::kFree || p.kind == Part::kPinned || p.kind == Part::kGpu;
  });
}

/// Something that stays was seen to grow.
bool has_grown(const Account& a, std::span<const Part> kinds) {
  if (from_outside(a) && a.range.low > 0) return true;
  return std::ranges::any_of(
             a.parts,
             [&](const AccountPart& p) { return p.grows() && std::ranges::find(kinds, p.kind) != kinds.end(); }) ||
         a.staying().grows();
}

/// The most that what stays can have grown by.
double most_that_stays(const Account& a, std::span<const Part> kinds) {
  double most = from_outside(a) ? a.range.high : a.staying().range.high, sum = 0;
  for (const AccountPart& p : a.parts)
    if (std::ranges::find(kinds, p.kind) != kinds.end()) sum += std::max(0.0, p.range.high);
  return std::max(most, sum);
}

}  // namespace

std::vector<std::string> contradictions(const Verdict& v) {
  std::vector<std::string> found;
  if (!v.account || v.too_short) return found;
  constexpr Part kStays[] = {Part::kHeld, Part::kNative,  Part::kGarbage, Part::kInUse, Part::kShared,
                             Part::kGpu,  Part::kOutside, Part::kCopied,  Part::kFiles};
  const Account& a = *v.account;
  const Finding* first = v.findings.empty() || !v.findings.front().sets_verdict ? nullptr : &v.findings.front();
  // What is told of another process, of children or of a device is held against its own account, or the tree's.
  std::vector<const Account*> of;
  const bool elsewhere =
      first && ((first->process != 0 && first->process != a.process) || first->space.starts_with("gpu"));
  if (!elsewhere) of.push_back(&a);
  const Account* tree = nullptr;
  if (v.accounts)
    for (const Account& other : *v.accounts) {
      if (other.tree) tree = &other;
      if (other.tree || (first && other.process == first->process)) of.push_back(&other);
    }
  if (of.empty()) return found;
  const AccountPart stays = a.staying(), free = a.of(Part::kFree), pinned = a.of(Part::kPinned);
  const double small = std::max(kTable.small, kTable.small_share * a.level);
  if (v.kind == Kind::kLeak && std::ranges::none_of(of, [&](const Account* one) { return has_grown(*one, kStays); }))
    found.push_back(format("leak, and nothing that stays was seen to grow: in use {} to {}", amount(stays.range.low),
                           amount(stays.range.high)));
  if (v.kind == Kind::kLeak && first && first->processes == 1 && found.empty()) {
    // The account leaves out the ends of the rounds that a rate is told of: half of it must be there.
    constexpr double kLeast = 0.5;
    double most = 0;
    for (const Account* one : of) most = std::max(most, most_that_stays(*one, kStays));
    if (double(first->total.value) > small && most < kLeast * double(first->total.value))
      found.push_back(format("a leak of {} is told, and what stays grew by {} at most", first->total, amount(most)));
  }
  if (v.kind == Kind::kLeak && first && first->cause == "C24" && tree && !tree->of(Part::kCopied).grows())
    found.push_back("pages of a parent are said to be copied, and none were");
  if (v.kind == Kind::kFlat && stays.range.low > small && a.range.low > small)
    found.push_back(
        format("flat, and what is in use grew by {} to {}", amount(stays.range.low), amount(stays.range.high)));
  if ((v.kind == Kind::kRetention || v.kind == Kind::kFragmentation) && a.range.low > small &&
      std::max(0.0, free.range.high + pinned.range.high) < stays.range.low)
    found.push_back(format("{}, and what is in use grew by {} to {}, more than what is free", to_string(v.kind),
                           amount(stays.range.low), amount(stays.range.high)));
  if (v.kind == Kind::kUnsure && !first && a.range.high <= 0 && stays.range.high <= 0)
    found.push_back(format("unsure, and memory did not rise: {} to {}", amount(a.range.low), amount(a.range.high)));
  return found;
}

}  // namespace millpond::verdict
