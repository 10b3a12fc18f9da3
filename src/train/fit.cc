#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "base/process.h"
#include "base/random.h"
#include "base/seed.h"
#include "base/segment.h"
#include "base/team.h"
#include "data/running.h"
#include "eager/context.h"
#include "train/hooks.h"
#include "train/interrupt.h"
#include "train/memory.h"
#include "train/model.h"
#include "train/progress.h"
#include "train/stream.h"

namespace millpond {
namespace train {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// The order of the samples: made once, shuffled anew for each pass over the data. 4 bytes a sample.
class Order {
 public:
  Order(int64_t samples, bool shuffle) : samples_(samples), random_(shuffle ? draw_seed() : 0) {
    if (!shuffle) return;
    memory_ = Segment(Bytes{samples * 4}, "data/shuffle");
    std::iota(index(), index() + samples, 0u);
  }
  void next_pass() {
    if (!memory_) return;
    for (int64_t i = samples_ - 1; i > 0; --i) std::swap(index()[i], index()[random_.below(uint64_t(i + 1))]);
  }
  Rows rows(int64_t first, int64_t count) const { return {memory_ ? index() + first : nullptr, first, count}; }

 private:
  uint32_t* index() const { return reinterpret_cast<uint32_t*>(memory_.data()); }
  int64_t samples_;
  Random random_;
  Segment memory_;
};

void check(const FitOptions& o) {
  const auto at_least = [](const char* name, int64_t v, int64_t least) {
    if (v < least) throw Error(Code::kUsage, format("fit: {} is {}, but must be at least {}", name, v, least));
  };
  at_least("batch_size", o.batch_size, 1);
  at_least("epochs", o.epochs, 0);
  at_least("initial_epoch", o.initial_epoch, 0);
  at_least("steps_per_epoch", o.steps_per_epoch, 0);
  at_least("validation_steps", o.validation_steps, 0);
  at_least("validation_batch_size", o.validation_batch_size, 0);
  at_least("validation_freq", o.validation_freq, 1);
  if (!(o.validation_split >= 0 && o.validation_split < 1))
    throw Error(Code::kUsage,
                format("fit: validation_split is {}, but must be at least 0 and less than 1", o.validation_split));
}

// One call of fit. The members are what the loop over steps needs, in one place.
//
// There are two ways to get a batch. Arrays in memory have their order in an index of 4 bytes a sample and are gathered
// in the step's own thread: some hundred nanoseconds for a batch of 32, where the smallest model's whole step takes ten
// microseconds, and handing a batch over between threads alone would cost several. Everything else is a Dataset.
class Fit {
 public:
  Fit(const Use& use, Stream& stream, const FitOptions& o)
      : use_(use),
        model_(use.model()),
        o_(o),
        threads_(threads_or_all(o.threads)),
        stream_(&stream),
        progress_(o.verbose) {
    split();
    batch_ = last_batch_ = stream.batch();
    batches_ = stream.cardinality();
    steps_ = o.steps_per_epoch > 0 ? o.steps_per_epoch : std::max<int64_t>(0, batches_);
    validation_batch_ = o.validation_batch_size > 0 ? o.validation_batch_size : o.batch_size;
    model_.validation = validation_ ? &*validation_ : nullptr;
    data_.shapes = stream.shapes();
    if (const DatasetIterator& it = stream.iterator(); !it.running().own_budget())
      progress_.note(format("data budget {}, a tenth of the free memory", it.budget()).c_str());
  }
  Fit(const Use& use, const Data& all, const FitOptions& o)
      : use_(use), model_(use.model()), o_(o), threads_(threads_or_all(o.threads)), data_(all), progress_(o.verbose) {
    split();
    batch_ = std::min(o.batch_size, data_.samples);
    if (o.batch_size > data_.samples)
      note(format("note: batch_size {} is larger than the data; each epoch is one batch of {} samples", o.batch_size,
                  data_.samples));
    batches_ = (data_.samples + batch_ - 1) / batch_;
    steps_ = o.steps_per_epoch > 0 ? o.steps_per_epoch : batches_;
    last_batch_ = data_.samples - (batches_ - 1) * batch_;
    validation_batch_ = o.validation_batch_size > 0 ? o.validation_batch_size : o.batch_size;
    model_.training = &data_;
    model_.validation = validation_ ? &*validation_ : nullptr;
  }
  ~Fit() { model_.training = outer_training_, model_.validation = outer_validation_; }
  Fit(const Fit&) = delete;
  Fit& operator=(const Fit&) = delete;

