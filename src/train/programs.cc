#include "train/programs.h"

#include <algorithm>

#include "base/format.h"

namespace millpond::train {

Ready::Ready(ProgramKey k, Traced t, const runtime::Options& options)
    : key(std::move(k)),
      feeds(std::move(t.feeds)),
      scalars(std::move(t.scalars)),
      outputs(std::move(t.outputs)),
      program(format("{} {}{}{}", to_string(key.kind), key.batch, t.samples.empty() ? "" : " of ", t.samples),
              std::move(t.graph), options) {
  for (const Feed& f : feeds) {
    Lane lane;
    lane.to_type = f.type.dtype;
    lane.width = f.type.shape.size() / std::max<int64_t>(1, key.batch);
    lane.limit = f.limit;
    lanes.push_back(lane);
  }
  std::vector<std::pair<std::string, double>> means;  // what is counted has no output
  for (const Scalar& s : scalars) {
    if (s.metric) continue;
    means.emplace_back(s.name, s.weight);
    if (s.counted) means.emplace_back(s.name + "/count", s.weight);
  }
  program.sum_outputs(std::move(means));
  predictions.resize(outputs.size());
  // An estimate of nodes, calls, buffers and what they hold, for the bound on all programs. Constants are known exactly.
  constexpr Bytes kNode{1024}, kCall{4096};
  own = kNode * int64_t(program.graph().nodes().size()) + kCall * int64_t(program.lowered().calls.size());
  for (const auto& n : program.graph().nodes())
    if (n->role == graph::Role::kConstant) constants += n->constant.bytes();
}

void Ready::bind(std::byte* arena) {
  program.bind(arena);
  for (size_t i = 0; i < feeds.size(); ++i) lanes[i].to = program.input(feeds[i].name);
  for (size_t i = 0; i < outputs.size(); ++i) predictions[i] = program.output(outputs[i]);
}

Bytes Programs::own_bytes() const {
  Bytes sum;
  for (const auto& r : ready_) sum += r->own + r->constants;
  return sum;
}

Ready* Programs::find(Kind kind, int64_t batch, int threads, const SampleShapes& samples) {
  ++clock_;
  for (const auto& r : ready_)
    if (r->key.kind == kind && r->key.threads == threads && r->is_for(batch, samples)) {
      r->used = clock_;
      return r.get();
    }
  return nullptr;
}

Ready& Programs::get(Kind kind, int64_t batch, int threads, const SampleShapes& samples,
                     const std::function<Traced(const passes::Options&)>& make,
                     const std::function<void(const Ready&, Bytes)>& allow) {
  if (Ready* known = find(kind, batch, threads, samples)) return *known;
  while (ready_.size() >= kMost || (ready_.size() > kLeast && own_bytes() > kMostBytes)) {
    ready_.erase(std::ranges::min_element(ready_, {}, [](const auto& r) { return r->used; }));
    ++dropped_;
  }
  runtime::Options options;
  options.threads = threads;
  ProgramKey key{kind, batch, threads, samples};
  if (kind == Kind::kPredict) key.samples.y.clear();
  Traced traced = make(options.offered_passes());
  options.memory_target = traced.memory_target;
  auto made = std::make_unique<Ready>(std::move(key), std::move(traced), options);
  made->used = clock_;
  const Bytes wanted = made->program.arena_bytes();
  const bool grow = wanted > arena_.size();
  allow(*made, grow ? wanted - arena_.size() : Bytes{0});
  if (grow) {
    made->program.wait();        // for runs that are still in it
    arena_ = backend::Memory();  // first give back, then take: both are never there at once
    arena_bytes_ = 0;
    try {
      arena_ = made->program.backend().take(wanted, account_);
      arena_bytes_ = arena_.size().value;
    } catch (...) {
      ready_.clear();  // the others have lost their arena
      throw;
    }
    for (const auto& r : ready_) r->bind(arena_.address());
  }
  made->bind(arena_.address());
  ready_.push_back(std::move(made));
  return *ready_.back();
}

void Programs::clear() {
  ++clock_;
  ready_.clear();
  counts_.clear();
  arena_ = backend::Memory();
  arena_bytes_ = 0;
}

void Programs::wait() const {
  if (!ready_.empty()) ready_.front()->program.wait();
}

std::vector<const Ready*> Programs::all() const {
  std::vector<const Ready*> all;
  for (const auto& r : ready_) all.push_back(r.get());
  return all;
}

}  // namespace millpond::train
