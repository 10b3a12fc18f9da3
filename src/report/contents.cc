#include "report/contents.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "report/source.h"
#include "report/together.h"
#include "verdict/account.h"
#include "verdict/children.h"
#include "verdict/files.h"
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
    if (planned.value)
      v.sentence = format("Training runs in memory that was planned: {}. {} so far, so nothing can be compared yet.",
                          plan, epochs.empty() ? "No epoch has ended" : "One epoch has ended");
    return;
  }
  const Bytes first = *epochs.front()->rss, last = *epochs.back()->rss;
  const double grown = double(last.value - first.value);
  if (grown > std::max(kShare * double(last.value), kLeast)) return;
  v.kind = verdict::Kind::kFlat;
  v.would_settle.clear();
  v.sentence = format("Memory is flat: {} after the first epoch, {} after the last ({} seen){}.", first, last,
                      verdict::thousands(double(epochs.size())), plan.empty() ? "" : ", with " + plan);
}

/// Processes besides the main one that hold most: what is alive in them is shown too.
void read_children(RunContents& run, const runfile::Reader& file) {
  std::vector<std::pair<Bytes, runfile::RowId>> order;
  const auto main = std::ranges::find(run.evidence.processes, run.evidence.process, &verdict::SeenProcess::row);
  if (run.evidence.process == 0 || main == run.evidence.processes.end()) return;
  // Each one asked for reads the file again.
  for (const verdict::SeenProcess& p : run.evidence.processes)
    if (p.row != 0 && p.row != run.evidence.process && p.seen == "inside" && beside_main(run.evidence, p))
      order.emplace_back(peak_of(p), runfile::RowId{p.row});
  std::ranges::stable_sort(order, std::ranges::greater{}, &std::pair<Bytes, runfile::RowId>::first);
  if (order.size() > kMostChildren) order.resize(kMostChildren);
  for (const auto& [peak, row] : order) run.children.push_back(verdict::read_evidence(file, row));
}

/// Where in the words of a command a person's own begin: behind the interpreter and its options. "-m NAME" is NAME, and
/// of "-c TEXT" the interpreter stays.
std::string called(const std::string& command) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= command.size();) {
    const size_t space = std::min(command.find(' ', at), command.size());
    words.push_back(command.substr(at, space - at));
    at = space + 1;
  }
  const auto base = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  const auto from = [&](size_t i, std::string first) {
    for (++i; i < words.size(); ++i) first += " " + words[i];
    return first;
  };
  const std::string program = base(words[0]);
  if (!program.starts_with("python") || program.find_first_not_of("0123456789.", 6) != program.npos)
    return from(0, program);
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-m") return i + 1 < words.size() ? from(i + 1, words[i + 1]) : command;
    if (word == "-c") return from(i, "python -c");
    if (word == "-X" || word == "-W")
      ++i;
    else if (!word.starts_with('-'))
      return from(i, base(word));
  }
  return program;
}

}  // namespace

Bytes peak_of(const verdict::SeenProcess& process) {
  // Resident memory as the system tells it is host and shared together, at the same moments.
  std::map<double, Bytes> at;
  for (const char* space : {"host", "shared"})
    if (const auto found = process.spaces.find(space); found != process.spaces.end())
      for (const verdict::SeenProcess::Point& p : found->second) at[p.t] += p.resident.value_or(Bytes{});
  Bytes peak;
  for (const auto& [t, bytes] : at) peak = std::max(peak, bytes);
  return peak;
}

std::string RunContents::text(const char* key) const {
  const auto at = meta.find(key);
  return at == meta.end() ? std::string() : at->second;
}

double RunContents::number(const char* key) const { return runfile::number(meta, key).value_or(0); }

std::string RunContents::title() const {
  if (!evidence.command.empty()) return called(evidence.command);
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
  run.threads = file.threads();
  for (const runfile::SiteDetailRow& d : file.site_details()) run.details[d.site.value] = d;
  run.sizes = file.sizes();
  for (runfile::Program& p : file.programs()) {
    const runfile::RowId id = p.id;
    run.programs.push_back({std::move(p), file.plan_buffers(id), file.plan_calls(id)});
  }
  run.engine = !run.programs.empty() || !run.series.empty();
  run.evidence = verdict::read_evidence(file);
  run.verdict = verdict::judge(run.evidence);
  read_children(run, file);
  verdict::add_children(run.evidence, run.children, run.verdict);
  verdict::add_files(run.evidence, run.verdict);
  run.verdict.accounts =
      std::make_shared<const std::vector<verdict::Account>>(verdict::accounts(run.evidence, run.children));
  verdict::hold_to_account(run.verdict);
  if (run.engine) answer_engine(run);
  // A line that was found by sampling alone has its text from what is stored.
  const SourceLine source = stored_source(run.sources);
  for (verdict::Finding& f : run.verdict.findings)
    if (f.blame && f.blame->snippet.empty()) f.blame->snippet = source(f.blame->file, f.blame->line);
  return run;
}

void answer_early(RunContents& run) {
  if (run.meta.contains("status") || run.verdict.kind == verdict::Kind::kLeak) return;
  const int64_t rounds =
      std::ranges::count_if(run.evidence.marks, [](const verdict::Mark& m) { return m.period && m.kind != "timer"; });
  if (rounds >= kEnoughRounds) return;
  run.early = true;
  run.verdict = {};
  run.verdict.kind = verdict::Kind::kUnsure;
  run.verdict.sentence =
      format("Watching… {}: too early to tell.",
             rounds == 0 ? format("{} so far, and no round of its loop yet", verdict::duration(run.seconds()))
                         : format("{} and {} of its loop so far", verdict::duration(run.seconds()),
                                  verdict::counted(double(rounds), "round")));
}

void answer_cut_off(RunContents& run) {
  verdict::Verdict& v = run.verdict;
  if (run.engine || run.meta.contains("status") ||
      (v.kind != verdict::Kind::kFlat && v.kind != verdict::Kind::kReserve))
    return;
  v.kind = verdict::Kind::kUnsure;
  v.would_settle = "let the program run to its end under millpond, with room for the run file";
  v.sentence += " That was seen until the run file ended; of what came after nothing is known.";
}

Bytes end_rss(const verdict::Evidence& e) {
  for (auto p = e.os.rbegin(); p != e.os.rend(); ++p)
    if (p->rss && p->rss->value > 0) return *p->rss;
  return {};
}

}  // namespace millpond::report
