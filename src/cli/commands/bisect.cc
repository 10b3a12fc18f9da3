// millpond bisect -- PROGRAM ...: runs a program again and again, each time with one thing changed from outside, and
// says which change takes its growth away. Its files stay as they are: the agent (millpond_agent/variants.py) changes
// what it calls, or the environment does, and each run has a copy of the working folder to itself (folder_copy.h), so
// that one overwrites nothing of the user's and finds nothing of another run's. 0: something was found, or nothing
// grows; 1: no variant takes the growth away, or nothing could be told; 130: stopped by Ctrl-C.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/format.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/folder_copy.h"
#include "cli/news.h"
#include "report/bisect.h"
#include "report/text.h"
#include "verdict/case.h"
#include "watch/tree.h"

namespace millpond::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kLongest = 60, kShortest = 3;
constexpr size_t kRounds = 8;  // two of warm-up and six to compare

struct Variant {
  const char *name, *done, *owner, *next;
  std::vector<std::pair<std::string, std::string>> environment;  // besides MILLPOND_VARIANT
};

// In the order of how much each tells: the first that takes the growth away is named.
std::vector<Variant> all_variants() {
  const char* flags = std::getenv("XLA_FLAGS");
  return {
      {"callbacks",
       "without the program's own callbacks",
       "one of the program's own callbacks",
       "Take them out of fit one by one, or `millpond watch` it: it names the line.",
       {}},
      {"validation", "without validation", "validation", "Look at what is kept of its data and results.", {}},
      {"pipeline",
       "without shuffle, cache, prefetch",
       "a buffer of the input pipeline (shuffle, cache or prefetch)",
       "Make the buffer smaller, or cache to a file.",
       {}},
      {"one_batch",
       "with one batch over and over",
       "the input",
       "Look at what the data set keeps, and at shapes that change from batch to batch.",
       {}},
      {"gc",
       "with gc.collect after every round",
       "cyclic garbage, which Python collects late,",
       "Break the cycle, or call gc.collect() once an epoch.",
       {}},
      {"eager",
       "with run_eagerly turned round",
       "the compiled step (tracing, compilation)",
       "Look for shapes or Python values that change from call to call.",
       {}},
      {"arenas",
       "with one arena of malloc",
       "the allocator, which keeps what the program freed,",
       "Set MALLOC_ARENA_MAX=1 or MALLOC_TRIM_THRESHOLD_=131072.",
       {{"MALLOC_ARENA_MAX", "1"}, {"MALLOC_TRIM_THRESHOLD_", "131072"}}},
      {"threads",
       "with one thread",
       "memory that belongs to threads",
       "Use fewer threads, or MALLOC_ARENA_MAX.",
       {{"OMP_NUM_THREADS", "1"},
        {"MKL_NUM_THREADS", "1"},
        {"OPENBLAS_NUM_THREADS", "1"},
        {"NUMEXPR_NUM_THREADS", "1"},
        {"TF_NUM_INTRAOP_THREADS", "1"},
        {"TF_NUM_INTEROP_THREADS", "1"},
        {"XLA_FLAGS",
         format("{}{}--xla_cpu_multi_thread_eigen=false", flags ? flags : "", flags && *flags ? " " : "")}}},
      {"cpu",
       "without a GPU",
       "the runtime of the GPU",
       "Look at pinned memory and at what is copied to the host.",
       {{"CUDA_VISIBLE_DEVICES", ""}, {"JAX_PLATFORMS", "cpu"}}},
  };
}

struct BisectArguments {
  std::string out, only, copy_limit = "2GiB";
  double seconds = 0;
  bool verbose = false, in_place = false;
  JsonTarget json;
};