  History run(Model& handle) {
    prepare();
    const Hooks hooks(o_.callbacks, &handle,
                      {.epochs = o_.epochs, .steps = steps_, .batch_size = batch_, .verbose = o_.verbose});
    std::optional<Order> order;
    if (!stream_) order.emplace(data_.samples, o_.shuffle);
    const Interrupt interrupt;
    model_.stop = model_.interrupted = false;
    history_.epoch.reserve(size_t(o_.epochs));
    history_.seconds.reserve(size_t(o_.epochs));
    history_.train_seconds.reserve(size_t(o_.epochs));
    history_.resident.reserve(size_t(o_.epochs));
    hooks.each([](Callback& c) { c.on_train_begin({}); });
    const Threads threads(*this);
    for (int epoch = o_.initial_epoch; epoch < o_.epochs && !model_.stop && !history_.interrupted; ++epoch) {
      const auto start = Clock::now();
      refresh();
      hooks.each([&](Callback& c) { c.on_epoch_begin(epoch, {}); });
      refresh();
      means_->reset();
      lease_->ask_again();
      progress_.begin(epoch, o_.epochs, steps_);
      const auto steps_start = Clock::now();
      const int64_t taken = stream_ ? train_stream(epoch, hooks, interrupt) : train(*order, hooks, interrupt);
      history_.train_seconds.push_back(since(steps_start));
      history_.steps += taken;
      if (lease_->refused()) ++epochs_alone_;
      history_.interrupted = model_.interrupted = interrupt.asked();
      means_->read(entries_);
      const size_t shown = validate(epoch, interrupt);
      const Logs logs = first_entries(shown);
      progress_.end(taken, logs);
      record(epoch, logs);
      hooks.each([&](Callback& c) { c.on_epoch_end(epoch, logs); });
      history_.seconds.push_back(since(start));
      history_.resident.push_back(resident().value_or(Bytes{}));
      if (taken == 0) break;
    }
    hooks.each([&](Callback& c) { c.on_train_end(first_entries(means_->size())); });
    history_.memory = memory();
    if (stream_) report();
    if (epochs_alone_ > 0)
      note(
          format("note: other runs of this process had its processors: {} of {} epochs ran in one thread, not in {}; "
                 "the numbers are the same",
                 epochs_alone_, history_.epoch.size(), threads_));
    if (history_.interrupted)
      note(format("interrupted: {} steps taken; the weights are those after the last of them", history_.steps));
    return std::move(history_);
  }

 private:
  Logs first_entries(size_t n) const { return Logs({entries_.data(), n}); }
  void note(std::string text) {
    progress_.note(text.c_str());
    history_.notes.push_back(std::move(text));
  }

  // The threads of this training, from its first epoch to its last.
  struct Threads {
    explicit Threads(Fit& fit) : fit_(fit) { fit.lease_.emplace(fit.threads_, fit.shares()); }
    ~Threads() { fit_.lease_.reset(); }
    Fit& fit_;
  };
  // Is there anything in a step that threads share?
  bool shares() const {
    int64_t staged = 0;
    for (const Feed& f : full_->feeds) staged += f.type.bytes().value;
    return full_->program.shared() || last_->program.shared() || staged >= kStagedTogether;
  }

  void split() {
    if (o_.validation) {
      if (o_.validation_data) throw Error(Code::kUsage, "fit: both validation and validation_data are given");
      if (o_.validation->cardinality() == INFINITE && o_.validation_steps == 0)
        throw Error(Code::kUsage, "fit: the validation dataset has no end").hint("give validation_steps");
      validation_stream_ = std::make_unique<Stream>(model_, *o_.validation, true, "fit: validation", 0);
    } else if (o_.validation_data) {
      validation_ = check_data(model_, o_.validation_data.x, o_.validation_data.y, true, "fit: validation_data");
    } else if (o_.validation_split > 0) {
      if (stream_)
        throw Error(Code::kUsage, "fit: validation_split needs arrays")
            .hint("give a part of the dataset as validation: data.take(n) and data.skip(n)");
      const auto at = int64_t(std::floor(double(data_.samples) * (1 - o_.validation_split)));
      if (at == 0 || at == data_.samples)
        throw Error(Code::kValue, format("fit: validation_split {} of {} samples leaves {} to train and {} to validate",
                                         o_.validation_split, data_.samples, at, data_.samples - at));
      validation_ = rows_of(data_, at, data_.samples);
      data_ = rows_of(data_, 0, at);
    }
  }

