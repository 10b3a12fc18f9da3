#include "verdict/walks.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "verdict/course.h"
#include "verdict/note_values.h"

namespace millpond::verdict {
namespace {

using nlohmann::json;

constexpr size_t kMostHolders = 64, kMostWords = 32, kMostLengths = 64;

std::vector<std::string> chain_of(const json& j) {
  std::vector<std::string> chain;
  for (const json& word : list_of(j, "chain"))
    if (word.is_string() && chain.size() < kMostWords) chain.push_back(word);
  return chain;
}

std::vector<Put> puts_of(const json& j) {
  std::vector<Put> puts;
  for (const json& p : list_of(j, "puts"))
    if (p.is_object() && puts.size() < kMostWords)
      puts.push_back({place_of(p), text_of(p, "by"), number_of(p, "gained"), number_of(p, "seen"), flag_of(p, "hook")});
  return puts;
}

std::vector<Born> lines_of(const json& j, const char* key) {
  std::vector<Born> lines;
  for (const json& b : list_of(j, key))
    if (b.is_object() && lines.size() < kMostWords) lines.push_back({place_of(b), number_of(b, "bytes")});
  return lines;
}

/// [[round, items], ...]
std::vector<std::pair<double, double>> points_of(const json& j, const char* key) {
  std::vector<std::pair<double, double>> points;
  for (const json& p : list_of(j, key))
    if (p.is_array() && p.size() == 2 && p[0].is_number() && p[1].is_number() && points.size() < kMostLengths)
      points.emplace_back(p[0].get<double>(), p[1].get<double>());
  return points;
}

std::vector<Looked> looks_of(const json& j) {
  const std::vector<std::pair<double, double>> lengths = points_of(j, "lengths"), inner = points_of(j, "inner");
  std::vector<Looked> looks;
  for (size_t i = 0; i < lengths.size(); ++i)
    looks.push_back({lengths[i].first, lengths[i].second,
                     inner.size() == lengths.size() ? std::optional(inner[i].second) : std::nullopt});
  return looks;
}

Holder holder_of(const json& j) {
  Holder h;
  const std::string how = text_of(j, "how");
  h.how = how == "native" ? Holder::How::kNative : how == "garbage" ? Holder::How::kGarbage : Holder::How::kReached;
  h.type = text_of(j, "type");
  h.chain = chain_of(j);
  h.puts = puts_of(j);
  h.bytes = number_of(j, "bytes"), h.samples = number_of(j, "samples"), h.repeats = number_of(j, "repeats"),
  h.graph = number_of(j, "graph");
  h.length = maybe_number(j, "length"), h.bounded = maybe_number(j, "bounded");
  if (!h.bounded) h.bounded = maybe_number(j, "bound");
  size_t part = 0;
  for (const json& bytes : list_of(j, "births"))
    if (part < kBirths && bytes.is_number()) h.births[part++] = std::max(0.0, bytes.get<double>());
  h.looks = looks_of(j);
  h.born = lines_of(j, "born");
  return h;
}

const Holder* find_same(const std::vector<Holder>& among, const Holder& h) {
  const auto found =
      std::ranges::find_if(among, [&](const Holder& other) { return other.chain == h.chain && other.type == h.type; });
  return found == among.end() ? nullptr : &*found;
}

/// The rows of a list of the note, each with what an earlier walk knew of it.
std::vector<Holder> rows_of(const json& note, const char* name, double period, const std::vector<Holder>& before) {
  std::vector<Holder> rows;
  for (const json& j : list_of(note, name)) {
    if (!j.is_object() || rows.size() >= kMostHolders) continue;
    Holder h = holder_of(j);
    h.period = period;
    if (const Holder* old = find_same(before, h)) {
      if (h.puts.empty()) h.puts = old->puts;
      h.at_first = old->at_first > 0 ? old->at_first : old->bytes;
      if (h.looks.empty() && old->looks.size() < kMostLengths)
        h.looks = old->looks;  // otherwise its own lengths say more
    }
    if (h.looks.empty() || h.looks.back().period < period) h.looks.push_back({period, h.length, {}});
    rows.push_back(std::move(h));
  }
  return rows;
}

/// Items come by less and less: each third of the time brought fewer than the one before, and the later half fewer than
/// the first by more than chance. Of groups that come at random the variance is the sum of their squares.
bool slows(const std::vector<double>& x, const std::vector<double>& y) {
  if (y.size() < kTable.looks_of_lengths) return false;
  const auto at = [&](double share) {
    const double when = x.front() + share * (x.back() - x.front());
    return y[size_t(std::ranges::upper_bound(x, when) - x.begin()) - 1];
  };
  double variance = 0;
  for (size_t i = 1; i < y.size(); ++i) variance += (y[i] - y[i - 1]) * (y[i] - y[i - 1]);
  const double first = at(1.0 / 3) - y.front(), second = at(2.0 / 3) - at(1.0 / 3), third = y.back() - at(2.0 / 3);
  const double before = at(0.5) - y.front(), after = y.back() - at(0.5);
  return first > second && second >= third && third < kTable.slows * first &&
         before - after > k90 * std::sqrt(variance);
}

}  // namespace

/// Places that were made at once are filled one by one: no more than that fit.
bool Holder::is_full_of_places() const {
  if (looks.size() < 2) return false;
  const double places = looks.front().length.value_or(0);
  return places > 1 && std::ranges::all_of(
                           looks, [&](const Looked& l) { return l.length == places && l.inner && *l.inner <= places; });
}

bool Holder::stopped() const {
  std::vector<double> x, y;
  for (const Looked& l : looks)
    if (l.length && (x.empty() || l.period > x.back())) x.push_back(l.period), y.push_back(*l.length);
  if (y.size() < 2 || y.back() <= 1) return false;
  if (slows(x, y)) return true;
  size_t last = 0;  // look at which it gained something
  double pause = 0, most = y.front();
  for (size_t i = 1; i < y.size(); ++i)
    if (y[i] > most) pause = std::max(pause, x[i] - x[last]), last = i, most = y[i];
  const double idle = x.back() - x[last];
  // Something came lately all the same: in the place of old things, unless what is in it weighs more and more (pairs of
  // a thing and the pair before).
  const bool heavier = at_first > 0 && bytes > kTable.too_much * at_first && samples > kTable.several * y.back();
  if (last == 0) return births.back() > 0 && idle >= kTable.quiet && !heavier;
  const double missing = (most - y.front()) / (x[last] - x.front()) * idle;
  // By the clock rounds are not known: so many items should have come that their absence says as much.
  const bool quiet =
      idle >= kTable.quiet || y.size() - 1 - last >= size_t(kTable.quiet) || missing >= 2 * kTable.missing;
  return quiet && idle >= kTable.longest * pause && missing >= kTable.missing;
}

/// Nothing in it was born for so long that several should have been, at the rate and with the pauses of before; nor did
/// it get longer after the walk.
bool Holder::has_no_births() const {
  if (samples < 2 * kTable.samples || period <= 0) return false;
  double more = 0, since = period;  // parts of the time after the walk in which it got no longer
  const Looked* before = nullptr;
  for (const Looked& l : looks) {
    if (!l.length) continue;
    if (l.period > period && before && *l.length > *before->length) return false;
    if (!before) since = std::max(period, l.period);  // nobody knows how long it was when the walk was made
    more = std::max(0.0, l.period - since) / period * double(kBirths);
    before = &l;
  }
  if (more <= 0) return false;  // nobody looked since
  const size_t from = first();
  size_t last = from, pause = 0;
  for (size_t i = from; i < kBirths; ++i)
    if (births[i] > 0) pause = std::max(pause, i - last), last = i;
  const double idle = double(kBirths - 1 - last) + more, missing = samples / double(last - from + 1) * idle;
  return idle >= kTable.births_quiet && idle >= kTable.longest * double(std::max<size_t>(pause, 1)) &&
         missing >= 2 * kTable.missing;
}

/// Its items get longer though it has no more of them: lists in a dictionary.
bool Holder::goes_on_inside() const {
  size_t last = 0;  // look at which it gained an item
  for (size_t i = 1; i < looks.size(); ++i)
    if (looks[i].length > looks[i - 1].length) last = i;
  int rises = 0, falls = 0;
  for (size_t i = last + 1; i < looks.size(); ++i)
    if (looks[i].inner && looks[i - 1].inner)
      rises += *looks[i].inner > *looks[i - 1].inner, falls += *looks[i].inner < *looks[i - 1].inner;
  return rises >= 2 && falls == 0;
}

bool Holder::ends() const {
  return bounded || is_full_of_places() || ((stopped() || has_no_births()) && !goes_on_inside());
}

bool Holder::goes_on() const {
  int rises = 0, falls = 0;
  const Looked* before = nullptr;
  for (const Looked& l : looks) {
    if (!l.length) continue;
    if (before) rises += *l.length > *before->length, falls += *l.length < *before->length;
    before = &l;
  }
  return rises >= kTable.looks && falls == 0 && !ends();
}

size_t Holder::first() const {
  return size_t(std::ranges::find_if(births, [](double b) { return b > 0; }) - births.begin());
}

bool Holder::accumulates(size_t from) const {
  if (ends() || how == How::kGarbage || from >= kBirths) return false;
  if (grows || goes_on()) return true;
  const std::span<const double> since = std::span(births).subspan(from);
  const auto filled = [](std::span<const double> parts) {
    return std::ranges::count_if(parts, [](double b) { return b > 0; });
  };
  if (samples < kTable.samples) return filled(since.first(since.size() - 1)) > 0;  // few lie anywhere
  const std::span<const double> later = since.subspan(since.size() / 2);
  const double half = std::accumulate(later.begin(), later.end(), 0.0),
               all = std::accumulate(since.begin(), since.end(), 0.0);
  return filled(since.last(std::min(since.size(), kBirths / 4))) > 0 &&
         filled(since.first((since.size() + 1) / 2)) > 0 &&
         double(filled(since)) >= std::min(samples, double(since.size())) / 2 &&
         half >= kTable.part * all;  // most of it at once is no accumulation
}

bool Holder::accumulates() const {
  return grows ? !ends() : goes_on() || (samples >= kTable.samples && first() <= kBirths / 2 && accumulates(first()));
}

double Holder::active() const { return double(kBirths - first()) / double(kBirths); }

const Holder* HeapWalk::accumulating() const {
  const auto found = std::ranges::find_if(holders, [](const Holder& h) { return h.accumulates(); });
  return found == holders.end() ? nullptr : &*found;
}

double HeapWalk::gained_each_round(const Holder& h) const {
  const double rounds = (period - 1) * h.active();  // the first mark is the end of the first round
  return rounds > 0 ? h.bytes / rounds : 0;
}

void take_courses(const json& note, HeapWalk& walk) {
  for (const json& j : list_of(note, "holders")) {
    if (!j.is_object()) continue;
    const Holder told = holder_of(j);
    for (std::vector<Holder>* rows : {&walk.holders, &walk.growing})
      for (Holder& h : *rows)
        if (h.chain == told.chain && h.type == told.type) h.looks = told.looks;
  }
}

void take_puts(const json& note, HeapWalk& walk) {
  for (const json& j : list_of(note, "holders")) {
    if (!j.is_object()) continue;
    const std::vector<std::string> chain = chain_of(j);
    for (std::vector<Holder>* rows : {&walk.holders, &walk.growing})
      for (Holder& h : *rows)
        if (h.chain == chain && h.type == text_of(j, "type")) {
          // What was seen last may have been too short to tell how much came of it.
          std::vector<Put> puts = puts_of(j);
          if (h.puts.empty() || h.puts.front().gained <= 0 || (!puts.empty() && puts.front().gained > 0))
            h.puts = std::move(puts);
        }
  }
}

std::optional<HeapWalk> walk_of(const json& note, const HeapWalk* before) {
  if (!text_of(note, "refused").empty()) return {};
  HeapWalk w;
  w.kind = text_of(note, "kind");
  w.period = number_of(note, "period");
  w.alive = number_of(note, "alive"), w.reached = number_of(note, "reached"), w.native = number_of(note, "native"),
  w.garbage = number_of(note, "garbage");
  w.holders = rows_of(note, "holders", w.period, before ? before->holders : std::vector<Holder>{});
  w.growing = rows_of(note, "growing", w.period, before ? before->growing : std::vector<Holder>{});
  for (Holder& h : w.growing) h.grows = true;
  // A shallow walk does not look into libraries: what they held before is still known.
  if (before && flag_of(note, "shallow"))
    for (const Holder& old : before->holders)
      if (w.holders.size() < kMostHolders && !find_same(w.holders, old)) w.holders.push_back(old);
  std::ranges::stable_sort(w.holders, std::ranges::greater{}, &Holder::bytes);
  w.lines = lines_of(note, "lines");
  return w;
}

}  // namespace millpond::verdict