/// The program's output goes to a file while this lives, and it reads nothing; ours still has a way to the terminal.
class Muted {
 public:
  Muted(const std::string& log, bool verbose) {
    std::fflush(stdout);
    if (verbose) return;
    const int to = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
              from = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (to < 0 || from < 0)
      throw Error(Code::kFile, format("bisect: {} cannot be written", log)).hint("give a folder with -o");
    for (int i = 0; i < 3; ++i) {
      saved_[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
      dup2(i == 0 ? from : to, i);
    }
    close(to);
    close(from);
  }
  ~Muted() {
    for (int i = 0; i < 3; ++i)
      if (saved_[i] >= 0) dup2(saved_[i], i), close(saved_[i]);
  }
  Muted(const Muted&) = delete;
  Muted& operator=(const Muted&) = delete;
  int terminal() const { return saved_[2] >= 0 ? saved_[2] : STDERR_FILENO; }

 private:
  int saved_[3] = {-1, -1, -1};
};

/// A folder for run files and output; a temporary one goes when all is told.
struct Folder {
  std::optional<TemporaryFolder> temporary;
  std::string path;
  explicit Folder(const std::string& asked) : path(asked) {
    std::error_code error;
    if (path.empty())
      path = temporary.emplace("bisect", TemporaryFolder::In::kFiles).path();
    else if (!fs::create_directories(path, error) && !fs::is_directory(path, error))
      throw Error(Code::kFile, format("bisect: {} cannot be made", path)).hint("check the path");
  }
};

/// Where the program runs: a fresh copy of this folder each time, or the folder itself.
class Workplace {
 public:
  Workplace(bool in_place, Bytes most) : from_(fs::current_path().string()), most_(most) {
    if (!in_place) temporary_.emplace("bisect", TemporaryFolder::In::kFiles);
  }
  ~Workplace() { leave(); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  /// This process stands there until leave(). `command` with the paths that lie in the folder leading into the copy.
  std::vector<std::string> enter(std::vector<std::string> command) {
    if (!temporary_) return command;
    const std::string outer = format("{}/{}", temporary_->path(), ++runs_);
    there_ = outer + "/" + fs::path(from_).filename().string();  // a program may ask for the name
    std::error_code error;
    if (!fs::create_directories(there_, error))
      throw Error(Code::kFile, format("bisect: {} cannot be made", there_))
          .hint("set TMPDIR to a folder that can be written");
    copy_folder(from_, there_, most_);
    for (std::string& word : command) word = in_copy(word, from_, there_);
    stand(there_);
    return command;
  }
  void leave() {
    if (there_.empty()) return;
    stand(from_);
    std::error_code ignored;
    fs::remove_all(fs::path(there_).parent_path(), ignored);
    there_.clear();
  }

 private:
  static void stand(const std::string& path) {
    if (chdir(path.c_str()) != 0)
      throw Error(Code::kFile, format("bisect: {} cannot be entered", path)).hint("check the folder");
    setenv("PWD", path.c_str(), 1);
  }

  std::string from_, there_;
  Bytes most_;
  std::optional<TemporaryFolder> temporary_;
  int runs_ = 0;
};

/// A program that was left running when its time was up: it and all below it end now.
void end_children() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (int waited = 0; waited < 30; ++waited) {
      const std::vector<Pid> tree = watch::process_tree({getpid()});
      for (const Pid pid : tree)
        if (pid.value != getpid() && (waited == 0 || signal == SIGKILL)) kill(pid.value, signal);
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (watch::process_tree({getpid()}).size() <= 1) return;
      usleep(100000);
    }
  }
}

struct Ran {
  Judged judged;
  bool cut = false;  // its time was up
  watch::Ending ending;
  std::string incomplete;  // why its run file ends before it did; empty: it does not
};

Ran run_once(const BisectArguments& a, Workplace& place, const std::vector<std::string>& command, const Folder& folder,
             const std::string& name, std::vector<std::pair<std::string, std::string>> environment, double seconds) {
  struct Leave {
    Workplace& place;
    ~Leave() { place.leave(); }
  } const leave{place};
  watch::Options w;
  w.start = start_of(place.enter(command));
  w.start.more = std::move(environment);
  w.out = folder.path + "/" + name + ".pond";
  w.force = true;
  w.stop_after = seconds;
  watch::Result result;
  {
    const Muted muted(folder.path + "/" + name + ".log", a.verbose);
    News news(muted.terminal());
    w.tell = [&](const watch::Progress& p) {
      news.tell(p.program, format("millpond bisect: {}: {:.0f} s of {:.0f}, {} {}", name, p.seconds, seconds, p.rss,
                                  report::shown(p.mark, 40)));
    };
    result = watch::watch(w);
  }
  if (result.left_running) end_children();
  return {judge_result(result), result.left_running, result.ending, result.incomplete};
}

void note_result(const Ran& ran, report::VariantRun& v) {
  v.growth = report::growth_seen(ran.judged.evidence);
  v.kind = ran.judged.verdict.kind;
  v.seconds = ran.judged.evidence.seconds;
  if (!ran.incomplete.empty())
    v.no_answer = format("its run file could not be written any further: {}", ran.incomplete);
  if (v.growth.enough || !v.no_answer.empty()) return;
  if (!ran.cut && ran.ending.exit_code != 0)
    v.no_answer = format("the program ended with {} after {:.0f} s", ran.ending.exit_code, v.seconds);
  else
    v.no_answer = format("only {} rounds in {:.0f} s", v.growth.periods, v.seconds);
}

