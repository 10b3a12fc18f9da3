// millpond report FILE [OTHER]: what a run file says, again: for people, as JSON, or in the forms of other tools; with
// two files, what changed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/format.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/pages.h"
#include "report/compare.h"
#include "report/exports.h"
#include "report/sites.h"
#include "report/source.h"
#include "report/terminal.h"
#include "runfile/share.h"
#include "verdict/notes.h"
#include "verdict/read.h"

namespace millpond::cli {
namespace {

struct InspectArguments {
  std::vector<std::string> files;
  std::string share;
  std::string at = "peak", collapsed, speedscope, pprof;
  bool table = false, tree = false, lines = false, growth = false;
  int rows = 20;
  bool verbose = false;
  JsonTarget json;
  PageTargets pages;
  std::string color = "auto";

  report::TextStyle style() const {
    report::TextStyle s = text_style(STDOUT_FILENO, verbose);
    if (color != "auto") s.color = color == "always";
    return s;
  }

  bool exports() const { return !collapsed.empty() || !speedscope.empty() || !pprof.empty(); }
  bool stdout_taken() const {
    return pages.on_stdout() || json.on_stdout() || collapsed == "-" || speedscope == "-" || pprof == "-";
  }
};

void export_stacks(const InspectArguments& a, const verdict::Evidence& e) {
  const report::Weighed live = report::live_stacks(e, report::find_moment(e, a.at)), grown = report::grown_stacks(e);
  const report::Weighed& chosen = a.growth ? grown : live;
  if (chosen.stacks.empty())
    throw Error(Code::kUsage, "report: nothing grew between the snapshots of this run, so there is nothing to export")
        .hint("leave --growth out");
  if (!a.collapsed.empty()) write_to(a.collapsed, report::collapsed(chosen));
  if (!a.speedscope.empty()) {
    std::vector<report::Weighed> profiles{chosen};
    if (const report::Weighed& other = a.growth ? live : grown; !other.stacks.empty()) profiles.push_back(other);
    write_to(a.speedscope, report::speedscope(profiles, e.command));
  }
  if (!a.pprof.empty()) write_to(a.pprof, report::pprof(chosen, a.growth, e.seconds));
}

int run_one(const InspectArguments& a) {
  const report::RunContents run = open_run(a.files[0]);
  const verdict::Evidence& e = run.evidence;
  const report::SourceLine source = report::stored_source(run.sources);
  Json object = report::doctor_json(e, run.verdict, run.meta);
  std::string text;
  const report::TextStyle style = a.style();
  const auto part = [&](const std::string& more) { text += (text.empty() ? "" : "\n") + more; };
  if (a.table) {
    const report::Moment moment = report::find_moment(e, a.at);
    part(report::table_text(e, moment, style, a.rows));
    object["table"] = report::table_json(e, moment, a.rows);
  }
  if (a.tree) {
    const report::Moment moment = report::find_moment(e, a.at);
    part(report::tree_text(e, moment, style, 2 * a.rows));
    object["tree"] = report::tree_json(e, moment, 2 * a.rows);
  }
  if (a.lines) {
    part(report::lines_text(e, source, style, 2 * a.rows));
    object["lines"] = report::lines_json(e, source, 2 * a.rows);
  }
  if (text.empty() && !a.exports())
    text = report::terminal_text(run, style) + (a.verbose ? "" : file_line(a.files[0], style));
  if (!a.stdout_taken()) std::fputs(text.c_str(), stdout);
  if (a.exports()) export_stacks(a, e);
  a.json.write(object);
  return kOk;
}

int run_two(const InspectArguments& a) {
  if (a.table || a.tree || a.lines || a.exports())
    throw Error(Code::kUsage, "report: two run files are compared; table, tree, lines and exports are of one")
        .hint("name one file");
  const Judged before = judge_file(a.files[0]), after = judge_file(a.files[1]);
  const report::Run x{a.files[0], &before.evidence, &before.verdict, report::stored_source(before.sources)};
  const report::Run y{a.files[1], &after.evidence, &after.verdict, report::stored_source(after.sources)};
  if (!a.stdout_taken()) std::fputs(report::compare_text(x, y, a.style(), a.rows).c_str(), stdout);
  a.json.write(report::compare_json(x, y, a.rows));
  return kOk;
}

void share(const InspectArguments& a) {
  if (a.files.size() != 1) throw Error(Code::kUsage, "report: --share is of one run file").hint("name one file");
  const runfile::Reader file(a.files[0]);
  runfile::Private p = runfile::private_here();
  p.project = verdict::read_notes(verdict::read_evidence(file)).folder;
  runfile::share(file, a.share, std::move(p));
  if (!a.stdout_taken())
    std::printf("shared: %s (%s), without paths, user and host names\n", a.share.c_str(),
                to_string(Bytes{int64_t(std::filesystem::file_size(a.share))}).c_str());
}

int run_inspect(const InspectArguments& asked) {
  InspectArguments a = asked;
  if (!a.share.empty()) {
    share(a);
    if (!a.pages.any() && !a.json.wanted() && !a.table && !a.tree && !a.lines && !a.exports()) return kOk;
    a.files = {a.share};  // whatever else is written is for the same readers
  }
  const int on_stdout =
      int(a.json.on_stdout()) + (a.collapsed == "-") + (a.speedscope == "-") + (a.pprof == "-") + a.pages.on_stdout();
  if (on_stdout > 1)
    throw Error(Code::kUsage, "report: standard output can carry one thing only").hint("give files to all but one");
  if (a.pages.any()) {
    std::vector<report::RunContents> runs;
    for (const std::string& file : a.files) runs.push_back(open_run(file));
    write_pages(a.pages, runs);
    if (!a.json.wanted() && !a.table && !a.tree && !a.lines && !a.exports()) return kOk;
  }
  return a.files.size() == 1 ? run_one(a) : run_two(a);
}

}  // namespace

static void add_report(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("report", "Say what a run file holds, or what changed between two");
  auto a = std::make_shared<InspectArguments>();
  sub->add_option("FILE", a->files, "A run file of `watch`; two of them are compared")->required()->expected(1, 2);
  add_page_options(*sub, a->pages);
  sub->add_option("--share", a->share, "A copy of the run file to give to others: without paths, user and host names")
      ->option_text("OUT.pond");
  sub->add_flag("--table", a->table, "The lines that hold the memory");
  sub->add_flag("--tree", a->tree, "The calls that hold it, from the outermost inwards");
  sub->add_flag("--lines", a->lines, "The source, line by line: allocated, freed, still held, held more each period");
  sub->add_option("--at", a->at, "When, for table, tree and exports: peak, end, epoch:7, 12.5s");
  sub->add_option("--rows", a->rows, "Rows to show (20; twice as many of trees and lines)")
      ->check(CLI::Range(1, 100000));
  sub->add_option("--limit", a->rows)
      ->check(CLI::Range(1, 100000))
      ->group("");  // its name of before; everywhere else a limit is one of memory
  sub->add_flag("-v,--verbose", a->verbose,
                "Also the evidence, rates, smaller findings, accounts and lines over time, what was measured and how");
  sub->add_option("--collapsed", a->collapsed, "Stacks for flamegraph.pl to FILE, or - for standard output");
  sub->add_option("--speedscope", a->speedscope, "A profile for speedscope.app to FILE, or -");
  sub->add_option("--pprof", a->pprof, "A profile for pprof to FILE, or -");
  sub->add_flag("--growth", a->growth,
                "Export what was gained from the end of warm-up to the last period, not what was alive");
  sub->add_option("--color", a->color, "auto (on a terminal, unless NO_COLOR is set), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  sub->add_option("--json", a->json.where, "One JSON object to FILE, or - for standard output");
  sub->footer(R"(
Examples:
  millpond report run.pond                            the answer again, on one screen
  millpond report run.pond -v                         all that was found out
  millpond report run.pond -o report.html             the page, to look at and to send
  millpond report before.pond after.pond -o diff.html the page that says what changed
  millpond report run.pond --tensorboard logs --perfetto run.perfetto --csv run.csv
  millpond report run.pond --table --at epoch:7       who holds the memory after epoch 7
  millpond report run.pond --lines                    what each line of the program allocated and holds
  millpond report run.pond --collapsed - --growth | flamegraph.pl > growth.svg
  millpond report run.pond --speedscope run.speedscope.json --pprof run.pb
  millpond report before.pond after.pond              what changed
  millpond report run.pond --share public.pond        a copy for others, without paths, user and host names
  millpond report run.pond --json -)");
  sub->callback([a, &chosen] { chosen.run = [a] { return run_inspect(*a); }; });
}
constinit const Command commands::report{80, add_report};

}  // namespace millpond::cli
