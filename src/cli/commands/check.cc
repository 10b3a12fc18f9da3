// millpond check -- PROGRAM ...: watch with an exit code, for continuous integration.
// 0: no leak and every limit kept; 1: a leak, or a limit exceeded; 2: the command line is wrong; 3: the program itself
// failed; 4: it could not be told.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/format.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "report/sarif.h"
#include "report/text.h"
#include "report/together.h"

namespace millpond::cli {
namespace {

namespace fs = std::filesystem;

struct CheckArguments {
  WatchOptions watch;
  std::string max_growth, max_peak, suppressions, baseline, junit, sarif;
  bool github = false, write_baseline = false, allow_unsure = false;
  double tolerance = 10;
};

/// "1MB/epoch": bytes for each unit; without a unit, whatever unit the growth has.
struct GrowthLimit {
  double bytes = 0;
  std::string unit;
};
GrowthLimit parse_growth(const std::string& text) {
  const size_t slash = text.find('/');
  GrowthLimit g{double(parse_bytes(text.substr(0, slash)).value), slash == text.npos ? "" : text.substr(slash + 1)};
  if (g.unit.empty()) return g;
  if (g.unit == "step") g.unit = "batch";
  for (int u = 0; u <= int(verdict::Unit::kRequest); ++u)
    if (to_string(verdict::Unit(u)) == g.unit) return g;
  throw Error(Code::kUsage, format("--max-growth: \"{}\" is no unit", g.unit))
      .hint("batch, epoch, model, call, shape, compile, line, fit, second, run, round, task or request");
}

/// One suppression a line: "CAUSE", "FILE", "FILE:LINE" or "function NAME"; "#" begins a comment.
class Suppressions {
 public:
  explicit Suppressions(const std::string& path) {
    if (path.empty()) return;
    std::ifstream file(path);
    if (!file) throw Error(Code::kFile, format("suppressions: {} cannot be read", path)).hint("check the path");
    for (std::string line; std::getline(file, line);) {
      line.resize(std::min(line.find('#'), line.size()));
      const size_t from = line.find_first_not_of(" \t\r"), to = line.find_last_not_of(" \t\r");
      if (from != line.npos) rules_.push_back(line.substr(from, to - from + 1));
    }
  }
  bool covers(const verdict::Finding& f) const {
    for (const std::string& rule : rules_) {
      if (rule == f.cause) return true;
      if (!f.blame) continue;
      const std::string& file = f.blame->file;
      const auto ends = [&](const std::string& name) { return file == name || file.ends_with("/" + name); };
      if (rule == "function " + f.blame->function || ends(rule)) return true;
      if (const size_t colon = rule.rfind(':');
          colon != rule.npos && ends(rule.substr(0, colon)) && rule.substr(colon + 1) == std::to_string(f.blame->line))
        return true;
    }
    return false;
  }

 private:
  std::vector<std::string> rules_;
};

constexpr size_t kMostTold = 3;  // of what is broken, on one screen

struct Broken {
  std::string name, text;
  const verdict::Finding* finding = nullptr;  // of the verdict
};

/// A file as tools of continuous integration know it: by its way from the folder in which the check was started.
std::string from_here(const std::string& file) {
  std::error_code error;
  const fs::path here = fs::current_path(error), way = fs::path(file).lexically_relative(here);
  return error || !file.starts_with('/') || way.empty() || *way.begin() == ".." ? file : way.string();
}

std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

void write_junit(const std::string& path, const Judged& j, const std::vector<Broken>& broken,
                 const std::string& failure) {
  std::ofstream file(path);
  const bool error = !failure.empty();  // it is no failure of the memory: nothing was tested to its end
  file << format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"millpond check\" tests=\"{}\" failures=\"{}\" "
      "errors=\"{}\" time=\"{:.3f}\">\n",
      std::max<size_t>(1, broken.size() + error), broken.size(), int(error), j.evidence.seconds);
  if (error)
    file << format("  <testcase name=\"program\" classname=\"{}\">\n    <error message=\"{}\"/>\n  </testcase>\n",
                   xml(j.evidence.command), xml(failure));
  else if (broken.empty())
    file << format("  <testcase name=\"memory\" classname=\"{}\"/>\n", xml(j.evidence.command));
  for (const Broken& b : broken)
    file << format("  <testcase name=\"{}\" classname=\"{}\">\n    <failure message=\"{}\"/>\n  </testcase>\n",
                   xml(b.name), xml(j.evidence.command), xml(b.text));
  file << "</testsuite>\n";
  if (!file.flush()) throw Error(Code::kFile, format("--junit: {} cannot be written", path)).hint("check the path");
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// What has no line of its own is shown at the program: code scanning refuses results without a place. The script,
/// otherwise the tests or the module that are named, otherwise the program itself as it was called; of "-c" there is no
/// file, and the folder in which the check was started stands for it.
std::string place_of(const std::vector<std::string>& command) {
  for (const std::string& word : command)
    if (word.ends_with(".py") && is_file(word)) return from_here(word);
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string word = command[i].substr(0, command[i].find("::"));  // pytest names a test so
    if (word.ends_with(".py") && is_file(word)) return from_here(word);
    if (command[i - 1] != "-m") continue;
    std::string module = command[i];
    for (char& c : module) c = c == '.' ? '/' : c;
    for (const std::string& file : {module + ".py", module + "/__main__.py"})
      if (is_file(file)) return file;
  }
  if (const std::string own = from_here(fs::absolute(command[0]).lexically_normal().string());
      !own.starts_with('/') && is_file(own))
    return own;
  return ".";
}

void write_sarif(const std::string& path, const Judged& j, const std::vector<Broken>& broken,
                 const std::vector<std::string>& command, int code) {
  std::vector<report::SarifResult> results;
  const std::string program = place_of(command);
  for (const Broken& b : broken) {
    report::SarifResult r{b.name, b.text, b.name == "unsure" ? "warning" : "error", program, "", "", "", 1};
    if (const verdict::Finding* f = b.finding) {
      if (!f->cause.empty()) r.rule = f->cause;
      r.help = f->fix;
      if (f->blame && is_file(f->blame->file))
        r.file = from_here(f->blame->file), r.line = f->blame->line, r.function = f->blame->function,
        r.snippet = f->blame->snippet;
    }
    results.push_back(std::move(r));
  }
  JsonTarget{path}.write(report::sarif(results, code != kProgramFailed, j.evidence.exit_code));
}

// A value in an annotation of GitHub: its own escapes.
std::string annotation(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%')
      out += "%25";
    else if (c == '\r')
      out += "%0D";
    else if (c == '\n')
      out += "%0A";
    else if (property && c == ':')
      out += "%3A";
    else if (property && c == ',')
      out += "%2C";
    else
      out += c;
  }
  return out;
}

