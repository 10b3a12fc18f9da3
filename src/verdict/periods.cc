#include "verdict/periods.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>

#include "verdict/notes.h"

namespace millpond::verdict {
namespace {

/// What a name says besides a place: "epoch at train.py:31" says "epoch", "epoch.py:31" nothing. Names of run files
/// before version 2 are patterns of the printed line, and those have no digits.
std::string words_of(const std::string& name) {
  std::string_view place = name;
  if (place.ends_with(')')) place = place.substr(0, place.rfind(" ("));  // another pattern of that place
  const size_t number = place.find_last_not_of("0123456789");
  if (number == place.npos || number + 1 == place.size() || place[number] != ':') return name;
  const size_t at = name.find(" at ");
  return at == name.npos ? std::string() : name.substr(0, at);
}

/// A line that counts rounds by a word of its own.
bool is_round(const std::string& name) {
  constexpr std::array<std::string_view, 9> kWords = {"epoch", "episode", "fold",       "round", "iteration",
                                                      "iter",  "trial",   "generation", "ep"};
  std::string word;
  for (const char c : lower(words_of(name)) + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    for (std::string_view one : kWords)
      if (word == one || (word.size() == one.size() + 1 && one != "ep" && word.starts_with(one) && word.back() == 's'))
        return true;
    word.clear();
  }
  return false;
}

Unit unit_of(std::string_view kind, const std::string& name) {
  if (kind == "epoch") return Unit::kEpoch;
  if (kind == "fit") return Unit::kFit;
  if (kind == "model") return Unit::kModel;
  if (kind == "step") return Unit::kBatch;
  if (kind == "call") return Unit::kCall;
  if (kind == "timer") return Unit::kSecond;
  if (kind == "loader") return Unit::kEpoch;
  if (kind == "task") return Unit::kTask;
  if (kind == "request") return Unit::kRequest;
  if (kind == "round") return contains(lower(words_of(name)), "epoch") ? Unit::kEpoch : Unit::kRound;
  return contains(lower(words_of(name)), "epoch") ? Unit::kEpoch : Unit::kLine;
}

using Group = std::vector<const Mark*>;

/// As the agent ranks them: what a person would call a round first.
int rank(const std::string& kind, const std::string& name, size_t marks, size_t fits) {
  if (kind == "round") return -1;  // the program says so itself
  if (kind == "epoch")
    return name != "fit" ? 1 : marks > 3 * fits ? 0 : 4;  // epochs of many short fits are less than the fits
  if (kind == "line") return is_round(name) ? 1 : 3;
  if (kind == "fit") return 2;
  if (kind == "loader" || kind == "loop") return 5;
  if (kind == "model") return 6;
  if (kind == "step") return 7;
  if (kind == "call") return 8;
  return 9;
}

Group choose(const Evidence& evidence, const std::string& lead) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const Mark& m : evidence.marks)
    if (m.period) groups[{m.kind, m.name}].push_back(&m);
  const auto fit = groups.find({"fit", ""});
  const size_t fits = fit == groups.end() ? 0 : fit->second.size();
  const Group* best = nullptr;
  std::tuple<bool, bool, int, size_t> best_key;
  for (const auto& [key, marks] : groups) {
    // The clock is looked at until a program says something of itself: what lies before that is its start, whatever the
    // agent followed later.
    const bool over =
        key.first == "timer" &&
        std::ranges::any_of(evidence.marks, [last = marks.back()->t](const Mark& m) { return m.period && m.t > last; });
    const bool enough = marks.size() >= kTable.rounds && !over;
    // Enough of them, then what was followed, then rank, then number; the smallest key wins.
    const std::tuple<bool, bool, int, size_t> own{!enough, key.first != lead,
                                                  enough ? rank(key.first, key.second, marks.size(), fits) : 0,
                                                  SIZE_MAX - marks.size()};
    if (!best || own < best_key) best = &marks, best_key = own;
  }
  return best ? *best : Group{};
}

template <class Get>
Series series(const Periods& p, Get get) {
  Series s;
  for (size_t i = 0; i < p.marks.size(); ++i)
    if (const std::optional<Bytes> b = get(*p.marks[i])) {
      s.x.push_back(p.x[i]);
      s.y.push_back(double(b->value));
    }
  return s;
}

}  // namespace

std::optional<Bytes> live_of(const Mark& m) {
  if (!m.heap_in_use) return {};
  return *m.heap_in_use + m.heap_mapped.value_or(Bytes{}) + m.python_arenas.value_or(Bytes{});
}

Series Series::since(double from) const {
  Series s;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] >= from) {
      s.x.push_back(x[i]);
      s.y.push_back(y[i]);
    }
  return s;
}

