#include "plan/items.h"

#include <algorithm>
#include <bit>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::plan {
namespace {

constexpr int64_t kMost = int64_t{1} << 56;  // no sum of sizes may overflow

Error malformed(const Problem& problem, size_t i, std::string what, std::string hint) {
  return Error(Code::kUsage, format("plan: buffer {} \"{}\" {}", i, problem.buffers[i].name, what))
      .hint(std::move(hint));
}

void check(const Problem& problem, size_t i, int64_t& total) {
  const Buffer& b = problem.buffers[i];
  const auto bad = [&](std::string what, std::string hint) {
    throw malformed(problem, i, std::move(what), std::move(hint));
  };
  if (b.size.value < 0) bad(format("has {} bytes", b.size.value), "a size is 0 or more");
  if (b.first < 0 || b.last < b.first || b.last >= problem.calls)
    bad(format("is alive from call {} to {} of a program of {} calls", b.first, b.last, problem.calls),
        "0 <= first <= last < calls must hold");
  if (b.alignment.value < 1 || !std::has_single_bit(uint64_t(b.alignment.value)) || b.alignment.value > kMost)
    bad(format("has the alignment {}", b.alignment.value), "an alignment is a power of two");
  if (b.offset && (b.offset->value < 0 || b.offset->value > kMost || b.offset->value % b.alignment.value))
    bad(format("is fixed at offset {}, which its alignment {} forbids", b.offset->value, b.alignment.value),
        "fix it at a multiple of its alignment");
  if (b.size.value > kMost || (total += b.size.value) > kMost)
    bad(format("has {}, and the sizes up to here sum up to more than {}", b.size, Bytes{kMost}),
        "check how the size was computed");
  if (!b.inside) return;
  if (b.inside->value < 0 || size_t(b.inside->value) >= problem.buffers.size())
    bad(format("lies inside buffer {}, but there are only {}", b.inside->value, problem.buffers.size()),
        "inside takes the index of a buffer");
  const Buffer& outer = problem.buffers[b.inside->value];
  if (b.inside_offset.value < 0 || b.inside_offset.value > outer.size.value || b.size > outer.size - b.inside_offset)
    bad(format("({} bytes) lies {} bytes into \"{}\", which has {}", b.size.value, b.inside_offset.value, outer.name,
               outer.size.value),
        "what lies inside a buffer must end inside it");
}

// Follows `inside` up to the root; fills root and shift of every buffer on the way, so all chains together cost O(n).
void climb_to_root(const Problem& problem, size_t start, std::vector<int>& root, std::vector<int64_t>& shift) {
  std::vector<int> path;
  int at = int(start);
  while (root[at] < 0 && problem.buffers[at].inside) {
    path.push_back(at);
    if (path.size() > problem.buffers.size())
      throw malformed(problem, start, "lies inside itself, over others",
                      "a chain of inside must end in a buffer that is inside none");
    at = problem.buffers[at].inside->value;
  }
  if (root[at] < 0) root[at] = at;
  for (; !path.empty(); path.pop_back()) {
    const int child = path.back();
    const int outer = problem.buffers[child].inside->value;
    root[child] = root[outer];
    shift[child] = shift[outer] + problem.buffers[child].inside_offset.value;
  }
}

void absorb(Items& items, const Problem& problem, size_t i) {
  const Buffer& b = problem.buffers[i];
  Item& item = items.list[items.of[i]];
  item.first = std::min(item.first, b.first);
  item.last = std::max(item.last, b.escapes ? problem.calls - 1 : b.last);
  item.alignment = std::max(item.alignment, b.alignment.value);
  if (!b.offset) return;
  const int64_t at = b.offset->value - items.shift[i];
  const std::string& root = problem.buffers[items.root[items.of[i]]].name;
  if (at < 0 || (item.fixed >= 0 && item.fixed != at))
    throw Error(Code::kMemory,
                format("plan: \"{}\" is fixed at offset {}, so \"{}\", around it, would begin at {}{}", b.name,
                       b.offset->value, root, at, at < 0 ? "" : format(", but is fixed at {}", item.fixed)))
        .hint("fix only one of the two, or both to agree");
  item.fixed = at;
}

// Reservations that meet in time may not share bytes: no search can move them apart.
void check_reservations(const Items& items, const Problem& problem) {
  std::vector<int> fixed;
  for (int i = 0; i < int(items.list.size()); ++i) {
    const Item& a = items.list[i];
    if (a.fixed < 0) continue;
    if (a.fixed % a.alignment)
      throw Error(Code::kMemory,
                  format("plan: \"{}\" is fixed at offset {}, but what lies inside it needs the alignment {}",
                         problem.buffers[items.root[i]].name, a.fixed, a.alignment))
          .hint("fix it at a multiple of that alignment");
    if (a.size > 0) fixed.push_back(i);
  }
  std::ranges::sort(fixed, {}, [&](int i) { return items.list[i].first; });
  for (size_t p = 0; p < fixed.size(); ++p) {
    const Item& a = items.list[fixed[p]];
    for (size_t q = p + 1; q < fixed.size() && items.list[fixed[q]].first <= a.last; ++q) {
      const Item& b = items.list[fixed[q]];
      const int64_t shared = std::min(a.fixed + a.size, b.fixed + b.size) - std::max(a.fixed, b.fixed);
      if (shared <= 0) continue;
      throw Error(Code::kMemory,
                  format("plan: the reservations of \"{}\" at offset {} and \"{}\" at offset {} share {} at call {}",
                         problem.buffers[items.root[fixed[p]]].name, a.fixed,
                         problem.buffers[items.root[fixed[q]]].name, b.fixed, Bytes{shared}, b.first))
          .hint("move one of them, or let the plan choose its offset");
    }
  }
}

}  // namespace

Items normalise(const Problem& problem) {
  const size_t n = problem.buffers.size();
  Items items;
  items.calls = problem.calls;
  int64_t total = 0;
  for (size_t i = 0; i < n; ++i) check(problem, i, total);
  std::vector<int> root(n, -1);
  items.shift.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    climb_to_root(problem, i, root, items.shift);
    const int64_t shift = items.shift[i], alignment = problem.buffers[i].alignment.value;
    if (shift % alignment)
      throw malformed(problem, i,
                      format("lies {} bytes into \"{}\", which its alignment {} forbids", shift,
                             problem.buffers[root[i]].name, alignment),
                      format("give it the alignment {}", shift & -shift));
  }

  items.of.assign(n, -1);
  for (size_t i = 0; i < n; ++i) {
    if (root[i] != int(i)) continue;
    const Buffer& b = problem.buffers[i];
    items.of[i] = int(items.list.size());
    items.list.push_back({.size = b.size.value, .alignment = 1, .fixed = -1, .first = b.first, .last = b.last});
    items.root.push_back(int(i));
  }
  for (size_t i = 0; i < n; ++i) items.of[i] = items.of[root[i]];
  for (size_t i = 0; i < n; ++i) absorb(items, problem, i);

  items.unit = kMost;
  for (const Item& item : items.list)
    if (item.size > 0) items.unit = std::min(items.unit, item.alignment);
  if (items.unit == kMost) items.unit = 1;
  for (Item& item : items.list) item.size = align_up(item.size, items.unit);
  check_reservations(items, problem);
  return items;
}

int64_t arena_size(const Items& items, const std::vector<int64_t>& offsets) {
  int64_t top = 0;
  for (size_t i = 0; i < offsets.size(); ++i) top = std::max(top, offsets[i] + items.list[i].size);
  return align_up(top, items.unit);
}

}  // namespace millpond::plan
