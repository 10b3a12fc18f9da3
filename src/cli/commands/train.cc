// millpond train MODEL: fit, with the memory told before and measured after.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/format.h"
#include "base/team.h"
#include "cli/command.h"
#include "cli/live.h"
#include "cli/measure.h"
#include "cli/memory.h"
#include "cli/models.h"
#include "cli/numbers.h"
#include "cli/report.h"
#include "cli/self.h"
#include "io/atomic_file.h"
#include "millpond/millpond.h"
#include "train/interrupt.h"
#include "watch/collector.h"

namespace millpond::cli {
namespace {

constexpr int64_t kStepsOfSynthetic = 16;  // in an epoch of a model that is not built in

struct TrainArguments {
  ModelChoice choice;
  std::vector<std::string> data, validation, shapes;
  bool synthetic = false, count = false, live = false;
  int epochs = 0;
  int64_t steps_per_epoch = 0, batch = 0;
  int threads = 0;
  uint64_t seed = 0;
  std::string save, run, data_budget, weights;
  bool explain_data = false;
  JsonTarget json;
};

double median(std::vector<double> v) {
  std::ranges::sort(v);
  const size_t half = v.size() / 2;
  return v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2;
}

Json number(std::optional<double> v) { return v && std::isfinite(*v) ? Json(*v) : Json(nullptr); }

struct Outcome {
  MemoryPlan plan;
  History history;
  const Measure& measure;
  Bytes touched, rss_peak;
  ledger::Explanation explanation;
  ledger::Growth growth;
};

// Time of an epoch and its steps; those after the first only: the first also pays for the first touch of every page.
std::vector<double> us_per_step(const Outcome& o) {
  std::vector<double> us;
  const std::vector<double>& seconds = o.measure.epoch_seconds;
  const double steps = seconds.empty() ? 0 : double(o.history.steps) / double(seconds.size());
  for (size_t i = 1; i < seconds.size() && steps > 0; ++i) us.push_back(1e6 * seconds[i] / steps);
  return us;
}

Json to_json(const Outcome& o, const OpenedModel& opened, const TrainArguments& a) {
  Json rss = Json::array(), loss = Json::array(), named = Json::object();
  for (Bytes b : o.measure.rss_per_epoch) rss.push_back(b.value);
  if (o.history.has("loss"))
    for (double v : o.history["loss"]) loss.push_back(number(v));
  for (const auto& [name, bytes] : accounts(o.plan, o.explanation)) named[name] = bytes.value;
  const std::vector<double> us = us_per_step(o);
  const auto allocations = o.measure.allocations();
  for (const auto& [name, bytes] : o.history.data.accounts) named[name] = bytes;
  Json last = Json::object();
  for (const auto& [name, values] : o.history.history)
    last[name] = values.empty() ? Json(nullptr) : number(values.back());
  Json data = nullptr;
  if (o.history.data.budget)
    data = {{"budget", o.history.data.budget},
            {"peak", o.history.data.peak},
            {"waited_share", o.history.data.share},
            {"waited_s", o.history.data.seconds_waited},
            {"slowest", o.history.data.slowest}};
  return {{"model", opened.model.name()},
          {"optimizer", o.plan.optimizer},
          {"loss", opened.loss},
          {"batch", o.plan.batch},
          {"threads", o.plan.threads},
          {"seed", a.seed},
          {"epochs", o.measure.epoch_seconds.size()},
          {"steps", o.history.steps},
          {"interrupted", o.history.interrupted},
          {"us_per_step", us.empty() ? Json(nullptr) : Json(median(us))},
          {"us_per_step_min", us.empty() ? Json(nullptr) : Json(*std::ranges::min_element(us))},
          {"first_epoch_s", o.measure.epoch_seconds.empty() ? Json(nullptr) : Json(o.measure.first_epoch_s)},
          {"planned_bytes", o.plan.total.value},
          {"lower_bound_bytes", (o.plan.total - o.plan.arena + o.plan.lower_bound).value},
          {"touched_bytes", o.touched.value},
          {"rss_start", o.measure.rss_start.value},
          {"rss_peak", o.rss_peak.value},
          {"rss_per_epoch", rss},
          {"allocations_per_step", allocations ? Json(allocations->calls_per_step) : Json(nullptr)},
          {"library_churn_per_step", allocations ? Json(allocations->balanced_per_step) : Json(nullptr)},
          {"explained_share", o.explanation.share()},
          {"explained_growth_share", number(o.growth.share)},
          {"loss_per_epoch", loss},
          {"last_epoch", last},
          {"data", data},
          {"accounts", named}};
}

void print_closing(const Outcome& o) {
  const Bytes rose = o.rss_peak - o.measure.rss_start;
  std::printf("planned %s, touched %s, resident rose by %s; %s\n", to_string(o.plan.total).c_str(),
              to_string(o.touched).c_str(), to_string(rose).c_str(), to_string(o.explanation).c_str());
  if (const DataReport& d = o.history.data; d.budget)
    std::printf("data: budget %s, held at most %s; training waited %.1f %% of the time, the slowest stage is %s\n",
                to_string(Bytes{d.budget}).c_str(), to_string(Bytes{d.peak}).c_str(), 100 * d.share, d.slowest.c_str());
  if (const auto allocations = o.measure.allocations())
    std::printf("%g allocations a step after the first epoch\n", allocations->calls_per_step);
}

// kill ends the training as Ctrl-C does, so that --save has something to write, and then the program as it would have
// at once.
volatile std::sig_atomic_t terminated = 0;
class Termination {
 public:
  Termination() {
    struct sigaction ours{};
    ours.sa_handler = [](int) {
      terminated = 1;
      train::Interrupt::ask();
    };
    ours.sa_flags = int(SA_RESETHAND);
    sigemptyset(&ours.sa_mask);
    sigaction(SIGTERM, &ours, &before_);
  }
  ~Termination() { sigaction(SIGTERM, &before_, nullptr); }
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

