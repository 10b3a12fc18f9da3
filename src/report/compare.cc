#include "report/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/format.h"
#include "report/moment.h"
#include "report/text.h"
#include "report/together.h"
#include "verdict/numbers.h"

namespace millpond::report {
namespace {

using verdict::Evidence;
using verdict::Finding;
using verdict::Kind;
using Json = nlohmann::ordered_json;

constexpr double kWorthNaming = 0.03;  // peaks of the same program differ by less

/// The finding that gives growth a number, or null.
const Finding* growth_of(const Run& r) {
  for (const Finding& f : r.verdict->findings)
    if (f.bytes_per_unit > 0 && (f.sets_verdict || f.kind == Kind::kLeak)) return &f;
  return nullptr;
}

std::string rate_text(const Finding* f) {
  return f ? f->each.empty() ? format("{} per {}", to_bytes(f->bytes_per_unit), verdict::noun_of(f->unit))
                             : format("{} {}", to_bytes(f->bytes_per_unit), f->each)
           : "none";
}

/// Of all processes together where one of the two runs has several, and then of both.
std::string peak_sentence(const Peak& before, const Peak& after) {
  if (before.bytes.value <= 0 || after.bytes.value <= 0) return "";
  const std::string what =
      before.processes > 1 || after.processes > 1 ? "the peak of all processes together" : "the peak";
  const double change = double(after.bytes.value) / double(before.bytes.value) - 1;
  if (std::fabs(change) < kWorthNaming) return format("{} stays at {}", what, after.bytes);
  return format("{} {} from {} to {} ({:+.0f} %)", what, change > 0 ? "rises" : "falls", before.bytes, after.bytes,
                100 * change);
}

/// Where a run ended: in its last round where both have rounds. After that it has been taken down, and says little of
/// either.
struct Ends {
  const char* name;
  Bytes before, after;
};
Bytes end_of(const Evidence& e) {
  for (auto p = e.os.rbegin(); p != e.os.rend(); ++p)
    if (p->rss && p->rss->value > 0) return *p->rss;  // a process that has just ended has none
  return {};
}

Ends ends_of(const Evidence& a, const Evidence& b) {
  const verdict::Mark *x = last_round(a), *y = last_round(b);
  return x && y ? Ends{"last round", *x->rss, *y->rss} : Ends{"at the end", end_of(a), end_of(b)};
}

std::string change(double before, double after) {
  if (before <= 0) return after > 0 ? "new" : "";
  return format("{:+.0f} %", 100 * (after / before - 1));
}

std::string lines_of(const PlaceDifference& d) {
  const std::string file = short_path(d.file, 40);
  if (d.before <= 0 && d.after <= 0) return file;
  if (d.before > 0 && d.after > 0 && d.before != d.after) return format("{}:{} -> {}", file, d.before, d.after);
  return format("{}:{}", file, std::max(d.before, d.after));
}

/// A place that holds memory at the peak of one run.
struct Held {
  std::string file, function, text;  // text of the line, where it is known
  int line = 0;                      // 0: not the user's; its lines say nothing to anybody
  double bytes = 0;
};
std::vector<Held> held_at_peak(const Evidence& e, const SourceLine& source) {
  const std::optional<Moment> peak = peak_moment(e);
  if (!peak) return {};
  std::map<std::tuple<std::string, std::string, int>, Held> held;
  for (const PlaceBytes& row : places_at(e, *peak->mark).rows) {
    if (row.bytes.value <= 0) continue;
    const int line = row.user ? row.place.line : 0;
    Held& h = held[{row.place.file, row.user ? "" : row.place.function, line}];
    h.file = row.place.file, h.function = row.place.function, h.line = line;
    h.bytes += double(row.bytes.value);
    if (row.user && source && h.text.empty()) h.text = source(row.place.file, line);
  }
  std::vector<Held> list;
  for (auto& [key, h] : held) {
    const size_t from = std::min(h.text.find_first_not_of(" \t"), h.text.size());
    h.text.erase(0, from);
    list.push_back(std::move(h));
  }
  return list;
}

/// A file as it is called wherever it lies: installed packages by their own folders, all others by their name.
std::string name_of_file(const std::string& file) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = file.rfind(folder); at != file.npos) return file.substr(at + folder.size());
  return file.substr(file.rfind('/') + 1);
}

