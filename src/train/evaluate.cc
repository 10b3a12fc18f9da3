#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "io/npy.h"
#include "train/hooks.h"
#include "train/model.h"
#include "train/progress.h"
#include "train/stream.h"

namespace millpond {
namespace train {
namespace {

void expect_batch(int64_t batch, const char* what) {
  if (batch <= 0) throw Error(Code::kUsage, format("{}: batch_size is {}, but must be at least 1", what, batch));
}

// Batches in order, the last one shorter. Calls before(program) before a batch is staged, run(program) to begin the
// step, and after it f(program, step, first row).
template <class Before, class Run, class F>
void run_in_order(const Use& use, Team& team, Kind kind, const Data& data, const EvaluateJob& job, Before&& before,
                  Run&& run, F&& f) {
  const int64_t batch = std::min(job.batch, data.samples);
  const int64_t batches = (data.samples + batch - 1) / batch;
  const int64_t steps = job.steps > 0 ? std::min(job.steps, batches) : batches;
  Ready* ready = nullptr;
  uint64_t seen = 0;
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t first = s * batch, count = std::min(batch, data.samples - first);
    if (!ready || ready->key.batch != count ||
        use.programs().uses() != seen) {  // somebody else's code may have moved it
      ready = &use.program(kind, count, job.threads, data.shapes);
      seen = use.programs().uses();
      connect(*ready, data, job.check_inputs);
    }
    before(*ready);
    stage_batch(team, *ready, data, {nullptr, first, count});
    run(*ready);
    f(*ready, s, first);
  }
  if (job.taken) *job.taken = steps;
}

// The same from a dataset.
template <class Before, class Run, class F>
void run_in_order(const Use& use, Team& team, Kind kind, Stream& stream, const EvaluateJob& job, Before&& before,
                  Run&& run, F&& f) {
  Ready* ready = nullptr;
  uint64_t seen = 0;
  int64_t first = 0, step = 0;
  for (; job.steps == 0 || step < job.steps; ++step) {
    const int64_t samples = stream.advance();
    if (samples == 0) break;
    if (!ready || !ready->is_for(samples, stream.shapes()) || use.programs().uses() != seen) {
      ready = &use.program(kind, samples, job.threads, stream.shapes());
      seen = use.programs().uses();
    }
    before(*ready);
    stream.stage(team, *ready, job.check_inputs);
    run(*ready);
    f(*ready, step, first);
    first += samples;
  }
  if (job.taken) *job.taken = step;
}

template <class From>
Results evaluate_any(const Use& use, Team& team, From& from, const EvaluateJob& job, int64_t steps) {
  use.model().needs_compile("evaluate");
  const Hooks hooks(job.callbacks);
  std::optional<Means> means;
  std::vector<Logs::Entry> entries;
  std::vector<std::string> names;
  hooks.each([](Callback& c) { c.on_test_begin({}); });
  hooks.batch(Callback::kTestBegin, [](Callback& c) { c.on_test_batch_begin(0, {}); });
  const auto begin = [&](const Ready& r) {
    if (means) return;
    means.emplace(r);
    for (const Scalar& s : r.scalars) names.push_back(s.name);
    for (const std::string& n : names) entries.push_back({n, 0});
  };
  run_in_order(
      use, team, Kind::kEvaluate, from, job, begin, [&](Ready& r) { means->run(r, team); },
      [&](Ready&, int64_t step, int64_t) {
        if (!hooks.wants(Callback::kTestBegin | Callback::kTestEnd)) return;
        means->read(entries);
        hooks.batch(Callback::kTestEnd, [&](Callback& c) { c.on_test_batch_end(step, Logs(entries)); });
        if (step + 1 < steps)
          hooks.batch(Callback::kTestBegin, [&](Callback& c) { c.on_test_batch_begin(step + 1, {}); });
      });
  means->read(entries);
  hooks.each([&](Callback& c) { c.on_test_end(Logs(entries)); });
  Results results;
  for (const Logs::Entry& e : entries) results.emplace_back(std::string(e.name), e.value);
  return results;
}

int64_t steps_of(int64_t batches, int64_t steps) {
  return steps > 0 ? (batches >= 0 ? std::min(steps, batches) : steps) : std::max<int64_t>(0, batches);
}
int64_t batches_of(const Data& data, int64_t batch) { return (data.samples + batch - 1) / batch; }

// Where predictions go: kept in arrays (of a known length, or growing), into files, to a function. What a model leaves to
// its data, the first step says of all: only a function may be given batches that differ.
class Sink {
 public:
  Sink(const nn::Network& net, const PredictOptions& o, int64_t samples) : o_(o), samples_(samples) {
    if (!o.output_files.empty() && o.output_files.size() != net.outputs.size())
      throw Error(Code::kUsage, format("predict: {} output_files for a model of {} outputs", o.output_files.size(),
                                       net.outputs.size()));
    for (size_t i = 0; i < net.outputs.size(); ++i) {
      shapes_.push_back(net.outputs[i].shape());
      types_.push_back(net.outputs[i].dtype());
      known_ &= shapes_[i].known();
    }
    if (known_) begin();
  }
  /// The predictions of a step that was begun.
  void add(const Ready& r, int64_t first) {
    r.program.wait();
    if (!known_ || open_) look_at(r, first);
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const int64_t bytes = (size_of(types_[i]) * shapes_[i].size()).value * r.key.batch;
      const std::byte* from = r.predictions[i];
      if (!whole_.empty())
        std::memcpy(whole_[i].data() + first * (size_of(types_[i]) * shapes_[i].size()).value, from, size_t(bytes));
      else if (!streams())
        std::memcpy(parts_[i].emplace_back(types_[i], shapes_[i].with_front(r.key.batch), "data/predictions").data(),
                    from, size_t(bytes));
      if (!files_.empty()) files_[i]->append({from, size_t(bytes)});
      if (o_.output)
        outputs.push_back(Tensor::view(const_cast<std::byte*>(from), types_[i], shapes_[i].with_front(r.key.batch)));
    }
    if (o_.output) o_.output(first, outputs);
    rows_ += r.key.batch;
  }
  Arrays finish() {
    if (!known_) return {};  // there was nothing to predict
    for (const auto& f : files_) f->close();
    if (streams()) return {};
    if (!whole_.empty()) return Arrays(std::move(whole_));
    Arrays all;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      Tensor& t = all.emplace_back(types_[i], shapes_[i].with_front(rows_), "data/predictions");
      std::byte* to = t.data();
      for (Tensor& part : parts_[i]) {
        std::memcpy(to, part.data(), size_t(part.bytes().value));
        to += part.bytes().value;
        part = {};  // given back as soon as it is copied
      }
    }
    return all;
  }