 private:
  struct sigaction before_{};
};

int run_train(const TrainArguments& a, char** argv) {
  if (a.count) restart_counting(argv);
  if (a.data.empty() && !a.synthetic)
    throw Error(Code::kUsage, "there is nothing to train on")
        .hint("give --data X.npy Y.npy, or --synthetic for made-up data");
  if (!a.save.empty()) {
    const io::AtomicFile possible(a.save);  // which throws now what it would throw after hours of training
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to be told, not an end
  settle(a.threads > 0 ? a.threads : usable_threads());
  set_random_seed(a.seed);
  OpenedModel opened = open_model(a.choice);
  const Builtin* b = opened.builtin;
  const int64_t batch = a.batch ? a.batch : b ? b->batch : 32;
  const int epochs = a.epochs ? a.epochs : b && a.synthetic ? b->epochs : 1;
  const ModelData data =
      a.synthetic ? synthetic(opened, b ? b->samples : kStepsOfSynthetic * batch, a.seed, parse_shapes(a.shapes))
      : !a.data_budget.empty() ? stream_data(opened, a.data, {.budget = a.data_budget, .batch = batch, .shuffle = true})
                               : read_data(opened, a.data);

  if (!a.weights.empty()) opened.model.load_weights(a.weights);
  ValidationData validation;
  if (!a.validation.empty()) {
    const ModelData files = read_data(opened, a.validation);
    validation = {files.x, files.y};
  }

  const bool quiet = a.json.on_stdout();
  const MemoryPlan plan = opened.model.plan({.batch = std::min(batch, data.samples()),
                                             .inputs = open_shapes(opened, data),
                                             .threads = a.threads,
                                             .evaluate = false,
                                             .largest_batch = !quiet});
  if (!quiet) {
    std::printf("%s\n", plan.table().c_str());
  }

  Measure measure(epochs);
  std::vector<CallbackRef> callbacks{measure};
  std::optional<RunRecord> record;
  const std::string run_file = a.run.empty() && a.live ? watch::free_name() : a.run;
  if (!run_file.empty()) callbacks.emplace_back(record.emplace(run_file));
  std::optional<Live> live;
  if (a.live) live.emplace(run_file);
  const ledger::Explanation before =
      ledger::explain(charged(opened.model, data), ledger::observe(charged(opened.model, data)));
  if (!quiet) {  // the last line before memory is taken: whoever watches from outside takes it for the start
    std::printf("%lld samples, batch %lld, %d epoch%s; training begins at %s resident\n",
                static_cast<long long>(data.samples()), static_cast<long long>(batch), epochs, epochs == 1 ? "" : "s",
                to_string(resident_now()).c_str());
    std::fflush(stdout);
    if (const char* wait = std::getenv("MILLPOND_WAIT_MS"))
      usleep(useconds_t(std::clamp(std::atoi(wait), 0, 10000)) * 1000);  // for that look
  }
  measure.rss_start = resident_now();
  const FitOptions fit{.batch_size = batch,
                       .epochs = epochs,
                       .verbose = quiet                   ? 0
                                  : isatty(STDOUT_FILENO) ? 1
                                                          : 2,
                       .callbacks = callbacks,
                       .validation_data = validation,
                       .steps_per_epoch = a.steps_per_epoch,
                       .threads = a.threads};
  std::optional<Termination> termination;
  termination.emplace();
  History history = data.dataset ? opened.model.fit(*data.dataset, fit) : opened.model.fit(data.x, data.y, fit);
  if (live) live->finish();
  const ledger::Snapshot now = charged(opened.model, data);
  Outcome o{.plan = plan,
            .history = std::move(history),
            .measure = measure,
            .touched = touched(opened.model),
            .rss_peak = std::max({resident_peak(), measure.rss_start, resident_now()}),
            .explanation = ledger::explain(now, ledger::observe(now)),
            .growth = {}};
  o.growth = ledger::growth(before, o.explanation);
  if (!a.save.empty()) opened.model.save_weights(a.save);
  termination.reset();
  if (!quiet) {
    print_closing(o);
    if (a.explain_data && o.history.data.budget) std::fputs(o.history.data.table.c_str(), stdout);
    if (!a.save.empty()) std::printf("weights are in %s\n", a.save.c_str());
    if (record) std::printf("the run is recorded in %s\n", run_file.c_str());
  }
  if (a.json.wanted()) a.json.write(to_json(o, opened, a));
  if (terminated) {
    std::fflush(nullptr);
    std::raise(SIGTERM);
  }
  return o.history.interrupted ? kInterruptedByUser : kOk;
}

}  // namespace

static void add_train(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("train", "Train a model, its memory told before and measured after");
  auto a = std::make_shared<TrainArguments>();
  sub->add_option("MODEL", a->choice.model, "A built-in, or a file with the JSON of Keras's model.to_json()")
      ->required();
  auto* data =
      sub->add_option("--data", a->data, "x.npy and y.npy (for several inputs or outputs: all of x, then all of y)")
          ->expected(2, 64);
  auto* budget =
      sub->add_option(
             "--data-budget", a->data_budget,
             "Read rows of the .npy files when they are wanted, with at most so much memory for it, for example 64MiB")
          ->needs(data)
          ->option_text("BYTES");
  sub->add_flag("--explain-data", a->explain_data, "Tell what each stage of the data pipeline did and held")
      ->needs(budget);
  auto* made_up = sub->add_flag("--synthetic", a->synthetic, "Made-up data: uniform values and labels, from --seed")
                      ->excludes(data);
  sub->add_option("--shape", a->shapes, kShapeHelp)->needs(made_up)->option_text("N,N,...");
  sub->add_option("--epochs", a->epochs,
                  "How often to go over the data (default 1; with --synthetic the built-in's own)")
      ->check(at_least(1));
  sub->add_option("--steps-per-epoch", a->steps_per_epoch,
                  "End an epoch after so many steps; the next goes on from there")
      ->check(at_least(1));
  sub->add_option("--batch", a->batch, "Samples in a step (default: the built-in's own, otherwise 32)")
      ->check(at_least(1));
  sub->add_option("--validation", a->validation,
                  "x.npy and y.npy, as --data: loss and metrics on them after each epoch, as val_loss, ...")
      ->expected(2, 64);
  sub->add_option("--weights", a->weights, "Begin with these weights, a .weights.h5 file, Keras's or ours")
      ->option_text("F.weights.h5");
  sub->add_option("--learning-rate", a->choice.learning_rate,
                  "Of the optimizer (default: the built-in's or the file's, otherwise Keras's)");
  sub->add_option("--optimizer", a->choice.optimizer, optimizer_help());
  sub->add_option("--loss", a->choice.loss, kLossHelp);
  sub->add_option("--memory-target", a->choice.memory_target, kMemoryTargetHelp)->option_text("BYTES");
  sub->add_option("--threads", a->threads, "Threads of a step (default: all this process may use)")->check(at_least(0));
  sub->add_option("--seed", a->seed, "Of first weights, dropout, shuffling and synthetic data")->capture_default_str();
  sub->add_option("--save", a->save, "Write the weights afterwards, as Keras's .weights.h5")
      ->option_text("F.weights.h5");
  sub->add_option("--run", a->run, "Record the run in a SQLite file: accounts, phases, series, plan")
      ->option_text("R.pond");
  sub->add_flag("--live", a->live,
                "Serve the page while training goes on, at an address of this machine that is told on standard error");
  sub->add_flag("--count-allocations", a->count,
                "Start again under the counting library and tell the allocations of a step");
  sub->add_option("--json", a->json.where, "Write a JSON object to a file, or with - to standard output")
      ->option_text("FILE|-");
  sub->footer(R"(
Examples:
  millpond train cnn_224 --synthetic --epochs 3 --steps-per-epoch 6
  millpond train mlp_784 --data x.npy y.npy --epochs 10 --save digits.weights.h5
  millpond train model.json --data x.npy y.npy --loss mse --optimizer adam --run run.pond
  millpond train mlp_small --data big_x.npy big_y.npy --data-budget 64MiB --steps-per-epoch 2000 --epochs 5
  millpond train cnn_224 --synthetic --live --run run.pond
  millpond train mlp_small --synthetic --count-allocations --json -)");
  sub->callback([&chosen, a] {
    chosen.done_with_parser = true;
    chosen.run = [a, argv = chosen.argv] { return run_train(*a, argv); };
  });
}
constinit const Command commands::train{10, add_train};

}  // namespace millpond::cli