/// Takes pairs with the same key out of both lists, in the order that `before` gives to those of one key.
template <class Key, class Before>
void pair_by(std::vector<Held>& a, std::vector<Held>& b, Key key, Before before, std::vector<PlaceDifference>& list) {
  using Group = std::pair<std::vector<const Held*>, std::vector<const Held*>>;
  std::map<std::remove_cvref_t<decltype(*key(Held{}))>, Group> groups;
  for (const Held& h : a)
    if (const auto k = key(h)) groups[*k].first.push_back(&h);
  for (const Held& h : b)
    if (const auto k = key(h)) groups[*k].second.push_back(&h);
  std::vector<const Held*> paired;
  for (auto& [k, group] : groups) {
    for (std::vector<const Held*>* side : {&group.first, &group.second})
      std::ranges::stable_sort(*side, [&](const Held* x, const Held* y) { return before(*x, *y); });
    for (size_t i = 0; i < std::min(group.first.size(), group.second.size()); ++i) {
      const Held &x = *group.first[i], &y = *group.second[i];
      list.push_back({y.file, y.function, x.line, y.line, x.bytes, y.bytes});
      paired.push_back(&x), paired.push_back(&y);
    }
  }
  std::ranges::sort(paired);
  for (std::vector<Held>* side : {&a, &b}) {
    std::vector<Held> rest;
    for (Held& h : *side)
      if (!std::ranges::binary_search(paired, &h)) rest.push_back(std::move(h));
    *side = std::move(rest);
  }
}

}  // namespace

std::vector<PlaceDifference> differences(const Evidence& before, const Evidence& after, const SourceLine& source_before,
                                         const SourceLine& source_after) {
  std::vector<Held> a = held_at_peak(before, source_before), b = held_at_peak(after, source_after);
  std::vector<PlaceDifference> list;
  using Words = std::tuple<std::string, std::string, std::string>;
  using Found = std::optional<Words>;
  const auto by_line = [](const Held& x, const Held& y) { return x.line < y.line; };
  const auto by_size = [](const Held& x, const Held& y) { return x.bytes > y.bytes; };
  // The text of a line is the line, wherever its file lies now and whatever its number has become. Where the text is
  // not known, the number stands for it.
  pair_by(
      a, b, [](const Held& h) { return h.text.empty() ? Found() : Found({h.file, h.function, h.text}); }, by_line,
      list);
  pair_by(
      a, b, [](const Held& h) { return h.text.empty() ? Found() : Found({name_of_file(h.file), h.function, h.text}); },
      by_line, list);
  pair_by(
      a, b,
      [](const Held& h) { return h.text.empty() ? Found({h.file, h.function, std::to_string(h.line)}) : Found(); },
      by_line, list);
  // What is left of a function on both sides, largest with largest.
  pair_by(a, b, [](const Held& h) { return Found({name_of_file(h.file), h.function, ""}); }, by_size, list);
  for (const Held& h : a) list.push_back({h.file, h.function, h.line, 0, h.bytes, 0});
  for (const Held& h : b) list.push_back({h.file, h.function, 0, h.line, 0, h.bytes});
  std::ranges::stable_sort(list, std::ranges::greater{},
                           [](const PlaceDifference& d) { return std::fabs(d.difference()); });
  return list;
}

std::string compare_sentence(const Run& a, const Run& b) {
  const Finding *was = growth_of(a), *is = growth_of(b);
  const Kind before = a.verdict->kind, after = b.verdict->kind;
  std::string text;
  if (before == Kind::kLeak && after != Kind::kLeak)
    text = format("The leak is gone: memory grew by {}, now the verdict is {}", rate_text(was), to_string(after));
  else if (before != Kind::kLeak && after == Kind::kLeak)
    text = format("A leak is new: the verdict was {}, now memory grows by {}", to_string(before), rate_text(is));
  else if (before == Kind::kLeak && was && is && was->unit == is->unit)
    text = std::fabs(is->bytes_per_unit / was->bytes_per_unit - 1) < 0.1
               ? format("Both runs leak, {}", rate_text(is))
               : format("Both runs leak: {} before, {} now ({:+.0f} %)", rate_text(was), rate_text(is),
                        100 * (is->bytes_per_unit / was->bytes_per_unit - 1));
  else if (before == Kind::kLeak)
    text = format("Both runs leak: {} before, {} now", rate_text(was), rate_text(is));
  else if (before == after)
    text = format("Neither run leaks: both are {}", to_string(after));
  else
    text = format("Neither run leaks: {} before, {} now", to_string(before), to_string(after));
  if (after == Kind::kLeak && is && is->blame) text += format(" at {}:{}", shown(is->blame->file, 80), is->blame->line);
  const std::string peak = peak_sentence(whole_peak(*a.evidence), whole_peak(*b.evidence));
  return text + (peak.empty() ? "" : "; " + peak) + ".";
}

