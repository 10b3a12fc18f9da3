// take_whole_way: a run file through everything `millpond report` can make of it: read, judged, as text, JSON, page,
// table, trace and profile. Only an Error may come out; anything else ends the program.
#pragma once
#include <string>

#include "fuzz/input_file.h"
#include "millpond/error.h"
#include "report/compare.h"
#include "report/contents.h"
#include "report/doctor.h"
#include "report/elsewhere.h"
#include "report/exports.h"
#include "report/lines.h"
#include "report/page.h"
#include "report/sites.h"
#include "report/source.h"
#include "report/terminal.h"
#include "runfile/reader.h"
#include "verdict/change.h"
#include "verdict/read.h"
#include "verdict/verdict.h"

namespace millpond::fuzz {

inline size_t sum_of_sizes = 0;  // so that nothing is left out as unused

inline void tell_everything(const report::RunContents& run) {
  const verdict::Evidence& e = run.evidence;
  const auto use = [](const std::string& text) { sum_of_sizes += text.size(); };
  const auto dump = [&](const nlohmann::ordered_json& j) {
    use(j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  };
  const report::SourceLine source = report::stored_source(run.sources, report::Indent::kKept);
  const report::TextStyle style{.color = true, .width = 80};
  use(report::terminal_text(run, style));
  dump(report::doctor_json(e, run.verdict, run.meta));
  use(report::page_html(report::page_document(run, source), report::doctor_text(e, run.verdict, run.meta, {})));
  for (const verdict::Finding& f : run.verdict.findings)
    if (f.fix_change && f.fix_change->variable.empty()) {
      const std::string text = "def keep(x):\n  kept.append(x)\n  step(i)\n";
      verdict::Change change = *f.fix_change;
      change.digest = verdict::digest(text);  // as if it were the file that ran
      try {
        use(verdict::carried_out(change, text));
        use(verdict::unified_diff(change, text, "train.py"));
      } catch (const Error&) {
      }
    }
  use(report::csv(run));
  use(report::perfetto_trace(run));
  use(report::tensorboard_events(run));
  use(report::lines_text(e, source, style, 40));
  dump(report::lines_json(e, source, 40));
  const report::Run one{run.name, &e, &run.verdict};
  use(report::compare_text(one, one, style, 20));
  dump(report::compare_json(one, one, 20));
  if (const std::optional<report::Moment> moment = report::end_moment(e)) {
    use(report::table_text(e, *moment, style, 20));
    dump(report::table_json(e, *moment, 20));
    use(report::tree_text(e, *moment, style, 40));
    dump(report::tree_json(e, *moment, 40));
    const report::Weighed live = report::live_stacks(e, *moment), grown = report::grown_stacks(e);
    use(report::collapsed(live));
    use(report::speedscope({live, grown}, e.command));
    use(report::pprof(grown, true, e.seconds));
  }
}

inline void take_whole_way(const std::string& path) {
  try {
    const runfile::Reader file(path);
    report::RunContents run = report::read_contents(file, "fuzz.pond");
    tell_everything(run);
    for (const verdict::SeenProcess& p : run.evidence.processes)  // any process may be judged
      if (p.row != run.evidence.process) {
        sum_of_sizes += size_t(verdict::judge(verdict::read_evidence(file, runfile::RowId{p.row})).kind);
        break;
      }
    report::answer_early(run);  // as the live page of a run that goes on
    sum_of_sizes += report::doctor_text(run.evidence, run.verdict, run.meta, {}).size();
    ++accepted;
  } catch (const Error&) {
  }
}

}  // namespace millpond::fuzz
