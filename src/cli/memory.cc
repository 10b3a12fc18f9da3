#include "cli/memory.h"

#include <algorithm>

#include "train/model.h"

namespace millpond::cli {
namespace {

struct Range {
  std::string account;
  const std::byte* begin;
  Bytes size;
};

// Everything of the model that has a place, account by account. The arena is one: what lies in it changes during a step.
std::vector<Range> model_ranges(const Model& model) {
  std::vector<Range> ranges;
  const auto add = [&](const runtime::Variable& v) {
    if (v.placed()) ranges.push_back({v.account(), v.data(), v.type().bytes()});
  };
  train::ModelImpl& impl = *model.impl();
  if (!impl.network) return ranges;
  for (const nn::Weight& w : impl.weights()) add(w->variable);
  add(impl.counter);
  if (impl.compiled)
    for (const runtime::Variable* v : impl.compiled->optimizer.impl()->variables()) add(*v);
  Bytes arena;
  for (const train::Ready* r : impl.programs.all()) {
    arena = std::max(arena, r->program.arena_bytes());
    for (const auto& n : r->program.graph().nodes())
      if (n->role == graph::Role::kConstant) ranges.push_back({"constants", n->constant.data(), n->constant.bytes()});
  }
  if (const Segment& segment = impl.programs.arena()) ranges.push_back({"arena", segment.data(), std::min(arena, segment.size())});
  return ranges;
}

constexpr Bytes kAlignment{64};  // of variables in their segment

}  // namespace

ledger::Snapshot charged(const Model& model, const ModelData& data) {
  ledger::Ledger ledger;
  const auto charge = [&](const std::string& account, const std::byte* begin, Bytes size) {
    if (size.value == 0) return;
    try {
      ledger.charge(account, begin, size);
    } catch (const Error&) {  // a layer's name that is no account's
      ledger.charge(account.substr(0, account.find('/')) + "/other", begin, size);
    }
  };
  for (const Range& r : model_ranges(model)) charge(r.account, r.begin, r.size);
  for (const Arrays* arrays : {&data.x, &data.y})
    for (const Tensor& t : *arrays) charge(data.account, t.data(), t.bytes());
  return ledger.snapshot();
}

Bytes touched(const Model& model) {
  std::vector<Range> ranges = model_ranges(model);
  std::ranges::sort(ranges, {}, &Range::begin);
  Bytes sum;
  for (size_t i = 0; i < ranges.size();) {
    // Variables placed together lie one after the other, each filled up to a line of cache.
    const auto end_of = [](const Range& r) { return r.begin + (r.account == "constants" ? r.size : round_up(r.size, kAlignment)).value; };
    const std::byte* const begin = ranges[i].begin;
    const std::byte* end = end_of(ranges[i]);
    for (++i; i < ranges.size() && ranges[i].begin <= end; ++i) end = std::max(end, end_of(ranges[i]));
    sum += resident_in(begin, Bytes{end - begin});
  }
  return sum;
}

std::map<std::string, Bytes> accounts(const MemoryPlan& plan, const ledger::Explanation& explanation) {
  std::map<std::string, Bytes> all;
  for (const auto& [name, bytes] : plan.accounts) all[name] += bytes;
  for (const ledger::ExplainedLine& line : explanation.lines) {
    if (line.name == "arena" || line.name == "constants" || line.name.starts_with("weights/") || line.name.starts_with("slots/")) continue;  // the plan's, above
    if (line.name.starts_with("data/")) all[line.name] += line.counted;
    else if (line.name.starts_with("file ")) all["process/files/" + line.name.substr(line.name.rfind('/') + 1)] += line.counted;
    else all["process/" + line.name] += line.counted;
  }
  return all;
}

}  // namespace millpond::cli