std::vector<Broken> broken_limits(const CheckArguments& a, const Judged& j, const Json& before) {
  std::vector<Broken> list;
  const Suppressions suppressed(a.suppressions);
  const bool limited = !a.max_growth.empty();
  const GrowthLimit most = limited ? parse_growth(a.max_growth) : GrowthLimit{};
  for (const verdict::Finding& f : j.verdict.findings) {
    if (suppressed.covers(f)) continue;
    if (limited) {
      const bool same = most.unit.empty() || most.unit == to_string(f.unit);
      if (f.kind == verdict::Kind::kLeak && same && f.bytes_per_unit > most.bytes)
        list.push_back({"growth",
                        format("memory grows by {} per {}; at most {} is allowed: {}", Bytes{int64_t(f.bytes_per_unit)},
                               to_string(f.unit), a.max_growth, f.title),
                        &f});
      if (same || f.kind != verdict::Kind::kLeak) continue;
    }
    if (f.kind == verdict::Kind::kLeak && f.sets_verdict)
      list.push_back({"leak", f.title.empty() ? j.verdict.sentence : f.title, &f});
  }
  const report::Peak peak = report::whole_peak(j.evidence);
  if (!a.max_peak.empty())
    if (const Bytes limit = parse_bytes(a.max_peak); peak.bytes > limit)
      list.push_back({"peak", format("{} is {}; at most {} is allowed", peak.name(), peak.bytes, limit), nullptr});
  if (before.contains("peak_rss")) {
    // A baseline of before told of the main process alone: that is then what is compared.
    const bool whole = before.contains("peak");
    const report::Peak now = whole ? peak : report::Peak{j.evidence.peak_rss};
    const Bytes then{before[whole ? "peak" : "peak_rss"].get<int64_t>()};
    if (double(now.bytes.value) > double(then.value) * (1 + a.tolerance / 100))
      list.push_back({"baseline",
                      format("{} is {}; the baseline has {} and {:g} % more are allowed", now.name(), now.bytes, then,
                             a.tolerance),
                      nullptr});
  }
  return list;
}