 private:
  bool streams() const { return o_.output || !o_.output_files.empty(); }
  // The shapes are known: files can be begun, and room be taken.
  void begin() {
    for (size_t i = 0; i < o_.output_files.size(); ++i)
      files_.push_back(std::make_unique<io::NpyWriter>(o_.output_files[i], types_[i], shapes_[i]));
    if (streams()) return;
    parts_.resize(shapes_.size());
    if (samples_ >= 0)
      for (size_t i = 0; i < shapes_.size(); ++i)
        whole_.emplace_back(types_[i], shapes_[i].with_front(samples_), "data/predictions");
  }
  // What a step of a model with open dimensions gives.
  void look_at(const Ready& r, int64_t first) {
    open_ = true;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const Shape whole = r.program.output_type(r.outputs[i]).shape, shape = whole.slice(1, whole.rank());
      if (known_ && shape != shapes_[i] && (!streams() || !files_.empty()))
        throw Error(Code::kShape,
                    format("predict: row {} gives {}, but rows before it gave {}: they do not go into one array", first,
                           shape, shapes_[i]))
            .hint("pad samples to one length, or take each batch as it comes with PredictOptions::output");
      shapes_[i] = shape;
    }
    if (!known_) begin();
    known_ = true;
  }

  const PredictOptions& o_;
  int64_t samples_;    // in all, or -1
  bool known_ = true;  // what a prediction looks like
  bool open_ = false;  // the model leaves that to its data
  std::vector<Shape> shapes_;
  std::vector<DType> types_;
  std::vector<std::unique_ptr<io::NpyWriter>> files_;
  std::vector<Tensor> whole_;
  std::vector<std::vector<Tensor>> parts_;
  int64_t rows_ = 0;
};

template <class From>
Arrays predict_any(const Use& use, From& from, const EvaluateJob& job, const PredictOptions& o, int64_t samples,
                   int64_t steps) {
  const TeamLease lease(job.threads);
  Sink sink(use.model().built(), o, samples);
  const Hooks hooks(job.callbacks);
  hooks.each([](Callback& c) { c.on_predict_begin({}); });
  hooks.batch(Callback::kPredictBegin, [](Callback& c) { c.on_predict_batch_begin(0, {}); });
  run_in_order(
      use, *lease, Kind::kPredict, from, job, [](const Ready&) {}, [&](Ready& r) { r.program.run(*lease); },
      [&](Ready& r, int64_t step, int64_t first) {
        sink.add(r, first);
        if (!hooks.wants(Callback::kPredictBegin | Callback::kPredictEnd)) return;
        hooks.batch(Callback::kPredictEnd, [&](Callback& c) { c.on_predict_batch_end(step, {}); });
        if (step + 1 < steps)
          hooks.batch(Callback::kPredictBegin, [&](Callback& c) { c.on_predict_batch_begin(step + 1, {}); });
      });
  hooks.each([](Callback& c) { c.on_predict_end({}); });
  return sink.finish();
}

Logs logs_of(const Results& results, std::vector<Logs::Entry>& entries) {
  for (const auto& [name, value] : results) entries.push_back({name, value});
  return Logs(entries);
}

}  // namespace

Results evaluate(const Use& use, Team& team, const Data& data, const EvaluateJob& job) {
  return evaluate_any(use, team, data, job, steps_of(batches_of(data, job.batch), job.steps));
}
Results evaluate(const Use& use, Team& team, Stream& stream, const EvaluateJob& job) {
  return evaluate_any(use, team, stream, job, steps_of(stream.cardinality(), job.steps));
}

}  // namespace train

