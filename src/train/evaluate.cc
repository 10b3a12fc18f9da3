#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "train/hooks.h"
#include "train/interrupt.h"
#include "train/model.h"
#include "train/progress.h"

namespace millpond {
namespace train {
namespace {

void expect_batch(int64_t batch, const char* what) {
  if (batch <= 0) throw Error(Code::kUsage, format("{}: batch_size is {}, but must be at least 1", what, batch));
}

// Batches in order, the last one shorter. Calls f(program, first row) after each run. Returns false when it was stopped.
template <class F>
int64_t run_in_order(ModelImpl& model, Kind kind, const Data& data, const EvaluateJob& job, const Interrupt* interrupt, F&& f) {
  const int64_t batch = std::min(job.batch, data.samples);
  const int64_t batches = (data.samples + batch - 1) / batch;
  const int64_t steps = job.steps > 0 ? std::min(job.steps, batches) : batches;
  Team& team = team_of(job.threads);
  Ready* ready = nullptr;
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t first = s * batch, count = std::min(batch, data.samples - first);
    if (!ready || ready->key.batch != count || job.callbacks.size()) {
      ready = &model.program(kind, count, job.threads, data.labels);
      connect(*ready, data, job.check_inputs);
    }
    stage_batch(team, *ready, data, {nullptr, first, count});
    ready->program.run(team);
    f(*ready, s, first);
    if (interrupt && interrupt->asked()) return s + 1;
  }
  return steps;
}

}  // namespace

Results evaluate(ModelImpl& model, const Data& data, const EvaluateJob& job) {
  model.needs_compile("evaluate");
  const Hooks hooks(job.callbacks);
  std::optional<Means> means;
  std::vector<Logs::Entry> entries;
  std::vector<std::string> names;
  hooks.each([](Callback& c) { c.on_test_begin({}); });
  hooks.batch(Callback::kTestBegin, [](Callback& c) { c.on_test_batch_begin(0, {}); });
  run_in_order(model, Kind::kEvaluate, data, job, nullptr, [&](Ready& r, int64_t step, int64_t first) {
    if (!means) {
      means.emplace(r);
      for (const Scalar& s : r.scalars) names.push_back(s.name);
      for (const std::string& n : names) entries.push_back({n, 0});
    }
    means->add(r);
    if (!hooks.wants(Callback::kTestBegin | Callback::kTestEnd)) return;
    means->read(entries);
    hooks.batch(Callback::kTestEnd, [&](Callback& c) { c.on_test_batch_end(step, Logs(entries)); });
    if (first + r.key.batch < data.samples) hooks.batch(Callback::kTestBegin, [&](Callback& c) { c.on_test_batch_begin(step + 1, {}); });
  });
  means->read(entries);
  hooks.each([&](Callback& c) { c.on_test_end(Logs(entries)); });
  Results results;
  for (const Logs::Entry& e : entries) results.emplace_back(std::string(e.name), e.value);
  return results;
}

std::vector<Tensor> predict(ModelImpl& model, const Data& data, const EvaluateJob& job) {
  const nn::Network& net = model.built();
  const int64_t batch = std::min(job.batch, data.samples), samples = job.steps > 0 ? std::min(data.samples, job.steps * batch) : data.samples;
  std::vector<Tensor> results;
  for (const SymbolicTensor& o : net.outputs) results.emplace_back(o.dtype(), o.shape().with_front(samples), "data/predictions");
  const Hooks hooks(job.callbacks);
  hooks.each([](Callback& c) { c.on_predict_begin({}); });
  hooks.batch(Callback::kPredictBegin, [](Callback& c) { c.on_predict_batch_begin(0, {}); });
  run_in_order(model, Kind::kPredict, data, job, nullptr, [&](Ready& r, int64_t step, int64_t first) {
    for (size_t i = 0; i < results.size(); ++i) {
      const int64_t row = results[i].bytes().value / std::max<int64_t>(1, samples);
      std::memcpy(results[i].data() + first * row, r.predictions[i], size_t(r.key.batch * row));
    }
    if (!hooks.wants(Callback::kPredictBegin | Callback::kPredictEnd)) return;
    hooks.batch(Callback::kPredictEnd, [&](Callback& c) { c.on_predict_batch_end(step, {}); });
    if (first + r.key.batch < samples) hooks.batch(Callback::kPredictBegin, [&](Callback& c) { c.on_predict_batch_begin(step + 1, {}); });
  });
  hooks.each([](Callback& c) { c.on_predict_end({}); });
  return results;
}

}  // namespace train

Results Model::evaluate(const Arrays& x, const Arrays& y, const EvaluateOptions& o) {
  train::expect_batch(o.batch_size, "evaluate");
  impl_->stop = false;
  const train::Data data = train::check_data(*impl_, x, y, true, "evaluate");
  const int64_t batches = (data.samples + o.batch_size - 1) / o.batch_size;
  const train::Hooks attach(o.callbacks, this, {.epochs = 1, .steps = o.steps > 0 ? std::min(o.steps, batches) : batches, .batch_size = o.batch_size, .verbose = o.verbose});
  train::Progress progress(o.verbose);
  progress.begin(0, 0, o.steps > 0 ? std::min(o.steps, batches) : batches);
  const Results results = train::evaluate(*impl_, data, {o.batch_size, o.steps, train::threads_or_all(o.threads), o.check_inputs, o.callbacks});
  std::vector<Logs::Entry> entries;
  for (const auto& [name, value] : results) entries.push_back({name, value});
  progress.end(o.steps > 0 ? std::min(o.steps, batches) : batches, Logs(entries));
  return results;
}

Arrays Model::predict(const Arrays& x, const PredictOptions& o) {
  train::expect_batch(o.batch_size, "predict");
  const train::Data data = train::check_data(*impl_, x, {}, false, "predict");
  const int64_t batches = (data.samples + o.batch_size - 1) / o.batch_size;
  const train::Hooks attach(o.callbacks, this, {.epochs = 1, .steps = batches, .batch_size = o.batch_size, .verbose = o.verbose});
  train::Progress progress(o.verbose);
  progress.begin(0, 0, batches);
  Arrays results = train::predict(*impl_, data, {o.batch_size, o.steps, train::threads_or_all(o.threads), o.check_inputs, o.callbacks});
  progress.end(o.steps > 0 ? std::min(o.steps, batches) : batches, {});
  return results;
}

Results Model::test_on_batch(const Arrays& x, const Arrays& y) {
  const train::Data data = train::check_data(*impl_, x, y, true, "test_on_batch");
  return train::evaluate(*impl_, data, {.batch = data.samples, .threads = usable_threads()});
}

Arrays Model::predict_on_batch(const Arrays& x) {
  const train::Data data = train::check_data(*impl_, x, {}, false, "predict_on_batch");
  return train::predict(*impl_, data, {.batch = data.samples, .threads = usable_threads()});
}

}  // namespace millpond