/// Why a variant cannot change anything in this program; empty: it can.
std::string pointless(const std::string& name, const verdict::Notes& notes) {
  const bool keras = notes.has("keras"), torch = notes.has("torch"), tensorflow = notes.has("tensorflow");
  const bool seen = notes.variants.contains(name);
  if (name == "callbacks")
    return seen ? "" : keras ? "fit is given no callbacks of the program's own" : "no Keras in this program";
  if (name == "validation") return seen ? "" : keras ? "fit is given no validation data" : "no Keras in this program";
  if (name == "one_batch")
    return seen             ? ""
           : keras || torch ? "neither fit nor a DataLoader was seen"
                            : "neither Keras nor PyTorch in this program";
  if (name == "pipeline")
    return seen ? "" : tensorflow ? "no shuffle, cache or prefetch of tf.data" : "no tf.data in this program";
  if (name == "eager") return seen ? "" : keras ? "no model was compiled" : "no Keras in this program";
  if (name == "gc") return seen ? "" : "no Python with our agent in it";
  if (name == "cpu")
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 ? "" : "no GPU here";
  return "";
}

/// Long enough for six rounds after warm-up, with room for a slower variant.
double seconds_for(const verdict::Evidence& e) {
  const verdict::Periods periods = verdict::Case(e).periods;  // those the verdict was made by
  if (periods.size() < 5) return kLongest;
  return std::clamp(1.5 * periods.marks[std::min(periods.size(), kRounds + 1) - 1]->t + 1, kShortest, kLongest);
}

std::string last_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg(), from = std::max<std::streamoff>(0, size - 1000);
  std::string text(size_t(size - from), '\0');
  file.seekg(from);
  file.read(text.data(), std::streamsize(text.size()));
  return report::shown_lines(text);
}

std::vector<Variant> chosen_variants(const std::string& only) {
  const std::vector<Variant> all = all_variants();
  if (only.empty()) return all;
  std::vector<Variant> chosen;
  std::string names;
  for (const Variant& v : all) names += (names.empty() ? "" : ", ") + std::string(v.name);
  for (size_t at = 0; at <= only.size();) {
    const size_t end = std::min(only.find(',', at), only.size());
    const std::string name = only.substr(at, end - at);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Variant& v) { return name == v.name; });
    if (found == all.end())
      throw Error(Code::kUsage, format("--only: \"{}\" is no variant", name)).hint("there are: " + names);
    chosen.push_back(*found);
    at = end + 1;
  }
  return chosen;
}

