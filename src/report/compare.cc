#include "report/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "report/moment.h"
#include "report/text.h"

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
  return f ? format("{} per {}", to_bytes(f->bytes_per_unit), to_string(f->unit)) : "none";
}

std::string peak_sentence(Bytes before, Bytes after) {
  if (before.value <= 0 || after.value <= 0) return "";
  const double change = double(after.value) / double(before.value) - 1;
  if (std::fabs(change) < kWorthNaming) return format("the peak stays at {}", after);
  return format("the peak {} from {} to {} ({:+.0f} %)", change > 0 ? "rises" : "falls", before, after, 100 * change);
}

Bytes end_of(const Evidence& e) {
  for (auto p = e.os.rbegin(); p != e.os.rend(); ++p)
    if (p->rss && p->rss->value > 0) return *p->rss;  // a process that has just ended has none
  return {};
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

using Key = std::pair<std::string, int>;
struct Held {
  std::string function;
  double bytes = 0;
};
std::map<Key, Held> held_at_peak(const Evidence& e) {
  std::map<Key, Held> held;
  const std::optional<Moment> peak = peak_moment(e);
  if (!peak) return held;
  for (const PlaceBytes& row : places_at(e, *peak->mark).rows) {
    if (row.bytes.value <= 0) continue;
    // Places that are not the user's go by function: their lines say nothing to anybody.
    Held& h = held[{row.user ? row.place.file : row.place.file + "|" + row.place.function, row.user ? row.place.line : 0}];
    h.function = row.place.function;
    h.bytes += double(row.bytes.value);
  }
  return held;
}

}  // namespace

std::vector<PlaceDifference> differences(const Evidence& before, const Evidence& after) {
  std::map<Key, Held> a = held_at_peak(before), b = held_at_peak(after);
  std::vector<PlaceDifference> list;
  const auto file_of = [](const Key& k) { return k.first.substr(0, k.second > 0 ? k.first.npos : k.first.rfind('|')); };
  for (auto at = a.begin(); at != a.end();) {
    const auto same = b.find(at->first);
    if (same == b.end()) {
      ++at;
      continue;
    }
    list.push_back({file_of(at->first), at->second.function, at->first.second, at->first.second, at->second.bytes, same->second.bytes});
    b.erase(same);
    at = a.erase(at);
  }
  // What is left of a function on both sides, largest with largest.
  using Left = std::vector<std::pair<Key, Held>>;
  std::map<std::pair<std::string, std::string>, std::pair<Left, Left>> left;
  for (const auto& [key, held] : a) left[{file_of(key), held.function}].first.emplace_back(key, held);
  for (const auto& [key, held] : b) left[{file_of(key), held.function}].second.emplace_back(key, held);
  for (auto& [place, sides] : left) {
    for (Left* side : {&sides.first, &sides.second})
      std::ranges::stable_sort(*side, std::ranges::greater{}, [](const auto& e) { return e.second.bytes; });
    for (size_t i = 0; i < std::max(sides.first.size(), sides.second.size()); ++i) {
      PlaceDifference d{place.first, place.second, 0, 0, 0, 0};
      if (i < sides.first.size()) d.before = sides.first[i].first.second, d.bytes_before = sides.first[i].second.bytes;
      if (i < sides.second.size()) d.after = sides.second[i].first.second, d.bytes_after = sides.second[i].second.bytes;
      list.push_back(d);
    }
  }
  std::ranges::stable_sort(list, std::ranges::greater{}, [](const PlaceDifference& d) { return std::fabs(d.difference()); });
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
               : format("Both runs leak: {} before, {} now ({:+.0f} %)", rate_text(was), rate_text(is), 100 * (is->bytes_per_unit / was->bytes_per_unit - 1));
  else if (before == Kind::kLeak)
    text = format("Both runs leak: {} before, {} now", rate_text(was), rate_text(is));
  else if (before == after)
    text = format("Neither run leaks: both are {}", to_string(after));
  else
    text = format("Neither run leaks: {} before, {} now", to_string(before), to_string(after));
  if (after == Kind::kLeak && is && is->blame) text += format(" at {}:{}", shown(is->blame->file, 80), is->blame->line);
  const std::string peak = peak_sentence(a.evidence->peak_rss, b.evidence->peak_rss);
  return text + (peak.empty() ? "" : "; " + peak) + ".";
}

std::string compare_text(const Run& a, const Run& b, const TextStyle& style, int limit) {
  std::string out = wrapped(compare_sentence(a, b), style.width, 0, 0) + "\n";
  Table table({"<", "<" + shown(a.name, 28), "<" + shown(b.name, 28), "<change"});
  const auto bytes = [&](const char* name, Bytes x, Bytes y) { table.add({name, to_string(x), to_string(y), change(double(x.value), double(y.value))}); };
  const Finding *was = growth_of(a), *is = growth_of(b);
  table.add({"verdict", std::string(to_string(a.verdict->kind)), std::string(to_string(b.verdict->kind)), ""});
  table.add({"growth", rate_text(was), rate_text(is), was && is && was->unit == is->unit ? change(was->bytes_per_unit, is->bytes_per_unit) : ""});
  bytes("peak", a.evidence->peak_rss, b.evidence->peak_rss);
  bytes("at the end", end_of(*a.evidence), end_of(*b.evidence));
  table.add({"seconds", format("{:.1f}", a.evidence->seconds), format("{:.1f}", b.evidence->seconds), change(a.evidence->seconds, b.evidence->seconds)});
  out += table.text(style.width);

  const std::vector<PlaceDifference> list = differences(*a.evidence, *b.evidence);
  Table places({"before", "now", "difference", "<line", "<function"});
  const double least = 0.002 * double(std::max(a.evidence->peak_rss, b.evidence->peak_rss).value);
  for (const PlaceDifference& d : list) {
    if (std::fabs(d.difference()) < std::max(1.0, least) || limit-- <= 0) break;
    places.add({to_string(to_bytes(d.bytes_before)), to_string(to_bytes(d.bytes_after)), signed_bytes(d.difference()), lines_of(d), shown(d.function, 60)});
  }
  out += places.empty() ? "\nNo place holds noticeably more or less at the peak.\n" : "\nAlive at the peak, where it differs most:\n" + places.text(style.width);
  return out;
}

Json compare_json(const Run& a, const Run& b, int limit) {
  const auto one = [](const Run& r) {
    const Finding* f = growth_of(r);
    Json j = {{"file", r.name}, {"verdict", to_string(r.verdict->kind)}, {"peak_rss", r.evidence->peak_rss.value}, {"end_rss", end_of(*r.evidence).value},
              {"seconds", r.evidence->seconds}, {"bytes_per_unit", f ? Json(f->bytes_per_unit) : Json()}, {"unit", f ? Json(to_string(f->unit)) : Json()}};
    return j;
  };
  Json places = Json::array();
  for (const PlaceDifference& d : differences(*a.evidence, *b.evidence)) {
    if (limit-- <= 0) break;
    places.push_back({{"file", d.file}, {"function", d.function}, {"line_before", d.before > 0 ? Json(d.before) : Json()},
                      {"line_after", d.after > 0 ? Json(d.after) : Json()}, {"bytes_before", d.bytes_before}, {"bytes_after", d.bytes_after}});
  }
  return {{"sentence", compare_sentence(a, b)}, {"before", one(a)}, {"after", one(b)}, {"places", places}};
}

}  // namespace millpond::report
