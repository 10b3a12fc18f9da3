#include "train/places.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/segment.h"
#include "data/pool.h"

namespace millpond::train {

std::vector<Place> places_of(const ModelImpl& model) {
  std::vector<Place> places;
  const auto add = [&](const runtime::Variable& v) {
    if (v.placed()) places.push_back({v.account(), v.memory().address(), v.type().bytes()});
  };
  if (!model.network) return places;
  for (const nn::Weight& w : model.weights()) add(w->variable);
  add(model.counter);
  if (model.compiled)
    for (const runtime::Variable* v : model.compiled->optimizer.impl()->variables()) add(*v);
  for (const Programs* programs : model.uses.workspaces()) {
    for (const runtime::Variable* v : programs->counts().all()) add(*v);
    Bytes arena;
    for (const Ready* r : programs->all()) {
      arena = std::max(arena, r->program.arena_bytes());
      for (const auto& n : r->program.graph().nodes())
        if (n->role == graph::Role::kConstant) places.push_back({"constants", n->constant.data(), n->constant.bytes()});
    }
    if (const backend::Memory& memory = programs->arena())
      places.push_back({"arena", memory.address(), std::min(arena, memory.size())});
  }
  return places;
}

std::vector<Place> places_of_data(const ModelImpl& model) {
  std::vector<Place> places;
  const auto add = [&](const char* prefix, const Arrays& arrays) {
    for (size_t i = 0; i < arrays.size(); ++i)
      if (std::ranges::find(places, arrays[i].data(), &Place::begin) ==
          places.end())  // validating with what it learns from
        places.push_back({format("data/{}{}", prefix, i), arrays[i].data(), arrays[i].bytes()});
  };
  if (model.training) add("x", model.training->x), add("y", model.training->y);
  if (model.validation) add("val_x", model.validation->x), add("val_y", model.validation->y);
  return places;
}

void charge_other_data(ledger::Ledger& ledger, const std::vector<Place>& known) {
  constexpr Bytes kOwnPages{64 << 10};  // from here on a tensor has pages of its own, of which some may not be resident
  std::map<std::string, Bytes> small;
  std::vector<Place> large;
  each_holding_at([&](const std::string& account, const void* begin, Bytes size) {
    if (!account.starts_with("data/")) return;
    const auto* at = static_cast<const std::byte*>(begin);
    if (std::ranges::any_of(known,
                            [&](const Place& p) { return at < p.begin + p.size.value && p.begin < at + size.value; }))
      return;
    if (begin && size >= kOwnPages)
      large.push_back({account, at, size});
    else
      small[account] += size;
  });
  for (const Place& p : large) charge(ledger, p);
  for (const auto& [account, bytes] : small) {
    try {
      ledger.charge(account, bytes);
    } catch (const Error&) {  // a user's name that is no account's
      ledger.charge("data/other", bytes);
    }
  }
}

void charge_pipelines(ledger::Ledger& ledger) {
  std::map<std::string, Bytes> rest;  // what lies on the heap
  each_holding([&](const std::string& account, Bytes bytes) {
    if (account.starts_with("pipeline/")) rest[account] += bytes;
  });
  data::each_pipeline_range([&](const std::string& account, const void* begin, Bytes size) {
    ledger.charge(account, begin, size);
    rest[account] -= size;
  });
  for (const auto& [account, bytes] : rest)
    if (bytes.value > 0) ledger.charge(account, bytes);
}

void charge(ledger::Ledger& ledger, const Place& place) {
  if (place.size.value == 0) return;
  try {
    ledger.charge(place.account, place.begin, place.size);
  } catch (const Error&) {
    ledger.charge(place.account.substr(0, place.account.find('/')) + "/other", place.begin, place.size);
  }
}

}  // namespace millpond::train
