#include "cli/memory.h"

#include <algorithm>

#include "cli/self.h"
#include "train/places.h"

namespace millpond::cli {
namespace {

using train::Place;
constexpr Bytes kAlignment{64};  // of variables in their segment

}  // namespace

ledger::Snapshot charged(const Model& model, const ModelData& data) {
  ledger::Ledger ledger;
  ledger.charge("process/start", heap_at_start());
  for (const Place& p : train::places_of(*model.impl())) train::charge(ledger, p);
  for (const Arrays* arrays : {&data.x, &data.y})
    for (const Tensor& t : *arrays) train::charge(ledger, {data.account, t.data(), t.bytes()});
  train::charge_pipelines(ledger);
  return ledger.snapshot();
}

Bytes touched(const Model& model) {
  std::vector<Place> places = train::places_of(*model.impl());
  std::ranges::sort(places, {}, &Place::begin);
  Bytes sum;
  for (size_t i = 0; i < places.size();) {
    // Variables placed together lie one after the other, each filled up to a line of cache.
    const auto end_of = [](const Place& r) {
      return r.begin + (r.account == "constants" ? r.size : round_up(r.size, kAlignment)).value;
    };
    const std::byte* const begin = places[i].begin;
    const std::byte* end = end_of(places[i]);
    for (++i; i < places.size() && places[i].begin <= end; ++i) end = std::max(end, end_of(places[i]));
    sum += resident_in(begin, Bytes{end - begin});
  }
  return sum;
}

std::map<std::string, Bytes> accounts(const MemoryPlan& plan, const ledger::Explanation& explanation) {
  std::map<std::string, Bytes> all;
  for (const auto& [name, bytes] : plan.accounts) all[name] += bytes;
  for (const ledger::ExplainedLine& line : explanation.lines) {
    if (line.name == "arena" || line.name == "constants" || line.name.starts_with("weights/") ||
        line.name.starts_with("slots/"))
      continue;  // the plan's, above
    if (line.name.starts_with("data/") || line.name.starts_with("pipeline/"))
      all[line.name] += line.counted;
    else if (line.name.starts_with("file "))
      all["process/files/" + line.name.substr(line.name.rfind('/') + 1)] += line.counted;
    else
      all["process/" + line.name] += line.counted;
  }
  return all;
}

}  // namespace millpond::cli