Series Periods::counted(Unit counted_unit) const {
  Series s;
  for (size_t i = 0; i < marks.size() && int(counted_unit) < kCountedUnits; ++i) {
    s.x.push_back(x[i]);
    s.y.push_back(double(marks[i]->units[size_t(counted_unit)]));
  }
  return s;
}

double Periods::rate(Unit counted_unit) const {
  const Series s = counted(counted_unit).since(warm);
  if (s.size() < 2 || s.x.back() <= s.x.front()) return 0;
  return (s.y.back() - s.y.front()) / (s.x.back() - s.x.front());
}

double Periods::at(double t) const {
  if (x.empty()) return 0;
  const auto after = std::ranges::upper_bound(marks, t, {}, [](const Mark* m) { return m->t; });
  return after == marks.begin() ? x.front() : x[size_t(after - marks.begin()) - 1];
}

double Periods::between(double t) const {
  if (x.size() < 2) return 0;
  const auto after = std::ranges::upper_bound(marks, t, {}, [](const Mark* m) { return m->t; });
  const size_t i =
      std::clamp<size_t>(size_t(after - marks.begin()), 1, x.size() - 1);  // outside of them as the two nearest
  const double length = marks[i]->t - marks[i - 1]->t;
  return length > 0 ? x[i - 1] + (t - marks[i - 1]->t) / length * (x[i] - x[i - 1]) : x[i];
}

Periods find_periods(const Evidence& evidence, const std::string& lead) {
  Periods p;
  p.marks = choose(evidence, lead);
  if (p.marks.empty()) return p;
  // By the clock the last looks may fall into the end of the program, when it lets go of all it has.
  const auto falls = [&](size_t n) {
    return p.marks[n - 1]->rss && p.marks[n - 2]->rss &&
           double(p.marks[n - 1]->rss->value) < kTable.let_go * double(p.marks[n - 2]->rss->value);
  };
  for (size_t looks = 0;
       looks < 3 && p.marks.size() > kTable.rounds && p.marks.front()->kind == "timer" && falls(p.marks.size());
       ++looks)
    p.marks.pop_back();
  p.kind = p.marks.front()->kind;
  p.name = p.marks.front()->name;
  p.unit = unit_of(p.kind, p.name);
  // Not every round has a mark, but every mark knows how many rounds there were. Those of a timer count seconds.
  const bool timer = p.unit == Unit::kSecond;
  bool counted = true;
  for (size_t i = 1; i < p.marks.size(); ++i) counted &= p.marks[i]->index > p.marks[i - 1]->index;
  std::vector<double> gaps;
  for (size_t i = 0; i < p.marks.size(); ++i) {
    p.x.push_back(timer ? p.marks[i]->t : counted ? double(p.marks[i]->index - p.marks[0]->index) : double(i));
    if (i) gaps.push_back((p.marks[i]->t - p.marks[i - 1]->t) / (p.x[i] > p.x[i - 1] ? p.x[i] - p.x[i - 1] : 1));
  }
  p.seconds = timer ? 1 : median(gaps);
  const size_t n = p.marks.size();
  size_t skip = 0;
  while (skip + 1 < n && p.x[skip] - p.x[0] < kTable.warm_up * (p.x.back() - p.x[0])) ++skip;
  skip = std::min(std::max<size_t>(2, skip), n > 4 ? n - 4 : 0);  // four points are the least a slope is made of
  p.warm = p.x[skip];
  // A fit of one epoch, or a line after each: people would say epoch.
  if ((p.unit == Unit::kFit || p.unit == Unit::kLine) && std::abs(p.rate(Unit::kEpoch) - 1) < kTable.same_count)
    p.unit = Unit::kEpoch;
  p.rss = series(p, [](const Mark& m) { return m.rss; });
  p.live = series(p, live_of);
  p.heap_free = series(p, [](const Mark& m) { return m.heap_free; });
  p.arenas = series(p, [](const Mark& m) { return m.python_arenas; });
  p.tree = series(p, [](const Mark& m) { return m.processes > 1 ? m.tree_private_dirty : std::optional<Bytes>{}; });
  return p;
}

bool early(const Probe& probe, const Periods& periods) {
  return periods.marks.size() > 1 && probe.t < periods.marks[1]->t;
}

Series floors(const Evidence& evidence, const Periods& periods) {
  Series s;
  for (const Probe& probe : evidence.probes) {
    if (probe.after_trim.value <= 0 || early(probe, periods)) continue;
    s.x.push_back(periods.x.empty() ? double(probe.period) : periods.at(probe.t));
    s.y.push_back(double(probe.after_trim.value));
  }
  return s;
}

}  // namespace millpond::verdict
