// millpond predict MODEL: what saved weights say about data, as .npy files or as text.
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

constexpr int64_t kRowsShown = 5, kValuesShown = 10;

struct PredictArguments {
  ModelChoice choice;
  std::string weights, data_budget;
  std::vector<std::string> data, out;
  int64_t batch = 0;
  int threads = 0;
  JsonTarget json;
};

std::string row_text(const Tensor& t, int64_t row) {
  const int64_t width = t.shape()[0] ? t.size() / t.shape()[0] : 0;
  std::string text = format("{:>6} ", row);
  for (int64_t i = 0; i < std::min(width, kValuesShown); ++i) text += format(" {:.6g}", t.at(row * width + i));
  return text + (width > kValuesShown ? format(" ... ({} values)\n", width) : "\n");
}

int run_predict(const PredictArguments& a) {
  ModelChoice choice = a.choice;
  choice.trains = choice.measures = false;
  OpenedModel opened = open_model(choice, true);
  if (!a.out.empty() && a.out.size() != opened.model.outputs().size())
    throw Error(Code::kUsage, format("--out has {} files, but this model has {} outputs", a.out.size(),
                                     opened.model.outputs().size()));
  const int64_t batch = a.batch ? a.batch : opened.builtin ? opened.builtin->batch : 32;
  const ModelData data = a.data_budget.empty()
                             ? read_data(opened, a.data, false)
                             : stream_data(opened, a.data, {.budget = a.data_budget, .batch = batch}, false);
  opened.model.load_weights(a.weights);
  // Files are written as the predictions come; only what is shown is kept.
  const PredictOptions options{.batch_size = batch, .threads = a.threads, .output_files = a.out};
  const Arrays p = data.dataset ? opened.model.predict(*data.dataset, options) : opened.model.predict(data.x, options);
  Json shapes = Json::array();
  const std::vector<Shape> predicted = predicted_shapes(opened, data);
  for (size_t i = 0; i < predicted.size(); ++i) {
    const Shape& shape = predicted[i];
    shapes.push_back(std::vector<int64_t>(shape.begin(), shape.end()));
    if (a.json.on_stdout()) continue;
    std::printf("%s %s%s\n", opened.model.name().c_str(), to_string(shape).c_str(),
                a.out.empty() ? "" : (" -> " + a.out[i]).c_str());
    if (!a.out.empty()) continue;
    for (int64_t row = 0; row < std::min(shape[0], kRowsShown); ++row) std::fputs(row_text(p[i], row).c_str(), stdout);
    if (shape[0] > kRowsShown)
      std::printf("   ... %lld rows more; --out P.npy keeps them all\n", static_cast<long long>(shape[0] - kRowsShown));
  }
  a.json.write({{"model", opened.model.name()}, {"samples", data.samples()}, {"shapes", shapes}, {"files", a.out}});
  return kOk;
}

}  // namespace

static void add_predict(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("predict", "Say what saved weights predict for data");
  auto a = std::make_shared<PredictArguments>();
  sub->add_option("MODEL", a->choice.model, "A built-in, or a file with the JSON of Keras's model.to_json()")
      ->required();
  sub->add_option("--weights", a->weights, "A .weights.h5 file, Keras's or ours")->required();
  sub->add_option("--data", a->data, "x.npy (one for each input)")->required()->expected(1, 64);
  sub->add_option("--out", a->out,
                  "Where the predictions go, .npy (one for each output); without it the first rows are shown")
      ->expected(1, 64);
  sub->add_option(
         "--data-budget", a->data_budget,
         "Read rows of the .npy files when they are wanted, with at most so much memory for it, for example 64MiB")
      ->option_text("BYTES");
  sub->add_option("--batch", a->batch, "Samples in a step")->check(at_least(1));
  sub->add_option("--threads", a->threads, "Threads of a step (default: all this process may use)")->check(at_least(0));
  sub->add_option("--json", a->json.where, "Write a JSON object to a file, or with - to standard output")
      ->option_text("FILE|-");
  sub->footer(R"(
Examples:
  millpond predict mlp_784 --weights digits.weights.h5 --data x.npy
  millpond predict model.json --weights model.weights.h5 --data x.npy --out p.npy)");
  sub->callback([&chosen, a] { chosen.run = [a] { return run_predict(*a); }; });
}
constinit const Command commands::predict{40, add_predict};

}  // namespace millpond::cli