  // Makes every program that this training will run, so that nothing is made, and nothing refused, once it has begun.
  void prepare() {
    refresh();
    means_.emplace(*full_);
    for (const Scalar& s : full_->scalars) names_.push_back(s.name);
    if (const passes::Recomputed* r = recomputed(full_->program.lowered()); r && !r->reached())
      note(format(
          "note: the memory target {} is not reached; training takes {} more, the least that making values again "
          "has come to",
          model_.compiled->memory_target, r->after - r->target));
    const size_t own = names_.size();
    if (validation_ || validation_stream_)
      for (size_t i = 0; i < own; ++i) names_.push_back("val_" + names_[i]);
    for (const std::string& n : names_) entries_.push_back({n, 0});
    if (validation_) {
      const int64_t batch = std::min(validation_batch_, validation_->samples), rest = validation_->samples % batch;
      use_.program(Kind::kEvaluate, batch, threads_, validation_->shapes);
      if (rest && o_.validation_steps == 0) use_.program(Kind::kEvaluate, rest, threads_, validation_->shapes);
    }
    if (validation_stream_)
      use_.program(Kind::kEvaluate, validation_stream_->batch(), threads_, validation_stream_->shapes());
  }

  // Weights that a callback has read stay for it what they were.
  void keep_what_was_read() {
    if (runtime::Variable::reads() == reads_) return;
    reads_ = runtime::Variable::reads();
    for (const nn::Weight& w : model_.weights()) w->variable.changing();
  }

  // Programs may have gone or moved when somebody else's code has run.
  void refresh() {
    if (full_ && use_.programs().uses() == seen_) return;
    if (stream_) return take(last_batch_, data_.shapes);
    full_ = &use_.program(Kind::kTrain, batch_, threads_, data_.shapes);
    last_ = last_batch_ == batch_ ? full_ : &use_.program(Kind::kTrain, last_batch_, threads_, data_.shapes);
    seen_ = use_.programs().uses();
    connect(*full_, data_, o_.check_inputs);
    if (last_ != full_) connect(*last_, data_, o_.check_inputs);
  }

  // From a dataset there is one program at hand, that of the last batch: sizes and shapes come as they come.
  void take(int64_t samples, const SampleShapes& shapes) {
    last_batch_ = samples;
    if (&shapes != &data_.shapes) data_.shapes = shapes;
    full_ = last_ = &use_.program(Kind::kTrain, samples, threads_, shapes);
    seen_ = use_.programs().uses();
  }
  Ready& ready_for(int64_t samples) {
    if (!full_->is_for(samples, stream_->shapes())) take(samples, stream_->shapes());
    return *full_;
  }

