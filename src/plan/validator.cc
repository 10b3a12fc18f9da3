// Shares no code with the solver, on purpose: it knows the rules of plan.h and nothing about how offsets were found.
#include <algorithm>

#include "base/format.h"
#include "plan/plan.h"

namespace millpond::plan {
namespace {

struct Block {  // a root buffer with the lifetime of everything inside it
  size_t buffer;
  int64_t begin, end;
  int first, last;
};

std::string where(const Buffer& b, Bytes offset) {
  return format("\"{}\" [{}, {})", b.name, offset.value, (offset + b.size).value);
}

// The buffer that a chain of `inside` ends in; the buffer itself where the chain is broken or turns in a circle.
size_t root_of(const Problem& problem, size_t i) {
  size_t at = i;
  for (size_t hops = 0; problem.buffers[at].inside; ++hops) {
    const int32_t next = problem.buffers[at].inside->value;
    if (next < 0 || size_t(next) >= problem.buffers.size() || hops > problem.buffers.size()) return i;
    at = size_t(next);
  }
  return at;
}

void check_alone(const Problem& problem, const Plan& plan, size_t i, std::vector<std::string>& found) {
  const Buffer& b = problem.buffers[i];
  const Bytes at = plan.offsets[i];
  if (at.value < 0) found.push_back(format("{} begins before the arena", where(b, at)));
  if (at + b.size > plan.size)
    found.push_back(format("{} ends beyond the arena of {} bytes", where(b, at), plan.size.value));
  if (at.value % b.alignment.value != 0)
    found.push_back(format("{} is not aligned to {}", where(b, at), b.alignment.value));
  if (b.offset && *b.offset != at)
    found.push_back(format("{} has left its reservation at {}", where(b, at), b.offset->value));
  if (!b.inside) return;
  if (root_of(problem, i) == i) {
    found.push_back(format("\"{}\" lies inside buffer {}, which leads to no root", b.name, b.inside->value));
    return;
  }
  const Buffer& outer = problem.buffers[b.inside->value];
  const Bytes begin = plan.offsets[b.inside->value];
  if (at != begin + b.inside_offset)
    found.push_back(format("{} is not {} bytes into {}", where(b, at), b.inside_offset.value, where(outer, begin)));
  if (at < begin || at + b.size > begin + outer.size)
    found.push_back(format("{} sticks out of {}", where(b, at), where(outer, begin)));
}

}  // namespace

std::vector<std::string> violations(const Problem& problem, const Plan& plan) {
  std::vector<std::string> found;
  const size_t n = problem.buffers.size();
  if (plan.offsets.size() != n) return {format("the plan has {} offsets for {} buffers", plan.offsets.size(), n)};
  if (plan.lower_bound > plan.size)
    found.push_back(
        format("the arena of {} bytes is smaller than the lower bound of {}", plan.size.value, plan.lower_bound.value));
  for (size_t i = 0; i < n; ++i) check_alone(problem, plan, i, found);

  std::vector<Block> blocks(n);
  for (size_t i = 0; i < n; ++i) {
    const Buffer& b = problem.buffers[i];
    blocks[i] = {i, plan.offsets[i].value, (plan.offsets[i] + b.size).value, b.first,
                 b.escapes ? problem.calls - 1 : b.last};
  }
  for (size_t i = 0; i < n; ++i) {
    Block& root = blocks[root_of(problem, i)];
    root.first = std::min(root.first, blocks[i].first);
    root.last = std::max(root.last, blocks[i].last);
  }
  std::erase_if(blocks, [&](const Block& k) { return k.begin == k.end || root_of(problem, k.buffer) != k.buffer; });
  std::ranges::sort(blocks, {}, &Block::first);
  for (size_t p = 0; p < blocks.size(); ++p) {
    for (size_t q = p + 1; q < blocks.size() && blocks[q].first <= blocks[p].last; ++q) {
      if (blocks[p].begin >= blocks[q].end || blocks[q].begin >= blocks[p].end) continue;
      const size_t a = blocks[p].buffer, b = blocks[q].buffer;
      found.push_back(format("{} and {} share bytes at call {}", where(problem.buffers[a], plan.offsets[a]),
                             where(problem.buffers[b], plan.offsets[b]), blocks[q].first));
    }
  }
  return found;
}

}  // namespace millpond::plan
