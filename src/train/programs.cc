#include "train/programs.h"

#include <algorithm>

#include "base/format.h"

namespace millpond::train {

Ready::Ready(ProgramKey k, Traced t, const runtime::Options& options)
    : key(std::move(k)),
      feeds(std::move(t.feeds)),
      scalars(std::move(t.scalars)),
      outputs(std::move(t.outputs)),
      program(format("{} {}", to_string(key.kind), key.batch), std::move(t.graph), options) {
  for (const Feed& f : feeds) {
    Lane lane;
    lane.to_type = f.type.dtype;
    lane.width = f.type.shape.size() / std::max<int64_t>(1, key.batch);
    lane.limit = f.limit;
    lanes.push_back(lane);
  }
  std::vector<std::pair<std::string, double>> means;  // what is counted has no output
  for (const Scalar& s : scalars)
    if (!s.metric) means.emplace_back(s.name, s.weight);
  program.sum_outputs(std::move(means));
  predictions.resize(outputs.size());
}

void Ready::bind(std::byte* arena) {
  program.bind(arena);
  for (size_t i = 0; i < feeds.size(); ++i) lanes[i].to = program.input(feeds[i].name);
  for (size_t i = 0; i < outputs.size(); ++i) predictions[i] = program.output(outputs[i]);
}

Ready& Programs::get(const ProgramKey& key, const std::function<Traced(const passes::Options&)>& make,
                     const std::function<void(const Ready&, Bytes)>& allow) {
  ++clock_;
  for (const auto& r : ready_)
    if (r->key == key) {
      r->used = clock_;
      return *r;
    }
  if (ready_.size() >= kMost) ready_.erase(std::ranges::min_element(ready_, {}, [](const auto& r) { return r->used; }));
  runtime::Options options;
  options.threads = key.threads;
  auto made = std::make_unique<Ready>(key, make(options.offered_passes()), options);
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
