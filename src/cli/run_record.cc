#include "cli/run_record.h"

#include <ctime>

#include "base/format.h"
#include "cli/memory.h"
#include "cli/self.h"
#include "train/model.h"

namespace millpond::cli {
namespace {

runfile::Meta facts(const OpenedModel& opened, const MemoryPlan& plan) {
  runfile::Meta meta = runfile::host_facts();
  char started[32];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  meta["started"] = started;
  meta["program"] = "millpond train";
  meta["version"] = MILLPOND_VERSION;
  meta["model"] = opened.model.name();
  meta["optimizer"] = plan.optimizer;
  meta["loss"] = opened.loss;
  meta["batch"] = std::to_string(plan.batch);
  meta["threads"] = std::to_string(plan.threads);
  meta["planned_bytes"] = std::to_string(plan.total.value);
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

void add_program(runfile::Writer& writer, const runtime::Program& p) {
  std::vector<runfile::PlanBuffer> buffers;
  for (size_t i = 0; i < p.problem().buffers.size(); ++i) {
    const plan::Buffer& b = p.problem().buffers[i];
    buffers.push_back({format("{}#{}", b.name, i), b.name, layer_of(b.name), p.plan().offsets[i], b.size, b.first, b.last});
  }
  std::vector<runfile::PlanCall> calls;
  for (const runtime::Call& c : p.calls())
    calls.push_back({std::string(c.node->op->name()), c.node->layer, c.node->layer, c.scratch >= 0 ? p.problem().buffers[size_t(c.scratch)].size : Bytes{}});
  writer.add(runfile::Program{.id = {}, .name = p.name(), .calls = int64_t(calls.size()), .planned = p.plan().size, .lower_bound = p.plan().lower_bound,
                              .plan_seconds = p.plan().seconds, .method = p.plan().method},
             buffers, calls);
}

}  // namespace

RunRecord::RunRecord(const std::string& path, const OpenedModel& opened, const ModelData& data, const MemoryPlan& plan)
    : opened_(opened), data_(data), writer_(path, facts(opened, plan)) {
  run_ = writer_.begin_phase("run", opened.model.name(), 0, {}, 0);
}

void RunRecord::on_train_begin(const Logs&) {
  fit_ = writer_.begin_phase("fit", "", 0, run_, seconds_since_start());
  add_now(fit_);
  writer_.commit();
}

void RunRecord::on_epoch_begin(int, const Logs&) { epoch_began_ = seconds_since_start(); }

void RunRecord::on_epoch_end(int epoch, const Logs&) {
  const double now = seconds_since_start();
  if (!programs_written_) {
    for (const train::Ready* r : opened_.model.impl()->programs.all()) add_program(writer_, r->program);
    programs_written_ = true;
  }
  const runfile::RowId phase = writer_.begin_phase("epoch", "", epoch, fit_, epoch_began_);
  add_now(phase);
  writer_.end_phase(phase, now);
  writer_.commit();
}

void RunRecord::on_train_end(const Logs&) { writer_.end_phase(fit_, seconds_since_start()); }

void RunRecord::finish(const std::string& status) {
  const double now = seconds_since_start();
  writer_.end_phase(run_, now);
  writer_.finish(now, status);
}

void RunRecord::add_now(runfile::RowId phase) {
  const double now = seconds_since_start();
  const ledger::Snapshot snapshot = charged(opened_.model, data_);
  const ledger::Observation observed = ledger::observe(snapshot);
  const ledger::Explanation explanation = ledger::explain(snapshot, observed);
  std::vector<runfile::AccountBytes> accounts;
  for (const ledger::AccountLine& line : snapshot.accounts)
    if (line.own.value) accounts.push_back({line.name, line.own, line.peak});
  for (const ledger::ExplainedLine& line : explanation.lines) {
    if (snapshot.total(line.name).value) continue;
    const std::string name = line.name.starts_with("file ") ? "process/files/" + line.name.substr(line.name.rfind('/') + 1) : "process/" + line.name;
    accounts.push_back({name, line.counted, line.counted});
  }
  writer_.add(now, phase, accounts);
  runfile::OsRow row{.t = now, .phase = phase, .rss = observed.resident, .peak_rss = resident_peak(), .pss = {}, .private_dirty = {}, .swap = {},
                     .heap_in_use = observed.allocator.in_use, .heap_free = observed.allocator.free, .explained = explanation.explained};
  if (const auto t = totals()) row.pss = t->pss, row.private_dirty = t->private_dirty, row.swap = t->swap;
  writer_.add(row);
}

}  // namespace millpond::cli
