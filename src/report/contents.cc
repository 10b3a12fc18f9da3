#include "report/contents.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "report/source.h"
#include "verdict/read.h"
#include "verdict/sentence.h"

namespace millpond::report {
namespace {

/// Growth from the first epoch to the last that is worth a word: as for verdicts, 1 % or 5 MB.
constexpr double kShare = 0.01, kLeast = 5e6;
constexpr int64_t kEnoughRounds = 5;

void answer_engine(RunContents& run) {
  verdict::Verdict& v = run.verdict;
  if (v.kind != verdict::Kind::kFlat && v.kind != verdict::Kind::kUnsure) return;
  std::vector<const verdict::Mark*> epochs;
  for (const verdict::Mark& m : run.evidence.marks)
    if (m.period && m.rss) epochs.push_back(&m);
  const Bytes planned{int64_t(run.number("planned_bytes"))};
  const std::string plan = planned.value ? format("{} planned before the first batch", planned) : std::string();
  if (epochs.size() < 2) {
    if (planned.value) v.sentence = format("Training runs in memory that was planned: {}. {} so far, so nothing can be compared yet.", plan, epochs.empty() ? "No epoch has ended" : "One epoch has ended");
    return;
  }
  const Bytes first = *epochs.front()->rss, last = *epochs.back()->rss;
  const double grown = double(last.value - first.value);
  if (grown > std::max(kShare * double(last.value), kLeast)) return;
  v.kind = verdict::Kind::kFlat;
  v.would_settle.clear();
  v.sentence = format("Memory is flat: {} after the first epoch, {} after the last ({} seen){}.", first, last, verdict::thousands(double(epochs.size())), plan.empty() ? "" : ", with " + plan);
}

}  // namespace

std::string RunContents::text(const char* key) const {
  const auto at = meta.find(key);
  return at == meta.end() ? std::string() : at->second;
}

double RunContents::number(const char* key) const {
  return runfile::number(meta, key).value_or(0);
}

std::string RunContents::title() const {
  if (!evidence.command.empty()) return evidence.command;
  if (const std::string model = text("model"); !model.empty()) return "training " + model;
  return name;
}

double RunContents::seconds() const {
  double last = evidence.seconds;
  if (!os.empty()) last = std::max(last, os.back().t);
  if (!evidence.marks.empty()) last = std::max(last, evidence.marks.back().t);
  return last;
}

RunContents read_contents(const runfile::Reader& file, std::string name) {
  RunContents run;
  run.name = std::move(name);
  run.meta = file.meta();
  run.phases = file.phases();
  run.series = file.series();
  run.os = file.os_series();
  run.tree = file.tree_series();
  run.sources = file.sources();
  for (runfile::Program& p : file.programs()) {
    const runfile::RowId id = p.id;
    run.programs.push_back({std::move(p), file.plan_buffers(id), file.plan_calls(id)});
  }
  run.engine = !run.programs.empty() || !run.series.empty();
  run.evidence = verdict::read_evidence(file);
  run.verdict = verdict::judge(run.evidence);
  if (run.engine) answer_engine(run);
  // A line that was found by sampling alone has its text from what is stored.
  const SourceLine source = stored_source(run.sources);
  for (verdict::Finding& f : run.verdict.findings)
    if (f.blame && f.blame->snippet.empty()) f.blame->snippet = source(f.blame->file, f.blame->line);
  return run;
}

void answer_early(RunContents& run) {
  if (run.meta.contains("status") || run.verdict.kind == verdict::Kind::kLeak) return;
  const int64_t rounds = std::ranges::count_if(run.evidence.marks, [](const verdict::Mark& m) { return m.period && m.kind != "timer"; });
  if (rounds >= kEnoughRounds) return;
  run.verdict = {};
  run.verdict.kind = verdict::Kind::kUnsure;
  run.verdict.sentence = format("Too early to tell: the program has run for {}, and {} of its loop {} been seen.", verdict::duration(run.seconds()),
                                rounds == 0 ? "no round" : rounds == 1 ? "one round" : format("{} rounds", rounds), rounds > 1 ? "have" : "has");
}

Bytes end_rss(const verdict::Evidence& e) {
  for (auto p = e.os.rbegin(); p != e.os.rend(); ++p)
    if (p->rss && p->rss->value > 0) return *p->rss;
  return {};
}

}  // namespace millpond::report