int run_bisect(const BisectArguments& a, const std::vector<std::string>& command) {
  const std::vector<Variant> variants = chosen_variants(a.only);
  watch::find_program(command[0]);  // a mistake is told before folders are made
  const Folder folder(a.out.empty() ? a.out : fs::absolute(a.out).string());
  Workplace place(a.in_place, parse_bytes(a.copy_limit));
  const auto say = [&](const std::string& text) { std::fprintf(stderr, "millpond bisect: %s\n", text.c_str()); };
  const auto interrupted = [](const Ran& r) { return r.ending.signal && *r.ending.signal == SIGINT; };
  report::Bisection b;
  b.base.done = "nothing";
  if (a.in_place) {
    say("every run is in this folder (--in-place): what the program writes there, it writes again with each run");
  } else {
    const FolderCopy copy = measure_folder(
        fs::current_path().string(), parse_bytes(a.copy_limit));  // one that is too large is told before anything runs
    std::string linked;
    for (const std::string& name : copy.linked) linked += (linked.empty() ? "" : ", ") + name;
    say(format(
        "every run is in a fresh copy of this folder ({} in {} {}); what the program writes by absolute paths{} is not "
        "protected",
        copy.size, copy.files, copy.files == 1 ? "file" : "files", linked.empty() ? "" : ", or into " + linked + ","));
  }
  say(format("the program as it is, at most {:.0f} s", a.seconds > 0 ? a.seconds : kLongest));
  const Ran base =
      run_once(a, place, command, folder, "base", {{"MILLPOND_VARIANT", "look"}}, a.seconds > 0 ? a.seconds : kLongest);
  note_result(base, b.base);
  bool stopped = interrupted(base);
  // Where the disk is full the program fails by that too, and its run file has the better reason.
  if (!b.base.growth.enough && base.incomplete.empty() && !base.cut && base.ending.exit_code != 0 && !stopped)
    throw Error(Code::kUnsupported, format("bisect: {}", b.base.no_answer))
        .hint("run it alone first")
        .with("its last words", last_lines(folder.path + "/base.log"));
  if (!base.judged.verdict.findings.empty() && base.judged.verdict.kind == verdict::Kind::kLeak)
    if (const std::optional<verdict::Place>& blame = base.judged.verdict.findings.front().blame)
      // By its name: the program may have run in a copy of its folder.
      b.line = format("{}:{}{}", fs::path(blame->file).filename().string(), blame->line,
                      blame->function.empty() || blame->function == "<module>" ? "" : " in " + blame->function);
  const verdict::Notes seen = verdict::read_notes(base.judged.evidence);
  const double seconds = a.seconds > 0 ? a.seconds : seconds_for(base.judged.evidence);
  if (report::grows(b.base) && !stopped) {
    for (const Variant& v : variants) {
      report::VariantRun& result = b.variants.emplace_back();
      result.name = v.name, result.done = v.done, result.owner = v.owner, result.next = v.next;
      result.not_run = stopped ? "stopped before it" : pointless(v.name, seen);
      if (!result.not_run.empty()) continue;  // told once, below the table
      say(format("{}, at most {:.0f} s", v.done, seconds));
      std::vector<std::pair<std::string, std::string>> environment = v.environment;
      environment.emplace_back("MILLPOND_VARIANT", v.name);
      const Ran ran = run_once(a, place, command, folder, v.name, std::move(environment), seconds);
      note_result(ran, result);
      if (v.environment.empty() && !verdict::read_notes(ran.judged.evidence).variants.contains(v.name) &&
          result.no_answer.empty())
        result.no_answer = "the change found nothing to change";
      stopped = stopped || interrupted(ran);
    }
  }
  Json object = report::bisect_json(b);
  object["command"] = base.judged.evidence.command;
  if (!folder.temporary) object["folder"] = folder.path;
  object["in_place"] = a.in_place;
  if (!a.json.on_stdout()) {
    std::fputs("\n", stdout);
    std::fputs(report::bisect_text(b, text_style(STDOUT_FILENO)).c_str(), stdout);
    if (!folder.temporary)
      std::fprintf(stdout, "Run files and output of the program are in %s.\n", folder.path.c_str());
  }
  a.json.write(object);
  if (stopped) return kInterruptedByUser;
  return b.base.growth.enough && (!report::grows(b.base) || b.culprit()) ? kOk : kFailed;
}

}  // namespace

static void add_bisect(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("bisect", "Run a program in variants and say which one stops its growth");
  auto a = std::make_shared<BisectArguments>();
  sub->add_option("--seconds", a->seconds,
                  "The most that one run may take; without it what the first run needs for six rounds, at most 60")
      ->check(CLI::Range(1.0, 86400.0));
  sub->add_option("--only", a->only,
                  "Some variants alone: callbacks,validation,pipeline,one_batch,gc,eager,arenas,threads,cpu");
  sub->add_option("-o,--out", a->out, "Keep the run files and the program's output in this folder");
  sub->add_flag(
      "--in-place", a->in_place,
      "Run in this folder itself, not in copies of it; the program writes over its files again with each run");
  sub->add_option("--copy-limit", a->copy_limit, "The largest folder that is copied (2GiB)");
  sub->add_flag("--verbose", a->verbose, "Show what the program prints");
  sub->add_option("--json", a->json.where, "All runs as one JSON object to FILE, or - for standard output");
  sub->prefix_command();
  sub->footer(R"(
Examples:
  millpond bisect -- python train.py
  millpond bisect --only callbacks,validation --seconds 30 -- python train.py
  millpond bisect -o runs --json result.json -- python train.py

Each run has a fresh copy of this folder, so nothing in it changes; what the program writes by absolute paths is not protected. Each run is stopped when
its time is up.
Exit codes: 0 a variant stops the growth, or nothing grows; 1 no variant stops it, or too little was seen; 2 wrong usage.)");
  sub->callback([sub, a, &chosen] {
    chosen.run = [sub, a, &chosen] { return run_bisect(*a, program_of(*sub, chosen, false)); };
  });
}
constinit const Command commands::bisect{70, add_bisect};

}  // namespace millpond::cli
