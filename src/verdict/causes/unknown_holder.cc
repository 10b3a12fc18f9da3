#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

/// Something keeps growing and no other cause explains it: by the leak that has most of it, which is then told by what
/// holds it, otherwise by the line that grows most.
std::optional<Match> unknown_holder(const Case& c) {
  std::optional<Place> grows = c.growing_place();
  if (!grows && c.notes.walk && !c.notes.walk->lines.empty()) grows = c.notes.walk->lines.front().place;
  if (!c.growing()) return {};
  Match m{.share = kTable.most, .weight = kTable.no_holder};
  m.blame = grows;
  if (!c.leaks.empty()) {
    const Leak& most = c.leaks.front();
    m.share = std::clamp(most.rate / std::max(1.0, c.growth.slope.value), kTable.some, 1.0);
    m.blame = most.blame;
    if (most.holder) m.weight = kTable.no_cause;
  } else if (grows) {
    const double under = c.growth_share(*grows).value_or(0);
    m.share = std::max(kTable.some, under);
    if (c.evidence.space == "host")
      m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated under {}", 100 * under, at(*grows)));
    else
      m.evidence.push_back(format("most of what stays on the device was allocated under {}", at(*grows)));
  } else if (!c.notes.agent) {  // whatever else is known says more
    m.share = kTable.rest;
    m.title = "Memory that is in use grows steadily; what holds it was not seen";
    m.fix =
        "Run it again under the agent (without python -I, -S or -E), so that the lines and what holds them can be "
        "named.";
  }
  return m;
}

}  // namespace

Match holder_match(const HeapWalk& walk, const Holder& h) {
  Match m;
  const std::string name = h.name();
  m.holder = name;
  m.chain = h.chain;
  m.weight = kTable.no_cause;
  if (!h.born.empty()) m.blame = m.born = h.born.front().place;
  if (!h.puts.empty()) {
    m.blame = h.puts.front().place;
    m.evidence.push_back(
        format("{} puts it there{}", at(*m.blame),
               h.puts.front().by == "only" ? ": no other line could" : ", and was seen to while it gained"));
    if (h.puts.front().hook)
      m.cause = "C38";
    else if (h.repeats == 0 && is_container(h.type))
      m.cause = "C14";
  }
  if (h.graph >= kTable.most * h.bytes && h.graph > 0) {
    m.cause = "C36";
    m.evidence.push_back(
        format("{} of it are reached only through the graph of gradients behind what is kept", amount(h.graph)));
  } else {
    m.title = h.repeats > 0
                  ? format("A chain of objects of type {} grows and keeps what is allocated here: {}", h.type, name)
                  : format("What is allocated here is kept: {} ({}) holds it, and nothing is taken out", name, h.type);
    m.fix = format(
        "Take out what is no longer needed, where a round ends: {}. Or bound it, or keep a number of each thing "
        "instead of the thing.",
        name);
  }
  m.evidence.push_back(
      format("of {} that were allocated since the rounds began and are alive, {} are reached through {}; they were "
             "allocated at all times since then",
             amount(walk.alive), amount(h.bytes), name));
  if (h.chain.size() > 1) m.evidence.push_back(format("held by: {}", fmt::join(h.chain, ", ")));
  return m;
}

const std::vector<Cause> kUnknownHolder = {
    {.id = "P1",
     .title = "Memory allocated here is still in use and there is more of it every time; what holds it was not found",
     .fix = "Look for what this line's results are stored in: an attribute, a global, a closure, a cache of a library.",
     .threads = {},
     .detect = unknown_holder,
     .in = Cause::In::kBoth}};

}  // namespace millpond::verdict
