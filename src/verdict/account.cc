#include "verdict/account.h"

#include <algorithm>
#include <cmath>

namespace millpond::verdict {
namespace {

using Part = AccountPart::Kind;

struct Rise {
  double bytes = 0, error = 0;
};

/// From the first rounds after warm-up to the last ones, as medians; the error is that of two such medians, by how far rounds lie from the straight line.
Rise rise(const Series& all, double warm) {
  const Series s = all.since(warm);
  if (s.size() < 2) return {};
  const size_t some = std::clamp<size_t>(s.size() / 4, 1, 5);
  const double first = median({s.y.begin(), s.y.begin() + ptrdiff_t(some)}), last = median({s.y.end() - ptrdiff_t(some), s.y.end()});
  const Slope slope = theil_sen(s.x, s.y);
  std::vector<double> off;
  for (size_t i = 0; i < s.size(); ++i) off.push_back(s.y[i] - slope.value * (s.x[i] - s.x.front()));
  const double middle = median(off);
  for (double& o : off) o = std::abs(o - middle);
  return {last - first, 1.96 * kDeviation * median(off) * std::sqrt(2.0 / double(some))};
}

/// What the walk found, as shares of what is alive and was born since the rounds began.
void split_by_walk(const HeapWalk& walk, const Rise& sampled, std::vector<AccountPart>& parts) {
  constexpr double kWorthNaming = 0.03;
  const double scale = sampled.bytes / walk.alive, error = sampled.error / walk.alive;
  double others = walk.reached;
  for (const Holder& h : walk.holders) {
    if (h.how != Holder::How::kReached || h.bytes < kWorthNaming * walk.alive) continue;
    AccountPart part{Part::kHeld, h.name(), h.chain, {}, scale * h.bytes, error * h.bytes};
    if (!h.born.empty()) part.born = h.born.front().place;
    parts.push_back(std::move(part));
    others -= h.bytes;
  }
  const double native = std::max(0.0, walk.alive - walk.reached - walk.garbage);
  const auto add = [&](AccountPart::Kind kind, const char* name, double bytes) {
    if (bytes > 0) parts.push_back({kind, name, {}, {}, scale * bytes, error * bytes});
  };
  add(Part::kHeld, "other objects of Python", others);
  add(Part::kNative, "held by native code", native);
  add(Part::kGarbage, "garbage until gc runs", walk.garbage);
}

}  // namespace

std::string_view to_string(AccountPart::Kind kind) {
  switch (kind) {
    case Part::kHeld:
      return "held";
    case Part::kNative:
      return "native";
    case Part::kGarbage:
      return "garbage";
    case Part::kInUse:
      return "in use";
    case Part::kFree:
      return "free";
    case Part::kUntouched:
      return "untouched";
    case Part::kUnexplained:
      return "unexplained";
  }
  return "unexplained";
}

std::optional<Account> account(const Case& c) {
  const Periods& p = c.periods;
  if (p.size() < 3 || p.rss.size() < 3) return {};
  const Rise all = rise(p.rss, p.warm);
  Account a{all.bytes, all.error, p.length(), p.unit, {}};
  Rise sampled = rise(c.sites.total, p.warm), used = rise(p.live, p.warm), free = rise(p.heap_free, p.warm);
  // A sum of samples is known as well as their number allows: each small one stands for an interval.
  sampled.error = std::hypot(sampled.error, 1.96 * std::sqrt(std::max(0.0, sampled.bytes) * c.evidence.sampling_interval));
  if (sampled.bytes > 0 && c.notes.walk && c.notes.walk->alive > 0)
    split_by_walk(*c.notes.walk, sampled, a.parts);
  else if (sampled.bytes > 0)
    a.parts.push_back({Part::kInUse, "in use, by lines", {}, c.growing_place(), sampled.bytes, sampled.error});
  if (!p.live.empty()) a.parts.push_back({Part::kInUse, "in use beyond that, as allocators count", {}, {}, used.bytes - std::max(0.0, sampled.bytes), std::hypot(used.error, sampled.error)});
  if (!p.heap_free.empty()) a.parts.push_back({Part::kFree, "free in the allocator", {}, {}, free.bytes, free.error});
  std::erase_if(a.parts, [](const AccountPart& part) { return std::abs(part.bytes) < 1; });
  std::ranges::stable_sort(a.parts, std::ranges::greater{}, &AccountPart::bytes);
  double rest = a.growth;
  for (const AccountPart& part : a.parts) rest -= part.bytes;
  // What was asked for and not written yet takes no memory: allocators count it, the system does not.
  a.parts.push_back({rest < 0 ? Part::kUntouched : Part::kUnexplained, rest < 0 ? "asked for and never written" : "not explained", {}, {}, rest, all.error});
  return a;
}

}  // namespace millpond::verdict
