#include "verdict/outside.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "verdict/growth.h"
#include "verdict/statistics.h"

namespace millpond::verdict {
namespace {

constexpr size_t kFewest = 8;                  // points of which a half can be compared with the other

struct Seen {
  double first = 0, last = 0;  // about the first quarter's end, and the end
  bool rises = false;
};

/// The first quarter is warm-up. What rises is higher in the last quarter than in the third, and in the third than in the second.
Seen course_of(const std::vector<double>& y) {
  Seen c;
  if (y.empty()) return c;
  c.first = y.front(), c.last = y.back();
  if (y.size() < kFewest) return c;
  const auto part = [&](size_t i) {
    const auto at = [&](size_t quarter) { return y.begin() + long(y.size() * quarter / 4); };
    return median({at(i), at(i + 1)});
  };
  c.first = part(1), c.last = part(3);
  const double most = c.last - c.first;
  c.rises = most > std::max(kSmall, kSmallShare * c.last) && part(2) > c.first && part(3) > part(2);
  return c;
}

}  // namespace

void answer_from_outside(const Evidence& evidence, Verdict& v) {
  if (evidence.blind.empty() || (v.kind != Kind::kFlat && v.kind != Kind::kUnsure && v.kind != Kind::kReserve)) return;
  std::vector<double> own, tree;
  for (const OsPoint& p : evidence.os) {
    if (p.rss) own.push_back(double(p.rss->value));
    if (p.tree_private_dirty) tree.push_back(double(p.tree_private_dirty->value));
  }
  Seen c = course_of(own);
  const char* what = "Resident memory";
  if (const Seen all = course_of(tree); all.rises && !c.rises) c = all, what = "Memory private to the program's processes";
  if (c.rises) {
    v.kind = Kind::kUnsure;
    v.findings.clear();
    v.would_settle = "run it where it can be looked into: \"not seen\" says what was in the way";
    v.sentence = format("{} rose from {} to {} after warm-up, and {}: whether that is a leak cannot be told from outside.", what, amount(c.first), amount(c.last),
                        evidence.blind_partly ? "not all of its processes were looked into" : "it is all that was seen");
  } else if (v.kind != Kind::kUnsure && !evidence.blind_partly) {
    v.kind = Kind::kFlat;
    v.sentence = own.size() < kFewest
                     ? "The run was too short to compare, and only resident memory was seen of it."
                     : format("{}, all that was seen of it, was {} after warm-up and {} at the end.", what, amount(c.first), amount(c.last));
  }
}

}  // namespace millpond::verdict
