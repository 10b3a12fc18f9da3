// millpond plan MODEL: every byte that training would take, without taking it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/format.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/numbers.h"
#include "cli/report.h"

namespace millpond::cli {
namespace {

struct PlanArguments {
  ModelChoice choice;
  int64_t batch = 0;
  int threads = 0;
  bool by_layer = false, print_passes = false, no_passes = false;
  std::vector<std::string> shapes;
  JsonTarget json;
};

Json to_json(const MemoryPlan& p) {
  Json layers = Json::array(), programs = Json::array(), accounts = Json::object(), target = nullptr;
  for (const MemoryPlan::Layer& l : p.layers) layers.push_back(cli::to_json(l));
  for (const MemoryPlan::Program& q : p.programs)
    programs.push_back({{"name", q.name},
                        {"batch", q.batch},
                        {"samples", q.samples.empty() ? Json(nullptr) : Json(q.samples)},
                        {"arena_bytes", q.arena.value},
                        {"lower_bound_bytes", q.lower_bound.value},
                        {"calls", q.calls},
                        {"slow_kernels", q.slow_kernels},
                        {"plan_seconds", q.seconds}});
  for (const auto& [name, bytes] : p.accounts) accounts[name] = bytes.value;
  if (p.memory_target.value > 0) {
    Json again = Json::array();
    for (const MemoryPlan::Recomputed& r : p.recomputed)
      again.push_back({{"layer", r.layer}, {"operator", r.op}, {"bytes", r.bytes.value}, {"flops", r.flops}});
    target = {{"bytes", p.memory_target.value}, {"reached", p.target_reached}, {"arena_kept_bytes", p.arena_kept.value},
              {"more_flops", p.more_flops},     {"more_moved", p.more_moved},  {"recomputed", again}};
  }
  return {{"model", p.model},
          {"optimizer", p.optimizer},
          {"batch", p.batch},
          {"threads", p.threads},
          {"planned_bytes", p.total.value},
          {"lower_bound_bytes", (p.total - p.arena + p.lower_bound).value},
          {"gap", p.gap},
          {"plan_seconds", p.seconds},
          {"weights_bytes", p.weights.value},
          {"slots_bytes", p.slots.value},
          {"metrics_bytes", p.metrics.value},
          {"arena_bytes", p.arena.value},
          {"gradients_bytes", p.gradients.value},
          {"activations_bytes", p.activations.value},
          {"workspace_bytes", p.workspace.value},
          {"staging_bytes", p.staging.value},
          {"constants_bytes", p.constants.value},
          {"padding_bytes", p.padding.value},
          {"peak_call", p.peak_call},
          {"calls", p.calls},
          {"peak_layer", p.peak_layer},
          {"peak_operator", p.peak_operator},
          {"memory_target", target},
          {"memory_free_bytes", p.memory_free.value},
          {"largest_batch", p.largest_batch < 0 ? Json(nullptr) : Json(p.largest_batch)},
          {"programs", programs},
          {"layers", layers},
          {"accounts", accounts}};
}

int run_plan(const PlanArguments& a) {
  const OpenedModel opened = open_model(a.choice, true);
  const PlanOptions options{.batch = a.batch          ? a.batch
                                     : opened.builtin ? opened.builtin->batch
                                                      : 32,
                            .inputs = parse_shapes(a.shapes),
                            .threads = a.threads};
  const MemoryPlan plan = opened.model.plan(options);
  std::optional<MemoryPlan> without;
  if (a.no_passes) {
    PlanOptions off = options;
    off.passes = off.largest_batch = false;
    without = opened.model.plan(off);
  }
  if (!a.json.on_stdout()) {
    if (a.print_passes) std::printf("%s\n", opened.model.print_passes(options).c_str());
    std::printf("%s", plan.table(a.by_layer).c_str());
    if (!opened.note.empty()) std::printf("note: %s\n", opened.note.c_str());
    if (without)
      std::printf("\nThe same graph with passes off:\n\n%s\nThe passes take %s off, %.1f %%.\n",
                  without->table(a.by_layer).c_str(), to_string(without->total - plan.total).c_str(),
                  100 * double((without->total - plan.total).value) / double(without->total.value));
  }
  if (a.json.wanted()) {
    Json object = to_json(plan);
    if (without) object["without_passes"] = to_json(*without);
    if (!opened.note.empty()) object["note"] = opened.note;
    a.json.write(object);
  }
  return kOk;
}

}  // namespace

static void add_plan(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("plan", "Tell the memory of training before it begins");
  auto a = std::make_shared<PlanArguments>();
  sub->add_option("MODEL", a->choice.model, "A built-in, or a file with the JSON of Keras's model.to_json()")
      ->required();
  sub->add_option("--batch", a->batch, "Samples in a step (default: the built-in's own, otherwise 32)")
      ->check(at_least(1));
  sub->add_option("--shape", a->shapes, kShapeHelp)->option_text("N,N,...");
  sub->add_option("--optimizer", a->choice.optimizer, optimizer_help());
  sub->add_option("--loss", a->choice.loss, kLossHelp);
  sub->add_option("--memory-target", a->choice.memory_target, kMemoryTargetHelp)->option_text("BYTES");
  sub->add_option("--threads", a->threads, "Threads of a step (default: all this process may use)")->check(at_least(0));
  sub->add_flag("--by-layer", a->by_layer, "A line for each layer");
  sub->add_flag("--print-passes", a->print_passes, "The operators of the step after each pass");
  sub->add_flag("--no-passes", a->no_passes, "The plan of the graph as written beside it");
  sub->add_option("--json", a->json.where, "Write a JSON object to a file, or with - to standard output")
      ->option_text("FILE|-");
  sub->footer(R"(
Examples:
  millpond plan cnn_224 --batch 32
  millpond plan resnet50 --batch 8 --by-layer --no-passes
  millpond plan resnet50 --batch 8 --memory-target 400MiB
  millpond plan model.json --batch 64 --optimizer adam --json plan.json
  millpond plan words.json --batch 64 --shape 100)");
  sub->callback([&chosen, a] { chosen.run = [a] { return run_plan(*a); }; });
}
constinit const Command commands::plan{20, add_plan};

}  // namespace millpond::cli
