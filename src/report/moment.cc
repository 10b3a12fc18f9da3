#include "report/moment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/format.h"
#include "millpond/error.h"
#include "report/text.h"
#include "runfile/rows.h"
#include "verdict/case.h"
#include "verdict/statistics.h"

namespace millpond::report {
namespace {

using verdict::Evidence;
using verdict::Frame;
using verdict::Mark;
using verdict::Site;

std::string name_of(const Mark& m) {
  if (m.kind == "line" || m.kind == "end" || m.kind == "peak") return format("after {:.1f} s", m.t);
  return format("{} {}", shown(m.kind, 20), m.index);
}

Moment told(const char* what, const Mark& m) {
  std::string text = format("{}, {}", what, name_of(m));
  if (m.rss) text += format(" ({} resident)", *m.rss);
  return {&m, text};
}

/// What --at may say for this run: "epoch:1 to epoch:20, step:64 to step:640".
std::string choices(const Evidence& e) {
  std::map<std::string, std::pair<int64_t, int64_t>> seen;
  for (const Mark& m : e.marks) {
    if (m.sites.empty() || m.kind == "end" || m.kind == "peak") continue;
    const auto [at, fresh] = seen.try_emplace(shown(m.kind, 20), m.index, m.index);
    if (!fresh) at->second = {std::min(at->second.first, m.index), std::max(at->second.second, m.index)};
  }
  std::string text = "peak, end";
  for (const auto& [kind, range] : seen) text += format(", {}:{} to {}:{}", kind, range.first, kind, range.second);
  return text;
}

/// Before the first or after the last that the program reached. Of those between not all are kept.
bool beyond(const Evidence& e, const std::string& kind, int64_t index) {
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (const Mark& m : e.marks)
    if (m.kind == kind) least = std::min(least, m.index), most = std::max(most, m.index);
  return index < least || index > most;
}

template <class Distance>
const Mark* nearest(const Evidence& e, Distance distance) {
  const Mark* best = nullptr;
  double least = 0;
  for (const Mark& m : e.marks) {
    if (m.sites.empty()) continue;
    const std::optional<double> d = distance(m);
    if (d && (!best || *d < least)) best = &m, least = *d;
  }
  return best;
}

struct Key {
  std::string file, function;
  int line = 0;
  bool user = false;
  auto operator<=>(const Key&) const = default;
};

Key key_of(const Site& site) {
  // Functions of the same file and line are one place of the user's: comprehensions have names of their own.
  if (const Frame* f = own_frame(site)) return {f->file, "", f->line, true};
  for (const Frame& f : site.frames)
    if (has_name(f)) return {f.file, f.function, f.line, false};
  return site.frames.empty() ? Key{"", "unknown", 0, false}
                             : Key{site.frames[0].file, site.frames[0].function, site.frames[0].line, false};
}

}  // namespace

bool has_name(const Frame& f) {
  return !f.function.empty() && !(f.native && f.function.starts_with(runfile::kOffset)) &&
         !f.file.starts_with("<millpond_agent");
}

std::optional<Moment> peak_moment(const Evidence& e) {
  const Mark* m = nearest(e, [](const Mark& k) { return std::optional(-double(k.rss.value_or(Bytes{}).value)); });
  return m ? std::optional(told("at the peak", *m)) : std::nullopt;
}

std::optional<Moment> end_moment(const Evidence& e) {
  // The last round where there is one: after it the program is taken down.
  const Mark* m =
      nearest(e, [](const Mark& k) { return k.period && k.kind != "timer" ? std::optional(-k.t) : std::nullopt; });
  if (!m) m = nearest(e, [](const Mark& k) { return std::optional(-k.t); });
  return m ? std::optional(told("at the end", *m)) : std::nullopt;
}

const Mark* last_round(const Evidence& e) {
  const auto round = std::find_if(e.marks.rbegin(), e.marks.rend(),
                                  [](const Mark& m) { return m.period && m.rss && m.kind != "timer"; });
  return round == e.marks.rend() ? nullptr : &*round;
}

Moment find_moment(const Evidence& e, const std::string& at) {
  const std::optional<Moment> peak = peak_moment(e);
  if (!peak)
    throw Error(Code::kUsage, "report: this run has no snapshot of what was alive, so nothing is known of places")
        .hint("only a program that `millpond watch` started, and that is not linked statically, has them");
  if (at.empty() || at == "peak") return *peak;
  if (at == "end") return *end_moment(e);
  const auto refused = [&] {
    return Error(Code::kUsage, format("--at: there is no {} in this run", shown(at, 60)))
        .hint("there are: " + choices(e));
  };
  char* rest = nullptr;
  if (const size_t colon = at.rfind(':'); colon != at.npos) {
    const std::string kind = at.substr(0, colon);
    const int64_t index = std::strtoll(at.c_str() + colon + 1, &rest, 10);
    if (*rest || rest == at.c_str() + colon + 1) throw refused();
    const Mark* m = nearest(e, [&](const Mark& k) {
      return k.kind == kind ? std::optional(std::fabs(double(k.index) - double(index))) : std::nullopt;
    });
    if (!m || beyond(e, kind, index)) throw refused();
    return told(m->index == index ? "then" : "nearest that was kept", *m);
  }
  const double seconds = std::strtod(at.c_str(), &rest);
  if (rest == at.c_str() || (*rest && std::string(rest) != "s")) throw refused();
  return told("nearest that was kept",
              *nearest(e, [&](const Mark& k) { return std::optional(std::fabs(k.t - seconds)); }));
}

Places places_at(const Evidence& e, const Mark& mark) {
  Places all;
  std::map<Key, size_t> seen;
  std::vector<size_t> place_of;  // by site
  for (const Site& site : e.sites) {
    const auto [at, fresh] = seen.try_emplace(key_of(site), all.rows.size());
    if (fresh) {
      PlaceBytes row;
      row.user = at->first.user;
      row.place = {at->first.file, at->first.function, "", at->first.line};
      if (const Frame* f = own_frame(site)) row.place.function = f->function;
      all.rows.push_back(row);
    }
    all.rows[at->second].allocated += site.total;
    all.rows[at->second].freed += site.freed;
    place_of.push_back(at->second);
  }
  const auto known = [&](const verdict::SiteState& s) { return s.site >= 0 && size_t(s.site) < place_of.size(); };
  std::vector<Bytes> largest(all.rows.size());
  for (const verdict::SiteState& s : mark.sites) {
    if (!known(s)) continue;
    PlaceBytes& row = all.rows[place_of[size_t(s.site)]];
    row.bytes += s.bytes;
    row.blocks += s.blocks;
    const double error = sampling_error(s.bytes, s.blocks, e.sampling_interval);
    row.error = verdict::off_together(row.error, error);
    all.sum += s.bytes;
    if (Bytes& most = largest[place_of[size_t(s.site)]]; s.bytes > most) {
      most = s.bytes;
      const std::vector<Frame>& frames = e.sites[size_t(s.site)].frames;
      const auto named = std::ranges::find_if(frames, has_name);
      row.through = named != frames.end() && named->function != row.place.function ? named->function : "";
    }
  }
  for (PlaceBytes& row : all.rows) row.share = all.sum.value > 0 ? double(row.bytes.value) / double(all.sum.value) : 0;

  const verdict::Periods periods = verdict::Case(e).periods;  // those the verdict was made by
  std::vector<verdict::Series> live(all.rows.size());
  constexpr size_t kMostMarks = 1024;  // a watched run has no more of a kind
  size_t left = periods.size();
  const size_t stride = 1 + left / kMostMarks;
  for (size_t p = 0; p < periods.size(); ++p) {
    if (--left % stride != 0 || periods.marks[p]->sites.empty() || periods.x[p] < periods.warm) continue;
    std::vector<double> now(all.rows.size(), 0);
    for (const verdict::SiteState& s : periods.marks[p]->sites)
      if (known(s)) now[place_of[size_t(s.site)]] += double(s.bytes.value);
    for (size_t i = 0; i < now.size(); ++i) live[i].x.push_back(periods.x[p]), live[i].y.push_back(now[i]);
  }
  if (!live.empty() && live[0].size() >= 3) {
    all.unit = to_string(periods.unit);
    for (size_t i = 0; i < live.size(); ++i) all.rows[i].per_period = verdict::theil_sen(live[i].x, live[i].y).value;
  }
  std::ranges::stable_sort(all.rows, std::ranges::greater{}, &PlaceBytes::bytes);
  return all;
}

}  // namespace millpond::report