  // The same from a dataset. Without steps_per_epoch an epoch ends with the data; the next one is begun as soon as that
  // is known, so that queues fill meanwhile.
  [[gnu::noinline]] int64_t train_stream(int epoch, const Hooks& hooks, const Interrupt& interrupt) {
    constexpr uint8_t kBoth = Callback::kTrainBegin | Callback::kTrainEnd;
    bool watched = hooks.wants(kBoth);
    const double waited = stream_->iterator().seconds_waited();
    Team& team = **lease_;
    int64_t step = 0;
    for (bool more = true; more && (o_.steps_per_epoch == 0 || step < o_.steps_per_epoch);) {
      const int64_t samples = stream_->advance();
      if (samples == 0) {
        if (o_.steps_per_epoch > 0 && !ran_out_) {
          note(
              format("note: the data ran out after {} batches of this epoch, fewer than steps_per_epoch {}; it begins "
                     "anew. Use repeat(), or fewer steps",
                     step, o_.steps_per_epoch));
          ran_out_ = true;
        }
        if (epoch + 1 < o_.epochs) stream_->rewind(epoch + 1);
        break;
      }
      Ready& r = ready_for(samples);
      if (watched) hooks.batch(Callback::kTrainBegin, [&](Callback& c) { c.on_train_batch_begin(step, {}); });
      stream_->stage(team, r, o_.check_inputs);
      keep_what_was_read();
      means_->run(r, team);
      ++step;
      if (watched) {
        means_->read(entries_);
        hooks.batch(Callback::kTrainEnd,
                    [&](Callback& c) { c.on_train_batch_end(step - 1, first_entries(means_->size())); });
        watched = hooks.wants(kBoth);
        refresh();
        more = !model_.stop;
      }
      if (progress_.due(step)) {
        means_->read(entries_);
        progress_.draw(step, first_entries(means_->size()));
      }
      more = more && !interrupt.asked();
    }
    history_.data.seconds_waited += stream_->iterator().seconds_waited() - waited;
    return step;
  }

  // What share of the time was spent on waiting for batches, and who is to blame.
  void report() {
    const DatasetIterator& it = stream_->iterator();
    double all = 0;
    for (const double s : history_.train_seconds) all += s;
    DataReport& d = history_.data;
    d.share = all > 0 ? d.seconds_waited / all : 0;
    d.slowest = it.waited_on();
    d.budget = it.budget().value;
    d.peak = it.peak().value;
    d.table = it.explain();
    for (const data::Stage* stage : it.running().pool().stages())
      if (const int64_t most = stage->peak.load(); most > 0) d.accounts.emplace_back(stage->holding.account(), most);
    if (const int64_t dropped = use_.programs().dropped() - dropped_before_; dropped > 0)
      note(
          format("note: batches came in more shapes than a model keeps programs for ({}, {}): {} went to make room for "
                 "others. Bring samples to fewer lengths",
                 Programs::kMost, Programs::kMostBytes, dropped));
    if (d.share > 0.1 && d.seconds_waited > 0.05)
      note(format("note: training waited for data {:.0f} % of the time; the slowest stage is {}", 100 * d.share,
                  d.slowest));
  }

  // The steps of one epoch; returns how many were taken.
  int64_t train(Order& order, const Hooks& hooks, const Interrupt& interrupt) {
    constexpr uint8_t kBoth = Callback::kTrainBegin | Callback::kTrainEnd;
    bool watched = hooks.wants(kBoth);
    Team& team = **lease_;
    int64_t step = 0;
    for (; step < steps_; ++step) {
      if (at_ == 0) order.next_pass();
      Ready& r = at_ + batch_ <= data_.samples ? *full_ : *last_;
      if (watched) hooks.batch(Callback::kTrainBegin, [&](Callback& c) { c.on_train_batch_begin(step, {}); });
      stage_batch(team, r, data_, order.rows(at_, r.key.batch));
      keep_what_was_read();
      means_->run(r, team);
      at_ += r.key.batch;
      if (at_ >= data_.samples) at_ = 0;
      if (watched) {
        means_->read(entries_);
        hooks.batch(Callback::kTrainEnd,
                    [&](Callback& c) { c.on_train_batch_end(step, first_entries(means_->size())); });
        watched = hooks.wants(kBoth);
        refresh();
        if (model_.stop) return step + 1;
      }
      if (progress_.due(step + 1)) {
        means_->read(entries_);
        progress_.draw(step + 1, first_entries(means_->size()));
      }
      if (interrupt.asked()) return step + 1;
      if (at_ == 0 && step + 1 < steps_) {  // as Keras: an epoch ends with the data, and the next one begins anew
        if (o_.steps_per_epoch > 0 && !ran_out_)
          note(format("note: the data has {} batches, fewer than steps_per_epoch {}; epochs end with the data",
                      batches_, o_.steps_per_epoch));
        ran_out_ = true;
        return step + 1;
      }
    }
    return step;
  }

