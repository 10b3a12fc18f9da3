#include "verdict/outside.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "verdict/course.h"
#include "verdict/growth.h"

namespace millpond::verdict {
namespace {

struct Seen {
  double first = 0, last = 0;  // when the first quarter was over, which is warm-up, and at the end
  bool rises = false;
};

Seen seen(const std::vector<double>& y) {
  if (y.empty()) return {};
  const std::vector<double> later(y.begin() + long(y.size() / 4), y.end());
  std::vector<double> x;
  for (size_t i = 0; i < later.size(); ++i) x.push_back(double(i));
  const Course c = course(x, later, kTable.grain);
  return {later.front(), later.back(),
          c.rises() && c.total > std::max(kTable.small, kTable.small_share * later.back())};
}

}  // namespace

void answer_from_outside(const Evidence& evidence, Verdict& v) {
  if (evidence.blind.empty() || (v.kind != Kind::kFlat && v.kind != Kind::kUnsure && v.kind != Kind::kReserve)) return;
  std::vector<double> own, tree;
  for (const OsPoint& p : evidence.os) {
    if (p.rss) own.push_back(double(p.rss->value));
    if (p.tree_private_dirty) tree.push_back(double(p.tree_private_dirty->value));
  }
  Seen c = seen(own);
  const char* what = "Resident memory";
  if (const Seen all = seen(tree); all.rises && !c.rises) c = all, what = "Memory private to the program's processes";
  if (c.rises) {
    v.kind = Kind::kUnsure;
    v.findings.clear();
    v.would_settle = "run it where it can be looked into: \"not seen\" says what was in the way";
    v.sentence =
        format("{} rose from {} to {} after warm-up, and {}: whether that is a leak cannot be told from outside.", what,
               amount(c.first), amount(c.last),
               evidence.blind_partly ? "not all of its processes were looked into" : "it is all that was seen");
  } else if (v.kind != Kind::kUnsure && !evidence.blind_partly) {
    v.kind = Kind::kFlat;
    v.sentence = own.size() < size_t(kTable.fewest)
                     ? "The run was too short to compare, and only resident memory was seen of it."
                     : format("{}, all that was seen of it, was {} after warm-up and {} at the end.", what,
                              amount(c.first), amount(c.last));
  }
}

}  // namespace millpond::verdict
