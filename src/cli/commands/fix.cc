// millpond fix RUN [FILE]: the fix of a run as a change of the program's source. Only FILE, which the user names, is
// ever read or written; what the run file names is shown and nothing more.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/format.h"
#include "cli/command.h"
#include "cli/pages.h"
#include "cli/report.h"
#include "millpond/error.h"
#include "report/text.h"
#include "verdict/causes/words.h"
#include "verdict/change.h"

namespace millpond::cli {
namespace {

constexpr std::uintmax_t kMostSource = 8 << 20;

struct FixArguments {
  std::string run, file;
  bool apply = false;
};

std::string read_source(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw Error(Code::kFile, format("fix: {} is no plain file", path)).hint("name the source file that the fix is for");
  if (std::filesystem::file_size(path, error) > kMostSource || error)
    throw Error(Code::kFile, format("fix: {} cannot be read, or has more than 8 MiB", path));
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open())
    throw Error(Code::kFile, format("fix: {} cannot be read", path)).hint("check its permissions");
  return text;
}

/// Under the same name, with the same permissions; through a link into the file that it names.
void write_source(const std::string& path, const std::string& text) {
  const std::string target = std::filesystem::canonical(path).string();
  struct stat before{};
  const bool known = stat(target.c_str(), &before) == 0;
  write_to(target, text);
  if (known && chmod(target.c_str(), before.st_mode & 07777) != 0)
    throw Error(Code::kFile, format("fix: {} was changed, but its permissions could not be kept", path));
}

int run_fix(const FixArguments& a) {
  const report::RunContents contents = open_run(a.run);
  const verdict::Finding* fixed = nullptr;
  for (const verdict::Finding& f : contents.verdict.findings)
    if (!fixed || (!fixed->fix_change && f.fix_change)) fixed = &f;
  if (!fixed) {
    std::puts("Nothing was found in this run that needs a fix.");
    return kOk;
  }
  const std::string words = report::wrapped(report::shown_lines(fixed->fix), 100, 0, 0);
  if (!fixed->fix_change) {
    if (!a.file.empty())
      throw Error(Code::kUnsupported,
                  format("fix: this fix cannot be made by a machine: {}", report::shown_lines(fixed->fix)));
    std::printf("%s\n", words.c_str());
    return kFailed;
  }
  const verdict::Change& change = *fixed->fix_change;
  if (!change.variable.empty()) {
    if (!a.file.empty())
      throw Error(Code::kUsage, format("fix: this fix is a setting, not a change of a file: run the program with {}={}",
                                       report::shown(change.variable), report::shown(change.value)));
    std::printf("%s\n\n  %s=%s %s\n", words.c_str(), report::shown(change.variable).c_str(),
                report::shown(change.value).c_str(), report::shown(contents.title()).c_str());
    return kOk;
  }
  const std::string name = report::shown(verdict::file_name(change.file));
  if (a.file.empty()) {
    std::printf("%s\n\nIt is a change of %s: `millpond fix %s %s` shows it, and with --apply it is made.\n",
                words.c_str(), name.c_str(), report::shown(a.run).c_str(), name.c_str());
    return kOk;
  }
  const std::string text = read_source(a.file);
  if (verdict::file_name(change.file) != verdict::file_name(a.file) && verdict::digest(text) != change.digest)
    throw Error(Code::kUsage, format("fix: the fix is for {}, not for {}", name, a.file)).hint("name that file");
  if (a.apply) {
    write_source(a.file, verdict::carried_out(change, text));
    std::printf("%s is changed.\n", a.file.c_str());
  } else {
    std::fputs(report::shown_lines(verdict::unified_diff(change, text, a.file)).c_str(), stdout);
  }
  return kOk;
}

}  // namespace

static void add_fix(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("fix", "Show the fix of a run as a change of the program's source, or make it");
  auto a = std::make_shared<FixArguments>();
  sub->add_option("run", a->run, "Run file of `millpond watch`")->required();
  sub->add_option("file", a->file, "Source file to change; no other file is read or written");
  sub->add_flag("--apply", a->apply, "Make the change; without it a diff is shown");
  sub->footer(R"(
Examples:
  millpond fix run.pond                        the fix in words, and which file it changes
  millpond fix run.pond train.py               the change as a diff
  millpond fix run.pond train.py --apply       make it

A file that is not what it was when the program ran is left alone.
Exit codes: 0 there is a change, or nothing to fix; 1 only words can be given, or the file has changed; 2 wrong usage.)");
  sub->callback([a, &chosen] {
    if (a->apply && a->file.empty())
      throw CLI::ValidationError("--apply", "needs the file to change: millpond fix RUN FILE --apply");
    chosen.run = [a] { return run_fix(*a); };
  });
}
constinit const Command commands::fix{90, add_fix};

}  // namespace millpond::cli
