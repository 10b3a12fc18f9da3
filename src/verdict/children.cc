#include "verdict/children.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "verdict/causes/words.h"
#include "verdict/growth.h"
#include "verdict/sentence.h"

namespace millpond::verdict {
namespace {

/// What processes that run the same code have in common when they leak.
using Alike = std::tuple<std::string, std::string, int, std::string, std::string>;  // cause, file, line, holder, space

Alike key_of(const Finding& f) {
  return {f.cause, f.blame ? f.blame->file : "", f.blame ? f.blame->line : 0, f.holder, f.space};
}

struct Group {
  Finding finding;  // of the one that grows most
  const Evidence* of = nullptr;
  int processes = 0;
  double bytes_per_unit = 0;  // sum
  Bytes total;
  void add(const Finding& f) { ++processes, bytes_per_unit += f.bytes_per_unit, total += f.total; }
};

std::string who(const Evidence& main, const Evidence& child, int processes) {
  if (processes > 1) return format("{} processes that it started", processes);
  const auto seen = std::ranges::find(main.processes, child.process, &SeenProcess::row);
  return seen == main.processes.end() ? "a process that it started"
                                      : format("a process that it started ({} {})", seen->name, seen->pid);
}

/// Pages of inherited memory become a worker's own when it writes to them: no more than one copy for each, and its own
/// allocators hold no more than before.
void bound_copies(Verdict& v) {
  if (v.kind != Kind::kLeak || v.findings.empty() || v.findings.front().cause != "C24") return;
  Finding& f = v.findings.front();
  f.kind = v.kind = Kind::kCache;
  f.forecast.reset();
  f.bytes_per_unit = 0, f.bytes_per_unit_range = {};
  f.evidence.push_back(
      "what the worker processes took themselves does not grow: it ends when each has its copy of what was there when "
      "it began");
  v.sentence =
      format("Not a leak: {} of private pages, and no more than one copy for each worker. {}.", f.total, f.title);
}

}  // namespace

void add_children(const Evidence& main, std::span<const Evidence> children, Verdict& v) {
  std::map<Alike, Group> groups;
  const Evidence* unsure = nullptr;
  std::string why;
  std::optional<Finding> kept;  // the worst of what other processes hold and is no leak
  for (const Evidence& child : children) {
    const Verdict own = judge(child);
    if (own.kind != Kind::kLeak && !own.findings.empty() && own.findings.front().sets_verdict &&
        own.findings.front().cause != "C24" && (!kept || own.kind < kept->kind)) {
      kept = own.findings.front();
      kept->title = format("In {}: {}", who(main, child, 1), kept->title);
    }
    if (own.kind == Kind::kUnsure && !own.too_short && own.account && !unsure) unsure = &child, why = own.would_settle;
    for (const Finding& f : own.findings) {
      if (f.kind != Kind::kLeak || f.cause == "C24") continue;
      Group& g = groups[key_of(f)];
      if (g.processes == 0 || f.bytes_per_unit > g.finding.bytes_per_unit) g.finding = f, g.of = &child;
      g.add(f);
    }
  }
  // What the main process does too, at the same line, is one story.
  for (Finding& f : v.findings) {
    const auto same = groups.find(key_of(f));
    if (same == groups.end() || !f.sets_verdict || f.kind != Kind::kLeak) continue;
    const Group& g = same->second;
    f.processes += g.processes;
    f.bytes_per_unit = (f.bytes_per_unit + g.bytes_per_unit) / f.processes;
    f.total += g.total;
    f.evidence.push_back(format("{} processes do the same", f.processes));
    groups.erase(same);
  }
  // Growth that is small in each of them may matter in all.
  for (const Finding& f : v.findings)
    if (const auto same = groups.find(key_of(f)); same != groups.end() && !f.sets_verdict) same->second.add(f);
  std::erase_if(groups, [](const auto& g) {
    return !g.second.finding.sets_verdict && double(g.second.total.value) < kTable.small;
  });
  if (groups.empty()) {
    if (!unsure && !children.empty()) bound_copies(v);
    if (kept && v.kind == Kind::kFlat && !unsure) {
      v.kind = kept->kind;
      v.sentence = format("Not a leak: {}, {}.", kept->title, kept->total);
      v.findings.insert(v.findings.begin(), std::move(*kept));
    }
    if (unsure && (v.kind == Kind::kFlat || v.kind == Kind::kReserve)) {
      v.kind = Kind::kUnsure;
      v.would_settle = why;
      v.sentence =
          format("Memory rises in {}, and nothing shows yet whether that is a leak: {}.", who(main, *unsure, 1), why);
    }
    return;
  }
  std::erase_if(v.findings,
                [&](const Finding& f) { return f.cause == "C24" || (!f.sets_verdict && groups.contains(key_of(f))); });
  std::vector<Finding> told;
  for (auto& [key, g] : groups) {
    Finding f = std::move(g.finding);
    f.title = format("In {}: {}", who(main, *g.of, g.processes), f.title);
    f.processes = g.processes;
    f.bytes_per_unit = g.bytes_per_unit / g.processes;
    f.total = g.total;
    f.sets_verdict = true;
    told.push_back(std::move(f));
  }
  std::ranges::stable_sort(told, std::ranges::greater{}, [](const Finding& f) { return f.total; });
  const Finding& worst = told.front();
  const std::string where = worst.blame ? format("at `{}`, ", at(*worst.blame)) : "";
  const std::string sentence =
      format("Memory{} grows in {}, by {} {}{}: {}{}.", worst.space == "host" ? "" : " of " + worst.space,
             worst.processes > 1 ? format("{} processes", worst.processes) : "a process that the program started",
             amount(worst.bytes_per_unit), each(worst), worst.processes > 1 ? " each" : "", where,
             worst.holder.empty() ? "what holds it was not found" : worst.holder);
  add_leaks(std::move(told), sentence, v);
}

}  // namespace millpond::verdict
