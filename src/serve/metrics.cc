#include "serve/metrics.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "report/accounts.h"
#include "report/text.h"
#include "report/together.h"

namespace millpond::serve {
namespace {

std::string label(const std::string& text) {
  std::string out;
  for (const char c : report::shown(text, 200)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string openmetrics(const report::RunContents& run) {
  std::string out;
  const auto family = [&](const char* name, const char* type, const char* help, const char* unit = nullptr) {
    out += format("# TYPE {} {}\n", name, type);
    if (unit) out += format("# UNIT {} {}\n", name, unit);
    out += format("# HELP {} {}\n", name, help);
  };
  family("millpond_run_seconds", "gauge", "How long the run has been seen.", "seconds");
  out += format("millpond_run_seconds {:.3f}\n", run.seconds());
  family("millpond_resident_bytes", "gauge", "Resident memory of the main process.", "bytes");
  out += format("millpond_resident_bytes {}\n", report::end_rss(run.evidence).value);
  family("millpond_peak_resident_bytes", "gauge", "The most the main process held.", "bytes");
  out += format("millpond_peak_resident_bytes {}\n", run.evidence.peak_rss.value);
  // Where there are children: each, and all of them together.
  if (const std::vector<report::ProcessLine> processes = report::process_lines(run.evidence); !processes.empty()) {
    constexpr size_t kMostProcesses = 64;
    family("millpond_processes", "gauge", "Processes that were seen, the main one included.");
    out += format("millpond_processes {}\n", report::processes_seen(run.evidence));
    family("millpond_process_resident_bytes", "gauge",
           "Resident memory of a process when it was last looked at; pages that processes share count in each.",
           "bytes");
    for (size_t i = 0; i < std::min(processes.size(), kMostProcesses); ++i)
      out += format("millpond_process_resident_bytes{{process=\"{}\"}} {}\n", label(processes[i].name),
                    processes[i].points.back().second.value);
    family("millpond_all_peak_bytes", "gauge", "The most that all processes held together, shared pages counted once.",
           "bytes");
    out += format("millpond_all_peak_bytes {}\n", report::whole_peak(run.evidence).bytes.value);
  }
  const report::AccountTable table = report::grouped(report::accounts_over_time(run, {.moments = 2}), 64);
  if (!table.t.empty()) {
    family("millpond_account_bytes", "gauge", "Memory by account, at the last mark.", "bytes");
    for (const report::Account& a : table.accounts)
      out += format("millpond_account_bytes{{account=\"{}\",kind=\"{}\"}} {}\n", label(a.name), to_string(a.kind),
                    a.bytes.back());
  }
  std::map<std::string, int64_t> rounds;
  for (const verdict::Mark& m : run.evidence.marks)
    if (m.period) rounds[m.kind] = std::max(rounds[m.kind], m.index);
  if (!rounds.empty()) {
    family("millpond_rounds", "counter", "Rounds of the program's loops.");
    for (const auto& [kind, n] : rounds) out += format("millpond_rounds_total{{kind=\"{}\"}} {}\n", label(kind), n);
  }
  family("millpond_verdict", "stateset", "What the memory does.");
  for (const verdict::Kind k :
       {verdict::Kind::kLeak, verdict::Kind::kFragmentation, verdict::Kind::kRetention, verdict::Kind::kCache,
        verdict::Kind::kReserve, verdict::Kind::kFlat, verdict::Kind::kUnsure})
    out += format("millpond_verdict{{millpond_verdict=\"{}\"}} {}\n", to_string(k), int(k == run.verdict.kind));
  double rate = 0;
  for (const verdict::Finding& f : run.verdict.findings)
    if (f.sets_verdict && f.kind == verdict::Kind::kLeak) rate = std::max(rate, f.bytes_per_unit);
  family("millpond_growth_bytes", "gauge", "Bytes by which memory grows with every round, while it leaks.", "bytes");
  out += format("millpond_growth_bytes {:.0f}\n", rate);
  return out + "# EOF\n";
}

}  // namespace millpond::serve
