#include "millpond/run_record.h"

#include <errno.h>

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "ledger/explain.h"
#include "runfile/writer.h"
#include "train/memory.h"
#include "train/places.h"

namespace millpond {
namespace {

using Clock = std::chrono::steady_clock;

runfile::Meta facts() {
  runfile::Meta meta = runfile::host_facts();
  meta["started"] = runfile::time_now();
  meta["program"] = program_invocation_short_name;
  meta["version"] = MILLPOND_VERSION;
  return meta;
}

// "activations/conv1" belongs to conv1, "slots/adam.m/dense/kernel" to dense.
std::string layer_of(const std::string& account) {
  const size_t slash = account.find('/');
  if (slash == account.npos) return "";
  std::string rest = account.substr(slash + 1);
  if (account.starts_with("slots/")) rest = rest.substr(std::min(rest.size(), rest.find('/') + 1));
  return rest.substr(0, rest.find('/'));
}

void add_program(runfile::Writer& writer, const std::string& name, const runtime::Lowered& p) {
  std::vector<runfile::PlanBuffer> buffers;
  for (size_t i = 0; i < p.problem.buffers.size(); ++i) {
    const plan::Buffer& b = p.problem.buffers[i];
    buffers.push_back(
        {format("{}#{}", b.name, i), b.name, layer_of(b.name), p.plan.offsets[i], b.size, b.first, b.last});
  }
  std::vector<runfile::PlanCall> calls;
  for (const runtime::Call& c : p.calls)
    calls.push_back({std::string(c.node->op->name()), c.node->layer, c.node->layer,
                     c.scratch >= 0 ? p.problem.buffers[size_t(c.scratch)].size : Bytes{}});
  writer.add(runfile::Program{.id = {},
                              .name = name,
                              .calls = int64_t(calls.size()),
                              .planned = p.plan.size,
                              .lower_bound = p.plan.lower_bound,
                              .plan_seconds = p.plan.seconds,
                              .method = p.plan.method},
             buffers, calls);
}

}  // namespace

struct RunRecord::State {
  State(const std::string& path, const RunRecordOptions& options) : writer(path, facts(), {.force = options.force}) {}
  ~State() {
    if (!training) return;
    try {
      end("failed");
    } catch (const Error&) {  // a destructor has no one to tell
    }
  }

  double now() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

  void begin(const train::ModelImpl& model, const Callback::Params& params) {
    training = true;
    if (run == runfile::RowId{}) run = writer.begin_phase("run", model.name, 0, {}, 0);
    fit = writer.begin_phase("fit", "", fits++, run, now());
    const MemoryPlan plan = train::plan_of_programs(model);
    std::string losses;
    for (const Loss& l : model.compiled->losses) losses += (losses.empty() ? "" : ", ") + l.name();
    for (const auto& [key, value] : runfile::Meta{{"model", plan.model},
                                                  {"optimizer", plan.optimizer},
                                                  {"loss", losses},
                                                  {"batch", std::to_string(params.batch_size)},
                                                  {"planned_bytes", std::to_string(plan.total.value)}})
      writer.set_meta(key, value);
    for (const train::Programs* programs : model.uses.workspaces())
      for (const train::Ready* r : programs->all()) {
        if (r->key.kind == train::Kind::kTrain) writer.set_meta("threads", std::to_string(r->key.threads));
        if (std::ranges::find(written, r->key) != written.end()) continue;
        add_program(writer, r->program.name(), r->program.lowered());
        written.push_back(r->key);
      }
    add_memory(model, fit);
    writer.commit();
  }

  void add_epoch(const train::ModelImpl& model, int epoch) {
    const runfile::RowId phase = writer.begin_phase("epoch", "", epoch, fit, epoch_began);
    const double ended = now();
    add_memory(model, phase);
    writer.end_phase(phase, ended);
    writer.commit();
  }

  void end(const char* status) {
    training = false;
    const double t = now();
    writer.end_phase(fit, t);
    writer.end_phase(run, t);
    writer.finish(t, status);
  }

  // What every account holds, and what the operating system says.
  void add_memory(const train::ModelImpl& model, runfile::RowId phase) {
    const double t = now();
    ledger::Ledger ledger;
    for (const train::Place& p : train::places_of(model)) train::charge(ledger, p);
    const std::vector<train::Place> data = train::places_of_data(model);
    for (const train::Place& p : data) train::charge(ledger, p);
    train::charge_other_data(ledger, data);
    train::charge_pipelines(ledger);
    ledger.charge("runfile", writer.memory());
    const ledger::Snapshot snapshot = ledger.snapshot();
    const ledger::Observation observed = ledger::observe(snapshot);
    const ledger::Explanation explanation = ledger::explain(snapshot, observed);
    std::vector<runfile::AccountBytes> accounts;
    for (const ledger::AccountLine& line : snapshot.accounts)
      if (line.own.value) accounts.push_back({line.name, line.own, line.peak});
    for (const ledger::ExplainedLine& line : explanation.lines) {
      if (snapshot.total(line.name).value || line.name == "accounts on the heap") continue;  // has its own name above
      const std::string name = line.name.starts_with("file ")
                                   ? "process/files/" + line.name.substr(line.name.rfind('/') + 1)
                                   : "process/" + line.name;
      accounts.push_back({name, line.counted, line.counted});
    }
    writer.add(t, phase, accounts);
    runfile::OsRow row{.t = t,
                       .phase = phase,
                       .rss = observed.resident,
                       .peak_rss = {},
                       .pss = {},
                       .private_dirty = {},
                       .swap = {},
                       .heap_in_use = observed.allocator.in_use,
                       .heap_free = observed.allocator.free,
                       .explained = explanation.explained};
    if (const auto os = totals())
      row.peak_rss = os->peak, row.pss = os->pss, row.private_dirty = os->private_dirty, row.swap = os->swap;
    writer.add(row);
  }

  const Clock::time_point start = Clock::now();
  runfile::Writer writer;
  runfile::RowId run, fit;
  int fits = 0;
  bool training = false;
  double epoch_began = 0;
  std::vector<train::ProgramKey> written;
};

RunRecord::RunRecord(const std::string& path, const RunRecordOptions& options)
    : state_(std::make_unique<State>(path, options)) {}
RunRecord::RunRecord(RunRecord&&) noexcept = default;
RunRecord::~RunRecord() = default;

void RunRecord::on_train_begin(const Logs&) { state_->begin(*model().impl(), params()); }
void RunRecord::on_epoch_begin(int, const Logs&) { state_->epoch_began = state_->now(); }
void RunRecord::on_epoch_end(int epoch, const Logs&) { state_->add_epoch(*model().impl(), epoch); }
void RunRecord::on_train_end(const Logs&) { state_->end(model().impl()->interrupted ? "interrupted" : "ended"); }

}  // namespace millpond
