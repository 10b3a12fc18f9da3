#include "cli/pages.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "base/format.h"
#include "cli/report.h"
#include "millpond/error.h"
#include "report/compare.h"
#include "report/doctor.h"
#include "report/elsewhere.h"
#include "report/page.h"
#include "report/source.h"
#include "runfile/reader.h"

namespace millpond::cli {
namespace {

namespace fs = std::filesystem;

std::string page_of(const std::vector<report::RunContents>& runs) {
  const auto source = [](const report::RunContents& run) {
    return report::stored_source(run.sources, report::Indent::kKept);
  };
  if (runs.size() == 1) {
    const report::RunContents& run = runs[0];
    return report::page_html(report::page_document(run, source(run)),
                             report::doctor_text(run.evidence, run.verdict, run.meta, {.verbose = true}));
  }
  const report::Run a{runs[0].name, &runs[0].evidence, &runs[0].verdict, source(runs[0])},
      b{runs[1].name, &runs[1].evidence, &runs[1].verdict, source(runs[1])};
  return report::page_html(report::page_document(runs[0], source(runs[0]), runs[1], source(runs[1])),
                           report::compare_text(a, b, {}, 20));
}

}  // namespace

void add_page_options(CLI::App& sub, PageTargets& t) {
  sub.add_option("-o,--out", t.page, "The page, one HTML file that needs nothing else, to FILE, or -")
      ->option_text("FILE.html");
  sub.add_option("--csv", t.csv, "Every account at every moment as a table to FILE, or -");
  sub.add_option("--tensorboard", t.tensorboard, "An event file for TensorBoard into a folder: scalars, verdict, plan")
      ->option_text("DIR");
  sub.add_option("--perfetto", t.perfetto, "A trace for ui.perfetto.dev to FILE, or -");
}

report::RunContents open_run(const std::string& path) {
  report::RunContents run = report::read_contents(runfile::Reader(path), fs::path(path).filename().string());
  report::answer_cut_off(run);
  return run;
}

void write_pages(const PageTargets& t, const std::vector<report::RunContents>& runs) {
  const bool say = t.on_stdout() == 0;
  const auto told = [&](const std::string& where, const std::string& bytes, const char* what) {
    write_to(where, bytes);
    if (say) std::printf("%s: %s (%s)\n", what, where.c_str(), to_string(Bytes{int64_t(bytes.size())}).c_str());
  };
  if (!t.page.empty()) {
    told(t.page, page_of(runs), "page");
    if (!report::page_is_built())
      std::fputs(
          "millpond: this program was built without Node, so the page has the text only; `make setup build` brings the "
          "charts\n",
          stderr);
  }
  if (runs.size() > 1 && (!t.csv.empty() || !t.tensorboard.empty() || !t.perfetto.empty()))
    throw Error(Code::kUsage, "report: --csv, --tensorboard and --perfetto are of one run file").hint("name one file");
  if (!t.csv.empty()) told(t.csv, report::csv(runs[0]), "table");
  if (!t.perfetto.empty()) told(t.perfetto, report::perfetto_trace(runs[0]), "trace");
  if (!t.tensorboard.empty()) {
    std::error_code error;
    fs::create_directories(t.tensorboard, error);
    if (error)
      throw Error(Code::kFile, format("report: the folder {} cannot be made: {}", t.tensorboard, error.message()))
          .hint("name a folder that can be written");
    // TensorBoard knows its files by this name.
    const std::string name = format("events.out.tfevents.{:.0f}.millpond", report::started(runs[0]));
    told((fs::path(t.tensorboard) / name).string(), report::tensorboard_events(runs[0]), "events");
  }
}

}  // namespace millpond::cli