std::string compare_text(const Run& a, const Run& b, const TextStyle& style, int limit) {
  std::string out = wrapped(compare_sentence(a, b), style.width, 0, 0) + "\n";
  Table table({"<", "<" + shown(a.name, 28), "<" + shown(b.name, 28), "<change"});
  const auto bytes = [&](const char* name, Bytes x, Bytes y) {
    table.add({name, to_string(x), to_string(y), change(double(x.value), double(y.value))});
  };
  const Finding *was = growth_of(a), *is = growth_of(b);
  table.add({"verdict", std::string(to_string(a.verdict->kind)), std::string(to_string(b.verdict->kind)), ""});
  table.add({"growth", rate_text(was), rate_text(is),
             was && is && was->unit == is->unit ? change(was->bytes_per_unit, is->bytes_per_unit) : ""});
  const Peak x = whole_peak(*a.evidence), y = whole_peak(*b.evidence);
  const bool several = x.processes > 1 || y.processes > 1;
  bytes("peak", x.bytes, y.bytes);
  if (several) bytes("of it main process", a.evidence->peak_rss, b.evidence->peak_rss);
  if (several) table.add({"processes", std::to_string(x.processes), std::to_string(y.processes), ""});
  const Ends ends = ends_of(*a.evidence, *b.evidence);
  bytes(ends.name, ends.before, ends.after);
  table.add({"seconds", format("{:.1f}", a.evidence->seconds), format("{:.1f}", b.evidence->seconds),
             change(a.evidence->seconds, b.evidence->seconds)});
  out += table.text(style.width);

  const std::vector<PlaceDifference> list = differences(*a.evidence, *b.evidence, a.source, b.source);
  Table places({"before", "now", "difference", "<line", "<function"});
  const double least = 0.002 * double(std::max(a.evidence->peak_rss, b.evidence->peak_rss).value);
  for (const PlaceDifference& d : list) {
    if (std::fabs(d.difference()) < std::max(1.0, least) || limit-- <= 0) break;
    places.add({to_string(to_bytes(d.bytes_before)), to_string(to_bytes(d.bytes_after)), signed_bytes(d.difference()),
                lines_of(d), shown(d.function, 60)});
  }
  out += places.empty() ? "\nNo place holds noticeably more or less at the peak.\n"
                        : "\nAlive at the peak, where it differs most:\n" + places.text(style.width);
  return out;
}

Json compare_json(const Run& a, const Run& b, int limit) {
  const bool several = processes_seen(*a.evidence) > 1 || processes_seen(*b.evidence) > 1;
  const auto one = [&](const Run& r) {
    const Finding* f = growth_of(r);
    const verdict::Mark* round = last_round(*r.evidence);
    Json j = {{"file", r.name},
              {"verdict", to_string(r.verdict->kind)},
              {"peak_rss", r.evidence->peak_rss.value},
              {"tree_peak", several ? Json(whole_peak(*r.evidence).bytes.value) : Json()},
              {"end_rss", end_of(*r.evidence).value},
              {"last_round_rss", round ? Json(round->rss->value) : Json()},
              {"seconds", r.evidence->seconds},
              {"bytes_per_unit", f ? Json(f->bytes_per_unit) : Json()},
              {"unit", f ? Json(to_string(f->unit)) : Json()},
              {"rate", rate_text(f)}};
    return j;
  };
  Json places = Json::array();
  for (const PlaceDifference& d : differences(*a.evidence, *b.evidence, a.source, b.source)) {
    if (limit-- <= 0) break;
    places.push_back({{"file", d.file},
                      {"function", d.function},
                      {"line_before", d.before > 0 ? Json(d.before) : Json()},
                      {"line_after", d.after > 0 ? Json(d.after) : Json()},
                      {"bytes_before", d.bytes_before},
                      {"bytes_after", d.bytes_after}});
  }
  return {{"sentence", compare_sentence(a, b)}, {"before", one(a)}, {"after", one(b)}, {"places", places}};
}

}  // namespace millpond::report