  // Adds val_ values to the entries; returns how many entries there are.
  size_t validate(int epoch, const Interrupt& interrupt) {
    if ((!validation_ && !validation_stream_) || interrupt.asked() || (epoch + 1) % o_.validation_freq != 0)
      return means_->size();
    const EvaluateJob job{validation_batch_, o_.validation_steps, threads_, o_.check_inputs, o_.callbacks};
    const Results r = validation_stream_ ? evaluate(use_, **lease_, *validation_stream_, job)
                                         : evaluate(use_, **lease_, *validation_, job);
    if (validation_stream_) validation_stream_->rewind(0);
    for (size_t i = 0; i < r.size(); ++i) entries_[means_->size() + i].value = r[i].second;
    return means_->size() + r.size();
  }

  void record(int epoch, const Logs& logs) {
    history_.epoch.push_back(epoch);
    for (const Logs::Entry& e : logs) {
      auto it = std::ranges::find(history_.history, e.name, [](const auto& h) { return std::string_view(h.first); });
      if (it == history_.history.end()) {
        it = history_.history.insert(it, {std::string(e.name), {}});
        it->second.reserve(size_t(o_.epochs));  // so that an epoch takes no memory either
      }
      it->second.push_back(e.value);
    }
  }

  static constexpr int64_t kStagedTogether = 256 << 10;  // bytes of a batch that several threads stage

  const Use& use_;
  ModelImpl& model_;
  const Data* const outer_training_ = model_.training;  // of a fit whose callback calls this one
  const Data* const outer_validation_ = model_.validation;
  const FitOptions& o_;
  int threads_;
  std::optional<TeamLease> lease_;
  int epochs_alone_ = 0;      // for which helpers were refused
  Stream* stream_ = nullptr;  // borrowed; null: from data_
  Data data_;
  std::optional<Data> validation_;
  std::unique_ptr<Stream> validation_stream_;
  Progress progress_;
  int64_t batch_ = 0, batches_ = 0, steps_ = 0, last_batch_ = 0, validation_batch_ = 0;
  int64_t at_ = 0;  // the first sample, in the order, of the next batch
  bool ran_out_ = false;
  const int64_t dropped_before_ = use_.programs().dropped();
  Ready *full_ = nullptr, *last_ = nullptr;
  uint64_t seen_ = 0;   // uses of the model's programs when full_ and last_ were looked up
  uint64_t reads_ = 0;  // runtime::Variable::reads() when weights were last told
  std::optional<Means> means_;
  std::vector<std::string> names_;
  std::vector<Logs::Entry> entries_;
  History history_;
};

}  // namespace
}  // namespace train

History Model::fit(const Arrays& x, const Arrays& y, const FitOptions& options) {
  train::check(options);
  const train::Use use(*impl_, "fit", train::Use::How::kTrain);
  eager::trim_eager();
  const train::Data data = train::check_data(*impl_, x, y, true, "fit");
  impl_->needs_compile("fit");
  return train::Fit(use, data, options).run(*this);
}

History Model::fit(const Dataset& data, const FitOptions& options) {
  train::check(options);
  if (options.steps_per_epoch == 0 && data.cardinality() == INFINITE)
    throw Error(Code::kUsage, "fit: the dataset has no end").hint("give steps_per_epoch");
  const train::Use use(*impl_, "fit", train::Use::How::kTrain);
  eager::trim_eager();
  train::Stream stream(*impl_, data, true, "fit", options.initial_epoch);
  impl_->needs_compile("fit");
  return train::Fit(use, stream, options).run(*this);
}

Results Model::train_on_batch(const Arrays& x, const Arrays& y) {
  const train::Use use(*impl_, "train_on_batch", train::Use::How::kTrain);
  const train::Data data = train::check_data(*impl_, x, y, true, "train_on_batch");
  impl_->needs_compile("train_on_batch");
  const int threads = usable_threads();
  train::Ready& r = use.program(train::Kind::kTrain, data.samples, threads, data.shapes);
  train::connect(r, data, true);
  const TeamLease lease(threads, r.program.shared());
  train::stage_batch(*lease, r, data, {nullptr, 0, data.samples});
  train::Means means(r);
  means.run(r, *lease);
  std::vector<Logs::Entry> entries(means.size());
  means.read(entries);
  Results results;
  for (size_t i = 0; i < entries.size(); ++i) results.emplace_back(r.scalars[i].name, entries[i].value);
  return results;
}

}  // namespace millpond
