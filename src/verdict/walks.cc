#include "verdict/walks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "verdict/note_values.h"

namespace millpond::verdict {
namespace {

using nlohmann::json;

constexpr size_t kMostHolders = 64, kMostWords = 32;

std::vector<std::string> chain_of(const json& j) {
  std::vector<std::string> chain;
  for (const json& word : list_of(j, "chain"))
    if (word.is_string() && chain.size() < kMostWords) chain.push_back(word);
  return chain;
}

std::vector<Put> puts_of(const json& j) {
  std::vector<Put> puts;
  for (const json& p : list_of(j, "puts"))
    if (p.is_object() && puts.size() < kMostWords) puts.push_back({place_of(p), text_of(p, "how"), text_of(p, "by"), number_of(p, "gained")});
  return puts;
}

Holder holder_of(const json& j) {
  Holder h;
  const std::string how = text_of(j, "how");
  h.how = how == "native" ? Holder::How::kNative : how == "garbage" ? Holder::How::kGarbage : Holder::How::kReached;
  h.type = text_of(j, "type");
  h.chain = chain_of(j);
  h.puts = puts_of(j);
  h.bytes = number_of(j, "bytes"), h.samples = number_of(j, "samples"), h.items = number_of(j, "items"), h.repeats = number_of(j, "repeats");
  h.length = maybe_number(j, "length"), h.bounded = maybe_number(j, "bounded");
  if (!h.bounded) h.bounded = maybe_number(j, "bound");
  size_t part = 0;
  for (const json& bytes : list_of(j, "births"))
    if (part < kBirths && bytes.is_number()) h.births[part++] = std::max(0.0, bytes.get<double>());
  for (const json& b : list_of(j, "born"))
    if (b.is_object() && h.born.size() < kMostWords) h.born.push_back({place_of(b), number_of(b, "bytes")});
  return h;
}

}  // namespace

bool Holder::accumulates() const {
  constexpr double kFewest = 4;  // samples: three births at random times leave a quarter empty more often than not
  if (bounded || how == How::kGarbage || samples < kFewest) return false;
  const auto first = std::ranges::find_if(births, [](double b) { return b > 0; });
  const auto parts = births.end() - first;
  if (parts < ptrdiff_t(kBirths / 2)) return false;  // a window, or it has just begun
  const auto filled = std::count_if(first, births.end(), [](double b) { return b > 0; });
  const bool lately = std::any_of(births.end() - kBirths / 4, births.end(), [](double b) { return b > 0; });
  return lately && double(filled) >= std::min(samples, double(parts)) / 2;
}

const Holder* HeapWalk::accumulating() const {
  const auto found = std::ranges::find_if(holders, [](const Holder& h) { return h.accumulates(); });
  return found == holders.end() ? nullptr : &*found;
}

double Holder::active() const {
  const auto first = std::ranges::find_if(births, [](double b) { return b > 0; });
  return double(births.end() - first) / double(kBirths);
}

double HeapWalk::gained_each_round(const Holder& h) const {
  const double rounds = (period - 1) * h.active();  // the first mark is the end of the first round
  return rounds > 0 ? h.bytes / rounds : 0;
}

double HeapWalk::gained_each_round() const {
  double sum = 0;
  for (const Holder& h : holders)
    if (h.accumulates()) sum += gained_each_round(h);
  return sum;
}

void take_puts(const json& note, HeapWalk& walk) {
  for (const json& j : list_of(note, "holders")) {
    if (!j.is_object()) continue;
    const std::vector<std::string> chain = chain_of(j);
    for (Holder& h : walk.holders)
      if (h.chain == chain && h.type == text_of(j, "type")) h.puts = puts_of(j);
  }
}

std::optional<HeapWalk> walk_of(const json& note) {
  if (!text_of(note, "refused").empty()) return {};
  HeapWalk w;
  w.period = number_of(note, "period"), w.seconds = number_of(note, "seconds");
  w.alive = number_of(note, "alive"), w.reached = number_of(note, "reached"), w.native = number_of(note, "native"), w.garbage = number_of(note, "garbage");
  for (const json& j : list_of(note, "holders"))
    if (j.is_object() && w.holders.size() < kMostHolders) w.holders.push_back(holder_of(j));
  std::ranges::stable_sort(w.holders, std::ranges::greater{}, &Holder::bytes);
  return w;
}

}  // namespace millpond::verdict
