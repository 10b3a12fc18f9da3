#include "verdict/sites.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "runfile/rows.h"
#include "verdict/notes.h"

namespace millpond::verdict {
namespace {

/// Of a stack without Python: the first function that is the program's own (the collector knows: neither a library's
/// nor an allocator's), or else that has a name.
Place native_place(const Site& site) {
  if (const Frame* f = own_frame(site)) return place_of(*f);
  for (const Frame& f : site.frames)
    if (!f.function.empty() && !f.function.starts_with(runfile::kOffset)) return place_of(f);
  return site.frames.empty() ? Place{"", "unknown", "", 0} : place_of(site.frames.front());
}

std::pair<std::string, bool> key_of(const Site& site) {
  if (const Frame* f = user_frame(site)) return {f->file + ":" + std::to_string(f->line), true};
  const Place p = native_place(site);
  return {p.file + "|" + p.function + ":" + std::to_string(p.line), false};
}

struct Grouping {
  std::vector<int> group_of;  // by site
  std::vector<SiteGroup> groups;
};

Grouping group(const Evidence& evidence) {
  Grouping g;
  std::map<std::pair<std::string, bool>, int> seen;
  for (size_t i = 0; i < evidence.sites.size(); ++i) {
    const Site& site = evidence.sites[i];
    const auto [it, fresh] = seen.try_emplace(key_of(site), int(g.groups.size()));
    if (fresh) {
      const Frame* f = user_frame(site);
      g.groups.push_back({.place = f ? place_of(*f) : native_place(site), .user = f != nullptr});
    }
    SiteGroup& own = g.groups[size_t(it->second)];
    own.sites.push_back(int(i));
    own.total += double(site.total.value);
    g.group_of.push_back(it->second);
  }
  return g;
}

/// The first snapshot before the first period, of steps (training has begun then) or of anything else (it has not).
const Mark* earliest(const Evidence& evidence, const Periods& periods, bool steps) {
  for (const Mark& m : evidence.marks) {
    if (periods.marks.empty() || &m == periods.marks.front() || m.t >= periods.marks.front()->t) break;
    const bool step = m.kind == "step" || m.kind == "epoch" || m.kind == "loop";
    if (step && !steps) break;  // whatever follows is not from before
    if (!m.sites.empty() && step == steps) return &m;
  }
  return nullptr;
}

}  // namespace

bool is_own(const Frame& frame) { return frame.user && !contains(frame.file, "__autograph_generated_file"); }
bool is_user(const Frame& frame) { return is_own(frame) && !frame.native; }

const Frame* own_frame(const Site& site) {
  const auto found = std::ranges::find_if(site.frames, is_own);
  return found == site.frames.end() ? nullptr : &*found;
}

const Frame* user_frame(const Site& site) {
  const auto found = std::ranges::find_if(site.frames, is_user);
  return found == site.frames.end() ? nullptr : &*found;
}

Place place_of(const Frame& frame) { return {frame.file, frame.function, "", frame.line}; }

namespace {

/// Of the parts between the oldest and the newest: how many are filled, and how many of the later half.
struct Filled {
  double sum = 0, middle = 0;
  int all = 0, late = 0;
};
Filled filled(const Ages& age) {
  Filled f;
  for (size_t i = 0; i < kAgeParts; ++i) f.sum += double(age[i].value);
  f.middle = f.sum - double((age.front() + age.back()).value);
  for (size_t i = 1; i + 1 < kAgeParts; ++i) {
    const bool has = f.middle > 0 && double(age[i].value) >= kTable.thin * f.middle / (kAgeParts - 2);
    f.all += has, f.late += has && i >= kAgeParts / 2;
  }
  return f;
}

}  // namespace

bool is_old(const Ages& age) {
  const Filled f = filled(age);
  const double fresh = double(age.back().value);
  return f.sum > 0 &&
         (f.middle + fresh < kTable.rest * f.sum || (f.late == 0 && fresh <= kTable.fresh * (f.middle + fresh)));
}

bool of_every_age(const Ages& age) {
  const Filled f = filled(age);
  // Sampling leaves holes, and periods do not fall evenly into the parts: one may be missing.
  return f.all >= kAgeParts - 3 && f.late >= 2 && !is_old(age);
}

LiveSites live_sites(const Evidence& evidence, const Periods& periods) {
  LiveSites live;
  Grouping g = group(evidence);
  std::vector<double> first(evidence.sites.size(), 0), last(evidence.sites.size(), 0);
  bool warm = false;
  // Every group gets a point for each: more marks of a kind than a watched run keeps are thinned, the last one stays.
  constexpr size_t kMostMarks = 1024;
  size_t left = size_t(std::ranges::count_if(periods.marks, [](const Mark* m) { return !m->sites.empty(); }));
  const size_t stride = 1 + left / kMostMarks;
  for (size_t p = 0; p < periods.marks.size(); ++p) {
    const Mark& mark = *periods.marks[p];
    if (mark.sites.empty() || --left % stride != 0) continue;
    std::vector<double> sums(g.groups.size(), 0);
    double all = 0;
    for (SiteGroup& own : g.groups) own.age = {}, own.bytes = own.blocks = 0;
    std::ranges::fill(last, 0.0);
    for (const SiteState& s : mark.sites) {
      if (s.site < 0 || size_t(s.site) >= g.group_of.size()) continue;
      const size_t id = size_t(g.group_of[size_t(s.site)]);
      const double bytes = double(s.bytes.value);
      sums[id] += bytes;
      all += bytes;
      last[size_t(s.site)] = bytes;
      SiteGroup& own = g.groups[id];
      own.bytes += bytes;
      own.blocks += s.blocks;
      for (size_t i = 0; i < kAgeParts; ++i) own.age[i] += s.age[i];
    }
    if (!warm && periods.x[p] >= periods.warm) first = last, warm = true;
    for (size_t i = 0; i < sums.size(); ++i) {
      g.groups[i].live.x.push_back(periods.x[p]);
      g.groups[i].live.y.push_back(sums[i]);
    }
    live.total.x.push_back(periods.x[p]);
    live.total.y.push_back(all);
  }
  if (live.total.empty()) return live;
  for (SiteGroup& own : g.groups) {
    const Series s = own.live.since(periods.warm);
    if (s.size() < 2) continue;
    own.slope = theil_sen(s.x, s.y);
    own.grown = std::max(0.0, own.slope.value * (s.x.back() - s.x.front()));
  }
  for (size_t i = 0; i < last.size(); ++i)
    if (last[i] > first[i]) {
      live.gains.push_back({int(i), last[i] - first[i]});
      live.gained += last[i] - first[i];
    }
  const auto add = [&](const Mark* mark, double SiteGroup::* to) {
    for (size_t i = 0; mark && i < mark->sites.size(); ++i) {
      const SiteState& s = mark->sites[i];
      if (s.site >= 0 && size_t(s.site) < g.group_of.size())
        g.groups[size_t(g.group_of[size_t(s.site)])].*to += double(s.bytes.value);
    }
  };
  add(earliest(evidence, periods, false), &SiteGroup::before);
  const Mark* begun = earliest(evidence, periods, true);
  add(begun, &SiteGroup::begun);
  live.has_begun = begun != nullptr;
  live.groups = std::move(g.groups);
  std::ranges::stable_sort(live.groups, std::ranges::greater{}, &SiteGroup::grown);
  std::ranges::stable_sort(live.gains, std::ranges::greater{}, &SiteGain::bytes);
  return live;
}

std::vector<SiteShare> temporaries(const Evidence& evidence) {
  const Grouping g = group(evidence);
  std::vector<SiteShare> all;
  for (const SiteGroup& own : g.groups) {
    Bytes total, kept;
    for (int i : own.sites) {
      total += evidence.sites[size_t(i)].total;
      kept += evidence.sites[size_t(i)].total - evidence.sites[size_t(i)].freed;
    }
    if (double(kept.value) < kTable.rest * double(total.value)) all.push_back({own.place, own.user, total});
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &SiteShare::bytes);
  return all;
}

}  // namespace millpond::verdict
