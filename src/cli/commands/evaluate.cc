// millpond evaluate MODEL: loss and metrics of saved weights on data.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/format.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/numbers.h"
#include "cli/report.h"

namespace millpond::cli {
namespace {

struct EvaluateArguments {
  ModelChoice choice;
  std::string weights, data_budget;
  std::vector<std::string> data;
  int64_t batch = 0;
  int threads = 0;
  JsonTarget json;
};

int run_evaluate(const EvaluateArguments& a) {
  ModelChoice choice = a.choice;
  choice.trains = false;
  OpenedModel opened = open_model(choice);
  const int64_t batch = a.batch ? a.batch : opened.builtin ? opened.builtin->batch : 32;
  const ModelData data = a.data_budget.empty() ? read_data(opened, a.data)
                                               : stream_data(opened, a.data, {.budget = a.data_budget, .batch = batch});
  opened.model.load_weights(a.weights);
  const EvaluateOptions options{.batch_size = batch, .verbose = 0, .threads = a.threads};
  const Results results =
      data.dataset ? opened.model.evaluate(*data.dataset, options) : opened.model.evaluate(data.x, data.y, options);
  if (!a.json.on_stdout()) {
    std::string line = format("{} samples", data.samples());
    for (const auto& [name, value] : results) line += format("  {} {:.6g}", name, value);
    std::printf("%s\n", line.c_str());
  }
  Json object{{"model", opened.model.name()}, {"samples", data.samples()}};
  for (const auto& [name, value] : results) object[name] = value;
  a.json.write(object);
  return kOk;
}

}  // namespace

static void add_evaluate(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("evaluate", "Tell loss and metrics of saved weights on data");
  auto a = std::make_shared<EvaluateArguments>();
  sub->add_option("MODEL", a->choice.model, "A built-in, or a file with the JSON of Keras's model.to_json()")
      ->required();
  sub->add_option("--weights", a->weights, "A .weights.h5 file, Keras's or ours")->required();
  sub->add_option("--data", a->data, "x.npy and y.npy (for several inputs or outputs: all of x, then all of y)")
      ->required()
      ->expected(2, 64);
  sub->add_option(
         "--data-budget", a->data_budget,
         "Read rows of the .npy files when they are wanted, with at most so much memory for it, for example 64MiB")
      ->option_text("BYTES");
  sub->add_option("--batch", a->batch, "Samples in a step")->check(at_least(1));
  sub->add_option("--loss", a->choice.loss, kLossHelp);
  sub->add_option("--threads", a->threads, "Threads of a step (default: all this process may use)")->check(at_least(0));
  sub->add_option("--json", a->json.where, "Write a JSON object to a file, or with - to standard output")
      ->option_text("FILE|-");
  sub->footer(R"(
Examples:
  millpond evaluate mlp_784 --weights digits.weights.h5 --data x.npy y.npy
  millpond evaluate model.json --weights model.weights.h5 --data x.npy y.npy --loss mse --json -)");
  sub->callback([&chosen, a] { chosen.run = [a] { return run_evaluate(*a); }; });
}
constinit const Command commands::evaluate{30, add_evaluate};

}  // namespace millpond::cli