Results Model::evaluate(const Arrays& x, const Arrays& y, const EvaluateOptions& o) const {
  train::expect_batch(o.batch_size, "evaluate");
  const train::Use use(*impl_, "evaluate", train::Use::How::kRun);
  const train::Data data = train::check_data(*impl_, x, y, true, "evaluate");
  const int64_t steps = train::steps_of(train::batches_of(data, o.batch_size), o.steps);
  Model self = *this;  // for callbacks, who may change it
  const train::Hooks attach(o.callbacks, &self,
                            {.epochs = 1, .steps = steps, .batch_size = o.batch_size, .verbose = o.verbose});
  train::Progress progress(o.verbose);
  progress.begin(0, 0, steps);
  const TeamLease lease(train::threads_or_all(o.threads));
  const Results results =
      train::evaluate(use, *lease, data, {o.batch_size, o.steps, (*lease).size(), o.check_inputs, o.callbacks});
  std::vector<Logs::Entry> entries;
  progress.end(steps, train::logs_of(results, entries));
  return results;
}

Results Model::evaluate(const Dataset& dataset, const EvaluateOptions& o) const {
  if (o.steps == 0 && dataset.cardinality() == INFINITE)
    throw Error(Code::kUsage, "evaluate: the dataset has no end").hint("give steps");
  const train::Use use(*impl_, "evaluate", train::Use::How::kRun);
  train::Stream stream(*impl_, dataset, true, "evaluate", 0);
  const int64_t steps = train::steps_of(stream.cardinality(), o.steps);
  Model self = *this;
  const train::Hooks attach(o.callbacks, &self,
                            {.epochs = 1, .steps = steps, .batch_size = stream.batch(), .verbose = o.verbose});
  train::Progress progress(o.verbose);
  progress.begin(0, 0, steps);
  const TeamLease lease(train::threads_or_all(o.threads));
  int64_t taken = 0;
  const Results results = train::evaluate(
      use, *lease, stream, {stream.batch(), o.steps, (*lease).size(), o.check_inputs, o.callbacks, &taken});
  std::vector<Logs::Entry> entries;
  progress.end(taken, train::logs_of(results, entries));
  return results;
}

Arrays Model::predict(const Arrays& x, const PredictOptions& o) const {
  train::expect_batch(o.batch_size, "predict");
  const train::Use use(*impl_, "predict", train::Use::How::kRun);
  const train::Data data = train::check_data(*impl_, x, {}, false, "predict");
  const int64_t batch = std::min(o.batch_size, data.samples),
                steps = train::steps_of(train::batches_of(data, o.batch_size), o.steps);
  Model self = *this;
  const train::Hooks attach(o.callbacks, &self,
                            {.epochs = 1, .steps = steps, .batch_size = o.batch_size, .verbose = o.verbose});
  train::Progress progress(o.verbose);
  progress.begin(0, 0, steps);
  const train::EvaluateJob job{o.batch_size, o.steps, train::threads_or_all(o.threads), o.check_inputs, o.callbacks};
  Arrays results = train::predict_any(use, data, job, o, std::min(data.samples, steps * batch), steps);
  progress.end(steps, {});
  return results;
}

Arrays Model::predict(const Dataset& dataset, const PredictOptions& o) const {
  if (o.steps == 0 && dataset.cardinality() == INFINITE)
    throw Error(Code::kUsage, "predict: the dataset has no end").hint("give steps");
  const train::Use use(*impl_, "predict", train::Use::How::kRun);
  train::Stream stream(*impl_, dataset, false, "predict", 0);
  const int64_t steps = train::steps_of(stream.cardinality(), o.steps);
  Model self = *this;
  const train::Hooks attach(o.callbacks, &self,
                            {.epochs = 1, .steps = steps, .batch_size = stream.batch(), .verbose = o.verbose});
  train::Progress progress(o.verbose);
  progress.begin(0, 0, steps);
  int64_t taken = 0;
  const train::EvaluateJob job{stream.batch(), o.steps,     train::threads_or_all(o.threads),
                               o.check_inputs, o.callbacks, &taken};
  Arrays results = train::predict_any(use, stream, job, o, -1, steps);
  progress.end(taken, {});
  return results;
}

Results Model::test_on_batch(const Arrays& x, const Arrays& y) const {
  const train::Use use(*impl_, "test_on_batch", train::Use::How::kRun);
  const train::Data data = train::check_data(*impl_, x, y, true, "test_on_batch");
  const TeamLease lease(usable_threads());
  return train::evaluate(use, *lease, data, {.batch = data.samples, .threads = (*lease).size()});
}

Arrays Model::predict_on_batch(const Arrays& x) const {
  const train::Use use(*impl_, "predict_on_batch", train::Use::How::kRun);
  const train::Data data = train::check_data(*impl_, x, {}, false, "predict_on_batch");
  return train::predict_any(use, data, {.batch = data.samples, .threads = usable_threads()}, {}, data.samples, 1);
}

}  // namespace millpond