int run_check(const CheckArguments& a, const std::vector<std::string>& command) {
  if (!a.max_growth.empty()) parse_growth(a.max_growth);  // before an hour of training, not after it
  if (!a.max_peak.empty()) parse_bytes(a.max_peak);
  const Suppressions early(a.suppressions);
  Json before = Json::object();
  if (!a.baseline.empty() && !a.write_baseline) {
    std::ifstream file(a.baseline);
    before = Json::parse(file, nullptr, false);
    const auto wrong = [&](const char* key) { return before.contains(key) && !before[key].is_number(); };
    if (!before.is_object() || wrong("peak_rss") || wrong("peak"))
      throw Error(Code::kFile, format("--baseline: {} is not what --write-baseline writes", a.baseline))
          .hint("write it again with --write-baseline");
  }
  const watch::Result result = watch_program(a.watch, command);
  const Judged j = judge_result(result);
  const bool failed = result.ending.exit_code != 0;
  const std::string ended = format("the program ended with {}", result.ending.exit_code);
  std::vector<Broken> broken = broken_limits(a, j, before);
  const bool unsure = j.verdict.kind == verdict::Kind::kUnsure && !a.allow_unsure;
  const int code = !broken.empty() ? kFailed : failed ? kProgramFailed : unsure ? kUnsure : kOk;
  if (code == kUnsure)
    broken.push_back({"unsure", format("it cannot be told whether memory leaks: {}", j.verdict.sentence), nullptr});

  Json object = report::doctor_json(j.evidence, j.verdict, j.meta);
  Json limits = Json::array();
  for (const Broken& b : broken) limits.push_back({{"name", b.name}, {"text", b.text}});
  object["check"] = {{"exit_code", code},
                     {"limits", {{"max_growth", a.max_growth}, {"max_peak", a.max_peak}, {"baseline", a.baseline}}},
                     {"broken", limits}};
  object["file"] = result.path;
  report::TextStyle style = text_style(STDERR_FILENO, a.watch.verbose);
  const size_t told = a.watch.verbose ? broken.size() : std::min(broken.size(), kMostTold);
  style.height -= int(2 * told) + (told < broken.size()) + 1;  // what the check itself says below the answer
  if (!a.watch.json.on_stdout()) std::fputs(report::doctor_text(j.evidence, j.verdict, j.meta, style).c_str(), stderr);
  for (const Broken& b : broken) {
    if (!a.watch.json.on_stdout() && size_t(&b - broken.data()) < told)
      std::fputs(report::clipped(report::wrapped(report::shown_lines("millpond check: " + b.text), style.width, 2, 0),
                                 a.watch.verbose ? 0 : 2, style.width)
                     .c_str(),
                 stderr);
    if (!a.github) continue;
    std::string where;
    if (b.finding && b.finding->blame)
      where = format(" file={},line={}", annotation(from_here(b.finding->blame->file), true), b.finding->blame->line);
    std::fprintf(stderr, "::%s%s::%s\n", code == kUnsure ? "warning" : "error", where.c_str(),
                 annotation(b.text, false).c_str());
  }
  if (!a.watch.json.on_stdout()) {
    if (told < broken.size())
      std::fprintf(stderr, "millpond check: and %zu more (-v tells all)\n", broken.size() - told);
    std::fputs(file_line(result.path, style, false).c_str(), stderr);
    std::fprintf(stderr, "millpond check: %s\n",
                 code == kOk       ? "passed"
                 : code == kFailed ? "failed"
                 : code == kUnsure ? "unsure (--allow-unsure lets this pass)"
                                   : ended.c_str());
  }
  a.watch.json.write(object);
  if (!a.junit.empty()) write_junit(a.junit, j, broken, failed ? ended : "");
  if (!a.sarif.empty()) write_sarif(a.sarif, j, broken, command, code);
  if (a.write_baseline)
    JsonTarget{a.baseline}.write({{"peak", report::whole_peak(j.evidence).bytes.value},
                                  {"peak_rss", j.evidence.peak_rss.value},
                                  {"verdict", object["verdict"]},
                                  {"command", j.evidence.command}});
  return code;
}

}  // namespace

static void add_check(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("check", "Watch a program and end with 1 if it leaks or breaks a limit, for CI");
  auto a = std::make_shared<CheckArguments>();
  add_watch_options(*sub, a->watch);
  sub->add_option("--max-growth", a->max_growth,
                  "Growth that is allowed: 1MB/epoch, 10kB/batch; without it no leak at all is");
  sub->add_option("--max-peak", a->max_peak,
                  "The most resident memory that is allowed, of all processes together: 2GiB");
  sub->add_option("--suppress", a->suppressions,
                  "A file with what is known: a cause (C14), a file, file:line, or `function NAME` on each line");
  CLI::Option* baseline =
      sub->add_option("--baseline", a->baseline, "Compare the peak with an earlier run's, kept in this file");
  sub->add_flag("--write-baseline", a->write_baseline, "Write that file from this run")->needs(baseline);
  sub->add_option("--tolerance", a->tolerance, "Per cent above the baseline that are allowed (10)");
  sub->add_flag("--allow-unsure", a->allow_unsure,
                "Pass also where it cannot be told whether memory leaks; without it the exit code is 4 then");
  sub->add_option("--junit", a->junit, "Write the result as JUnit XML");
  sub->add_option("--sarif", a->sarif, "Write the result as SARIF 2.1.0, for code scanning");
  sub->add_flag("--github", a->github, "Print annotations for GitHub");
  sub->prefix_command();
  sub->footer(R"(
Examples:
  millpond check -- python train.py
  millpond check --max-growth 1MB/epoch --max-peak 2GiB -- python train.py
  millpond check --baseline memory.json --write-baseline -- python train.py
  millpond check --baseline memory.json --junit memory.xml --github -- pytest tests
  millpond check --sarif memory.sarif -- python train.py --epochs 12

Exit codes: 0 no leak and every limit kept, 1 a leak or a limit exceeded, 2 wrong usage, 3 the program itself failed, 4 it cannot be told (--allow-unsure makes
this 0).)");
  sub->callback(
      [sub, a, &chosen] { chosen.run = [sub, a, &chosen] { return run_check(*a, program_of(*sub, chosen, false)); }; });
}
constinit const Command commands::check{60, add_check};

}  // namespace millpond::cli
