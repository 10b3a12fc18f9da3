#include "watch/collector.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <list>
#include <map>
#include <set>

#include "base/format.h"
#include "base/utf8.h"
#include "millpond/error.h"
#include "runfile/writer.h"
#include "watch/gpu.h"
#include "watch/limits.h"
#include "watch/notes.h"
#include "watch/processes.h"
#include "watch/room.h"
#include "watch/shared_view.h"
#include "watch/sources.h"
#include "watch/symbols.h"
#include "watch/tree.h"

namespace millpond::watch {
namespace {

namespace fs = std::filesystem;
using runfile::RowId;

constexpr double kTick = 0.05, kTreeEvery = 1, kTreeEveryFirst = 0.25, kTreeEverySoon = 0.1, kMappingsEvery = 1,
                 kTimerEvery = 0.25, kCommitEvery = 2;
constexpr size_t kMostMarks = 512, kMostSites = 300, kMostStates = 200000, kMostPhases = 20000;
constexpr int64_t kMostPoints = 4000, kMostMappings = 16000;
constexpr size_t kMostProcesses = 256, kMostThreads = 1024, kMostChurning = 200;
constexpr uint64_t kLeastChurned = 8 << 20;
constexpr double kMappingsLongest = 5;   // seconds without a look, however little memory moves
constexpr double kMappingsShare = 0.01;  // of the time that one look and the pause after it take
constexpr int64_t kMovedLeast = 256 << 10, kMovedShare = 1000;
constexpr size_t kMostNoteBytes =
    16 << 20;  // an agent of ours says less than a megabyte in ten hours; a program may call what the agent calls

uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}

/// Seconds of the processor that this thread took. Not by the clock on the wall: on a busy machine that counts what
/// others do.
double worked() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

/// While it lives, waking up takes no processor from a thread of the program that is at work: there is one where nobody
/// works, or the next moment when somebody rests. What is started meanwhile does not inherit it.
class BehindTheProgram {
 public:
  BehindTheProgram() : was_ordinary_(sched_getscheduler(0) == SCHED_OTHER) { choose(SCHED_BATCH); }
  ~BehindTheProgram() { choose(SCHED_OTHER); }
  BehindTheProgram(const BehindTheProgram&) = delete;

 private:
  void choose(int policy) const {
    const sched_param none{};
    if (was_ordinary_) (void)sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &none);
  }
  const bool was_ordinary_;
};

/// Of numbers of processes: the inode of our namespace.
uint64_t own_pid_space() {
  struct stat facts{};
  static const uint64_t own = stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
  return own;
}
constexpr double kUnreadyLongest = 2;  // seconds from the making of a probe's file until it can be read
double age_of(const std::string& path) {
  struct stat facts{};
  return stat(path.c_str(), &facts) == 0 ? difftime(time(nullptr), facts.st_mtime) : 0;
}

constexpr int kAddressBits = 47;  // of a process: more than that no amount can be
std::optional<Bytes> known(uint64_t value) {
  return value >> kAddressBits ? std::nullopt : std::optional(Bytes{int64_t(value)});
}

/// As it was started, without arguments where they are not wanted; "process 4711" where that cannot be read.
std::string command_of(Pid pid, bool arguments) {
  std::ifstream file(format("/proc/{}/cmdline", pid.value), std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), {});
  if (words.size() > 4096) words.resize(4096);
  while (!words.empty() && words.back() == '\0') words.pop_back();
  if (!arguments) words.resize(std::min(words.size(), words.find('\0')));
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words.empty() ? format("process {}", pid.value) : words;
}

/// Of the user's own: neither installed packages nor the standard library nor code without a file.
bool users_file(const std::string& file, const std::string& agent) {
  if (file.empty() || file[0] == '<') return file.starts_with("<ipython-input-");
  for (const char* part : {"/site-packages/", "/dist-packages/", "/lib/python3", "/python/millpond/"})
    if (file.find(part) != file.npos) return false;
  return agent.empty() || !file.starts_with(agent);
}

/// A library or interpreter that somebody installed, not a program of the user's.
bool installed_module(const std::string& path) {
  if (path.starts_with("/usr/") || path.starts_with("/lib")) return true;
  for (const char* part : {"-packages/", "/lib/python3", "/bin/python", "/libpython", "/libmillpond_"})
    if (path.find(part) != path.npos) return true;
  return false;
}

}  // namespace

std::string free_name() {
  for (int i = 0; i < 100000; ++i) {
    const std::string name = i == 0 ? "run.pond" : format("run-{}.pond", i + 1);
    if (access(name.c_str(), F_OK) != 0) return name;
  }
  throw Error(Code::kFile, "watch: a hundred thousand run files are in this folder").hint("give a name with -o");
}

namespace {

/// Page tables are walked under a lock that the program wants too when it maps memory: a small share of the time, and
/// some to begin with, as a run may be short. Each kind of look has a budget of its own, so that none takes what
/// another needs: the marks of a child come before its parent's epochs do.
struct Budget {
  double share, start;
  double spent = 0, next = 0;
  bool allows(double t) const { return spent <= share * t + start && t >= next; }
  void took(double seconds, double now, double pause) { spent += seconds, next = now + pause; }
};

/// The marks of one kind that are kept: when there are too many every second one goes, and only every second new one is
/// taken.
struct Kept {
  struct One {
    RowId id;
    size_t states = 0;  // sites alive at it
  };
  std::vector<One> marks;
  size_t states = 0;  // of all
  uint64_t seen = 0, stride = 1;
};

struct Watched {
  Watched(SharedView v, std::string p, RowId id, const Shared& h)
      : view(std::move(v)),
        path(std::move(p)),
        process(id),
        pid{h.pid},
        start_ns(h.start_ns),
        known_pid(h.pid_space == 0 || h.pid_space == own_pid_space()) {}
  std::optional<SharedView> view;  // until the process has ended and was read
  std::string path;                // of the file; empty when it is gone
  Shared last{};                   // counters as they were then
  RowId process;
  Pid pid;
  uint64_t start_ns;
  bool known_pid;  // its number is one of ours too: in another container's it may be anybody's
  bool replaced =
      false;  // by exec: a shell, or the shim that chooses a Python, became the program; what lay in its memory is gone
  std::map<uint32_t, RowId> sites;
  struct Thread {
    std::string name;
    RowId row;
  };
  std::map<uint32_t, Thread> threads;  // by number
  Symbols symbols;
  std::map<std::pair<std::string, uint64_t>, runfile::FrameRow> native;  // (module, offset) as written
  std::map<std::string, Kept> kept;
  std::vector<std::pair<std::string, RowId>> open_phases;
  bool marked = false, ended = false;  // has periods; has said its last
  double next_timer = kTimerEvery;
  Bytes peak;
  double peak_t = -10;
  struct Scanned {
    double t;
    RawScan raw;
    std::map<uint32_t, RowId> sites;  // by stack
  };
  std::optional<Scanned> scan;  // the last one
};

class Collector {
 public:
  explicit Collector(const Options& options) : options_(options), start_ns_(now_ns()) {}

  Result run() {
    Result result;
    Options& o = options_;
    Program program;
    if (!o.attach) {
      if (o.start.command.empty())
        throw Error(Code::kUsage, "watch: no program is named").hint("millpond watch -- python train.py");
      program = find_program(o.start.command[0]);
      if (!program.blind.empty() && !program.hands_on) o.start.probe_library.clear(), o.start.agent_folder.clear();
      o.start.folder = room_.path();
    }
    // A run file that is refused is refused before anything has begun.
    if (o.attach) root_ = *o.attach;
    open_file();
    Patient patient = [&] {
      try {
        return o.attach ? Patient::attach(*o.attach) : Patient::start(o.start, program);
      } catch (...) {
        const std::string path = writer_->path();
        writer_.reset();
        std::error_code ignored;
        fs::remove(path, ignored);
        throw;
      }
    }();
    root_ = patient.pid();
    processes_seen_.emplace(*writer_, options_.arguments);
    processes_seen_->root(root_, elapsed());
    std::error_code nowhere;
    sources_.emplace(*writer_, options_.source, fs::current_path(nowhere).string());
    result.path = writer_->path();
    if (o.opened) o.opened(result.path);
    if (o.attach) {
      const std::optional<std::string> why =
          o.enter ? o.enter(room_.path())
                  : std::optional<std::string>(format("process {} was running already", o.attach->value));
      if (why)
        result.remarks.push_back(*why + ": its resident memory and its children are seen, not where it allocates");
    }
    const double begun = elapsed();  // a debugger may have taken long to let us in
    opening_gpus_ =
        std::async(std::launch::async, Gpus::open);  // may take seconds, and the program's records do not wait

    {
      const BehindTheProgram behind;
      bool running = true;
      while (running) {
        running = !patient.wait(kTick, o.until);
        recording([&] { look(running); });
        if (running && (patient.told_to_leave() || can_be_read(o.until) ||
                        (options_.stop_after && elapsed() - begun >= *options_.stop_after))) {
          result.left_running = true;
          break;
        }
      }
    }
    if (result.left_running && o.attach) {
      if (const std::optional<std::string> why = o.leave ? o.leave() : std::nullopt) result.remarks.push_back(*why);
      recording([&] {
        find_processes(elapsed());
        for (Watched& w : watched_) drain(w, false);  // its last words
      });
    }
    result.ending = patient.ending();
    if (main_pid() == root_) peak_ = std::max(peak_, result.ending.peak);  // what came and went between two looks
    recording([&] {
      for (Watched& w : watched_) last_words(w), name_functions(w), write_scan(w);
    });
    // A launcher that nothing can be loaded into is not what anybody asks about.
    if (!program.blind.empty() && watched_.empty())
      result.remarks.insert(result.remarks.begin(), program.blind), blind_program_ = true;
    recording([&] { finish(result); });
    result.incomplete = incomplete_;
    if (!incomplete_.empty())
      result.remarks.push_back(
          format("the run file could not be written any further, and ends before the program did: {}", incomplete_));
    return result;
  }

 private:
  double elapsed() const { return double(now_ns() - start_ns_) * 1e-9; }
  /// Of a moment that a stranger tells of: not before we began, and not after now.
  double seconds_at(uint64_t t_ns) const {
    return std::clamp(double(int64_t(t_ns - start_ns_)) * 1e-9, 0.0, elapsed());
  }

  void open_file() {
    runfile::Meta meta = runfile::host_facts();
    meta["program"] = "millpond watch";
    std::string command;
    for (const std::string& word : options_.start.command)
      if (command.empty() || options_.arguments) command += (command.empty() ? "" : " ") + word;
    meta["command"] = clean(options_.attach ? command_of(*options_.attach, options_.arguments) : command);
    meta["started"] = runfile::time_now();
    const FreeMemory free = memory_free_now();
    meta["limit.name"] = free.limited_by;
    meta["limit.bytes"] = std::to_string(free.bytes.value + resident(root_).value_or(Bytes{}).value);
    if (!options_.start.probes) meta["probes"] = "off";
    if (options_.limit) meta["limit.asked"] = std::to_string(options_.limit->value);
    // Two that start at once may want the same name: the next one is free.
    for (int tries = 1;; ++tries) {
      try {
        writer_.emplace(options_.out.empty() ? free_name() : options_.out, meta,
                        runfile::WriterOptions{.force = options_.force});
        return;
      } catch (const Error& e) {
        // The program has not been started: the command line is to be changed, as with any other wrong option.
        if (!options_.out.empty() || tries == 3) throw Error(Code::kUsage, e.text()).hint(e.hint());
      }
    }
  }

  static bool can_be_read(int fd) {
    pollfd source{fd, POLLIN, 0};
    return fd >= 0 && poll(&source, 1, 0) > 0;
  }

  /// The disk may be full: then nothing more is recorded, and the program goes on as before.
  template <class Work>
  void recording(Work work) {
    if (!incomplete_.empty()) return;
    try {
      work();
    } catch (const Error& e) {
      incomplete_ = e.what();
    }
  }

  void look(bool running) {
    const double t = elapsed();
    if (running) look_at_memory(t);
    if (t >= next_scan_ || !running) {
      const bool more = find_processes(t);
      next_scan_ = t + (more ? 0 : t < 5 ? 0.1 : 0.5);  // where one came others may follow
    }
    for (Watched& w : watched_) drain(w, running);
    if (running) retire_ended();
    const bool gpus_came = take_gpus();
    const bool joined = watched_.size() != known_;  // by fork, or a program of its own: no need to wait for the second
    if (running && (t >= next_tree_ || joined)) {
      look_at_tree(t);
      next_tree_ = elapsed() + (t < 3 && had_children_ ? kTreeEverySoon : t < 10 ? kTreeEveryFirst : kTreeEvery);
      known_ = watched_.size();
    } else if (running && gpus_came)
      look_at_gpus(t, process_tree(root_));
    if (running) timer_marks(t);
    if (t >= next_commit_) writer_->commit(), next_commit_ = t + kCommitEvery;
    if (options_.tell && t >= next_tell_) options_.tell(progress(t)), next_tell_ = t + 1;
  }

  // ---- from outside ----
  void look_at_memory(double t) {
    const std::optional<Bytes> rss = resident(main_pid());
    if (!rss || rss->value == 0) return;  // a zombie, about to be waited for
    rss_ = *rss;
    peak_ = std::max(peak_, *rss);
    if (t >= next_totals_) {
      next_totals_ = t + (t < 10 ? 0.2 : 1);  // a short run ends soon after it has loaded its libraries
      const std::optional<MemoryTotals> now = totals_of_status();
      if (now && now->resident.value > 0)
        swap_ = now->swap, files_ = now->file + now->shared,
        peak_ = std::max(peak_, now->peak);  // a zombie has none of it
    }
    if (t < next_point_) return;
    next_point_ = t + point_every_;
    writer_->add(runfile::OsRow{.t = t,
                                .phase = {},
                                .rss = rss,
                                .peak_rss = {},
                                .pss = {},
                                .private_dirty = {},
                                .swap = swap_,
                                .heap_in_use = {},
                                .heap_free = {},
                                .explained = {},
                                .process = processes_seen_->row_of(main_pid())});
    if (++points_ > kMostPoints) points_ = writer_->thin_os_series(), point_every_ *= 2;
  }

  void look_at_tree(double t) {
    const std::vector<TreeProcess> facts = process_tree_facts(root_);
    std::vector<Pid> tree;
    for (const TreeProcess& p : facts) tree.push_back(p.pid);
    processes_ = int(tree.size());
    const bool children = tree.size() > 1;
    const TreeMemory m =
        tree_memory(tree, children && timed_.allows(t) ? &timed_ : nullptr, t < 3 ? kTreeEverySoon : kTreeEveryFirst);
    look_at_gpus(t, tree);
    processes_seen_->look(t, facts, m, gpus_ ? gpus_->devices() : std::vector<Gpu>());
    if (children || had_children_) {
      writer_->add(runfile::TreeRow{t, m.processes, m.rss, m.private_dirty, m.pss, processes_seen_->row_of(root_)});
      if (++tree_points_ > kMostPoints) tree_points_ = writer_->thin_tree_series();
    }
    had_children_ = had_children_ || children;
    if (const std::optional<OwnLimit> limit = own_limit(main_pid()))
      own_limit_ = limit;  // a program may set one at any time
    look_at_mappings(t, tree, m);
    room_.look(held_in(room_.path()));
  }

  /// Whether the tree's resident memory, and what lies in /dev/shm, is what it was at the last look at mappings. Walking
  /// all page tables of a large framework takes ten milliseconds, and tells nothing new then.
  bool mapped_as_before(double t, const TreeMemory& m) {
    struct statvfs shared{};
    const bool there = statvfs("/dev/shm", &shared) == 0;
    const Bytes free{there ? int64_t(shared.f_bfree * shared.f_frsize) : 0};
    const int64_t least = std::max(kMovedLeast, looked_at_.rss.value / kMovedShare);
    if (t < looked_at_.t + kMappingsLongest && std::abs((m.rss - looked_at_.rss).value) < least &&
        std::abs((free - looked_at_.shared_free).value) < kMovedLeast)
      return true;
    looked_at_ = {t, m.rss, free};
    return false;
  }

  void look_at_mappings(double t, const std::vector<Pid>& tree, const TreeMemory& m) {
    if (!mapped_.allows(t) || mapped_as_before(t, m)) return;
    const double spent = mapped_.spent;
    std::set<std::string> shared_files;
    const auto write = [&](runfile::MappingRow row, RowId process) {
      row.t = t, row.process = process;
      writer_->add(row);
      ++mapping_points_;
    };
    bool whole = true;
    for (const Pid pid : tree) {
      if (!processes_seen_->has_series(pid)) continue;
      whole = whole && mapped_.spent <= mapped_.share * t + mapped_.start;
      if (!whole) break;
      const double before = worked();
      for (runfile::MappingRow& row : mappings_by_kind(pid, room_.path(), shared_files))
        write(std::move(row), processes_seen_->row_of(pid));
      mapped_.took(worked() - before, 0, 0);
    }
    if (whole && !options_.attach) {
      std::map<std::string, Bytes> loose;
      runfile::MappingRow files = shared_files_since("/dev/shm", started_, room_.path(), shared_files, &loose);
      // Others of this user's programs have files there too: only those count that a process of the tree was seen to
      // have open.
      if (!loose.empty())
        for (const Pid pid : tree) open_files(pid, "/dev/shm/", opened_);
      for (const auto& [path, held] : loose)
        if (opened_.contains(path)) files.pss += held, loose_files_[path] = held;
      NamelessFiles nameless;
      for (const Pid pid : tree) nameless_files(pid, "/dev/shm/", nameless);
      for (const auto& [_, file] : nameless)
        if (!shared_files.contains(file.link) && !file.link.starts_with(room_.path())) {
          files.mapped += file.size, files.resident += file.held, files.private_ += file.held, files.pss += file.held;
          if (loose_files_.size() < kMostLoose) loose_files_[file.link] = file.held;
        }
      had_shared_files_ = had_shared_files_ || files.resident.value > 0;
      if (had_shared_files_) {
        files.t = t;
        write_held_back_files();
        held_back_ = files;
      }
    }
    if (mapping_points_ > kMostMappings) mapping_points_ = writer_->thin_mapping_series(), mapping_every_ *= 2;
    mapped_.next =
        elapsed() + std::max(t < 10 ? mapping_every_ / 2 : mapping_every_, (mapped_.spent - spent) / kMappingsShare);
  }

  /// What lies in shared memory is written one look later: a program that is about to end gives it back, and that is its
  /// end and not its course.
  void write_held_back_files() {
    if (!held_back_) return;
    files_told_ = held_back_->pss;
    writer_->add(*held_back_);
    ++mapping_points_;
    held_back_.reset();
  }

  /// True once: when they can be asked.
  bool take_gpus() {
    if (!opening_gpus_.valid() || opening_gpus_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return false;
    gpus_ = opening_gpus_.get();
    return gpus_ != nullptr;
  }

  void look_at_gpus(double t, const std::vector<Pid>& tree) {
    if (!gpus_) return;
    gpus_->look(tree);
    const bool point = gpu_looks_++ % gpu_stride_ == 0;
    gpu_rows_.resize(gpus_->devices().size());
    for (size_t i = 0; i < gpu_rows_.size(); ++i) {
      const Gpu& gpu = gpus_->devices()[i];
      if (!gpu.answered) continue;
      const runfile::GpuRow row{int64_t(i), clean(gpu.name), gpu.total, gpu.used_peak, gpu.by_tree_peak};
      if (std::optional<runfile::GpuRow>& last = gpu_rows_[i];
          !last || last->used_peak != row.used_peak || last->by_tree_peak != row.by_tree_peak)
        writer_->put(row), last = row;
      if (point)
        writer_->add(runfile::GpuPointRow{t, int64_t(i), gpu.used, gpu.by_tree, processes_seen_->row_of(root_)}),
            ++gpu_points_;
    }
    if (gpu_points_ > kMostPoints) gpu_points_ = writer_->thin_gpu_series(), gpu_stride_ *= 2;
  }

  // Without smaps_rollup, which would walk the page tables.
  std::optional<MemoryTotals> totals_of_status() const {
    std::string text;
    if (FILE* file = fopen(format("/proc/{}/status", main_pid().value).c_str(), "re")) {
      char buffer[4096];
      text.assign(buffer, fread(buffer, 1, sizeof buffer, file));
      fclose(file);
      return parse_totals(text, "");
    }
    return {};
  }

  /// `budget`: that of a detailed look; null: none is made.
  TreeMemory tree_memory(const std::vector<Pid>& tree, Budget* budget, double pause) {
    const double before = worked();
    TreeMemory memory = memory_of(tree, budget);
    if (const std::set<Pid> busy = budget ? walked(tree) : std::set<Pid>(); !busy.empty()) {
      memory.private_dirty = memory.pss = {};
      for (ProcessMemory& one : memory.each)
        if (busy.contains(one.pid)) one.private_dirty = one.pss = {};
    }
    if (budget) budget->took(worked() - before, elapsed(), pause);
    return memory;
  }

  /// The process whose memory is the story: the one with an agent and most marks, otherwise the one that was started,
  /// or where that is a launcher into which nothing can be loaded the one that was seen longest.
  Pid main_pid() const {
    const Watched *best = nullptr, *longest = nullptr;
    uint64_t most = 0, looks = 0;
    bool inside = false;
    for (const Watched& w : watched_) {
      uint64_t n = 0, all = 0;
      for (const auto& [kind, kept] : w.kept) {
        all += kept.seen;
        if (kind != "timer" && kind != "task" && kind != "request") n += kept.seen;
      }
      if (n > most) most = n, best = &w;
      if (all > looks) looks = all, longest = &w;
      inside = inside || w.pid == root_;
    }
    return best ? best->pid : longest && !inside ? longest->pid : root_;
  }

  // ---- from inside ----
  /// True when there was one that was not known.
  bool find_processes(double t) {
    struct Found {
      SharedView view;
      std::string path;
      Shared header;
    };
    std::list<Found> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(room_.path(), error)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".probe")) continue;
      if (std::any_of(watched_.begin(), watched_.end(), [&](const Watched& w) { return w.path == path; })) continue;
      const bool ended = has_ended({std::atoi(entry.path().filename().c_str())});
      const bool too_many = watched_.size() + found.size() >= kMostProcesses;
      if (too_many) ++beyond_;
      std::optional<SharedView> view = too_many ? std::nullopt : SharedView::open(path);
      if (!view) {
        if (ended && (too_many || age_of(path) > kUnreadyLongest)) remove_file(path, 0);
        continue;
      }
      const Shared h = view->header();
      found.push_back({std::move(*view), path, h});
    }
    found.sort([](const Found& a, const Found& b) {
      return a.header.start_ns < b.header.start_ns;
    });  // programs that follow each other in one process by exec
    for (auto& [view, path, h] : found) {
      const RowId process = processes_seen_->inside({h.pid}, {h.parent}, std::min(t, seconds_at(h.start_ns)),
                                                    h.forked == 1, known(h.inherited).value_or(Bytes{}));
      Watched& added = watched_.emplace_back(std::move(view), path, process, h);
      for (Watched& w : watched_)
        if (w.pid == added.pid && w.process.value != process.value)
          (w.start_ns < added.start_ns ? w : added).replaced = true;
    }
    return !found.empty();
  }

  /// What an ended process left is read and given back at once: many short ones would fill shared memory otherwise.
  void retire_ended() {
    for (Watched& w : watched_) {
      if (!w.view || (!w.replaced && (!w.known_pid || !has_ended(w.pid)))) continue;
      drain(w, false);
      last_words(w);
    }
  }
  void remove_file(const std::string& path, uint64_t from_pool) {
    if (unlink(path.c_str()) == 0) room_.gave_back(from_pool);
  }

  void drain(Watched& w, bool running) {
    if (!w.view) return;
    for (int i = 0; i < (running ? 2000 : 1000000); ++i) {
      std::optional<RawRecord> r = w.view->next();
      if (!r) return;
      switch (r->kind) {
        case kRecordMark:
          take(w, r->mark, seconds_at(r->t_ns));
          break;
        case kRecordNote:
          take_note(w, r->note, seconds_at(r->t_ns));
          break;
        case kRecordModule:
          w.symbols.add(r->module);
          break;
        case kRecordScan:
          take_scan(w, r->scan, seconds_at(r->t_ns));
          break;
      }
    }
  }

  void take_note(Watched& w, const std::string& text, double t) {
    note_bytes_ += text.size();
    std::optional<ReadNote> note =
        note_bytes_ > kMostNoteBytes
            ? std::nullopt
            : read_note(clean(text), {.source = options_.source, .arguments = options_.arguments});
    if (!note) {
      ++lost_notes_;
      return;
    }
    if (note->process) processes_seen_->told(w.process, note->process->how, note->process->label);
    if (note->source) sources_->take(std::move(*note->source));
    for (runfile::PoolRow& row : note->pools) {
      row.t = t, row.process = w.process;
      writer_->add(row);
      if (++pool_points_ > kMostPoints) pool_points_ = writer_->thin_pool_series();
    }
    for (const ToldLine& told : note->lines)
      if (users_file(told.file, options_.start.agent_folder))
        sources_->want(told.file, told.function, told.line, false, Sources::Why::kTold);
    if (!note->text.empty() && !writer_->add(runfile::NoteRow{t, w.process, note->text})) ++lost_notes_;
  }

  /// The last one counts. Places get their rows while the process is there, variables their names when it has ended.
  void take_scan(Watched& w, const RawScan& scan, double t) {
    w.scan.emplace(Watched::Scanned{t, scan, {}});
    const auto place = [&](uint32_t stack) {
      if (stack < kStacks && !w.scan->sites.contains(stack))
        if (const std::optional<RowId> site = site_of(w, stack)) w.scan->sites[stack] = *site;
    };
    for (const ScanGroup& g : scan.groups) {
      place(g.stack);
      for (const uint32_t block : g.blocks) place(block);
    }
  }

  void write_scan(Watched& w) {
    const char* const why = w.last.no_scan == kNoScanTables
                                ? "the page tables of a child would take too much of the free memory"
                            : w.last.no_scan == kNoScanTime ? "it would take more than 1 % of the time"
                            : w.last.no_scan == kNoScanDied ? "the child that looked for them died"
                                                            : nullptr;
    if (!w.scan && why)
      writer_->add(runfile::NoteRow{elapsed(), w.process, format(R"({{"note": "scan", "refused": "{}"}})", why)});
    if (!w.scan) return;
    const std::string note =
        scan_note(w.scan->raw, w.scan->sites, [&](uint64_t address) { return w.symbols.variable(address); });
    if (!writer_->add(runfile::NoteRow{w.scan->t, w.process, clean(note)})) ++lost_notes_;
    w.scan.reset();
  }

  void take(Watched& w, const RawMark& m, double t) {
    const std::string kind = clean(m.kind), name = clean(m.name);
    if (m.flags & kMarkEnd) {
      const auto at =
          std::find_if(w.open_phases.rbegin(), w.open_phases.rend(), [&](const auto& p) { return p.first == kind; });
      if (at != w.open_phases.rend()) {
        const auto inner = at.base() - 1;
        for (auto p = inner; p != w.open_phases.end(); ++p) writer_->end_phase(p->second, t);
        w.open_phases.erase(inner, w.open_phases.end());
      }
    }
    if (m.flags & kMarkBegin && phases_ < kMostPhases) {
      ++phases_;
      const RowId parent = w.open_phases.empty() ? RowId{} : w.open_phases.back().second;
      w.open_phases.emplace_back(kind, writer_->begin_phase(kind, name, m.index, parent, t));
    }
    if (!(m.flags & (kMarkPeriod | kMarkSnapshot))) return;
    if (const std::optional<Bytes> rss = known(m.rss); rss && w.pid == main_pid()) peak_ = std::max(peak_, *rss);
    if (m.flags & kMarkPeriod) {
      w.marked = true;
      last_mark_ = kind == "line" ? name : format("{} {}", kind, m.index);
      note_growth(w, kind, m.rss);
    }
    keep(w, kind, name, m.index, m.flags & kMarkPeriod, m, t);
    if (kind == "end") w.ended = true;
  }

  void keep(Watched& w, const std::string& kind, const std::string& name, int64_t index, bool period, const RawMark& m,
            double t) {
    Kept& k = w.kept[kind];
    if (k.seen++ % k.stride != 0 && kind != "end" && kind != "peak") return;
    runfile::MarkRow row{.id = {},
                         .process = w.process,
                         .t = t,
                         .kind = kind,
                         .name = name,
                         .index = index,
                         .period = period,
                         .rss = m.rss ? known(m.rss) : std::nullopt,
                         .heap_in_use = known(m.heap_in_use),
                         .heap_free = known(m.heap_free),
                         .heap_mapped = known(m.heap_mapped),
                         .python_arenas = known(m.python_arenas),
                         .private_dirty = {},
                         .pss = {},
                         .processes = processes_,
                         .units = {}};
    for (int i = 0; i < kUnitsUsed; ++i)
      row.units.push_back(int64_t(std::min<uint64_t>(m.units[i], uint64_t{1} << 62)));
    // At the rounds of the process whose memory is the story: those of its workers, and seconds, come at any moment of
    // them.
    if (processes_ > 1 && period && rounds_.allows(t) && w.pid == main_pid() && (kind != "timer" || !w.marked)) {
      const TreeMemory tree = tree_memory(process_tree(root_), &rounds_, kTreeEverySoon);
      row.private_dirty = tree.private_dirty, row.pss = tree.pss, row.processes = tree.processes;
      processes_seen_->memory(t, tree);
    }
    if (!m.sites.empty()) {
      uint64_t alive = 0;
      for (const RawSite& s : m.sites) alive += std::min(s.bytes, uint64_t{1} << kAddressBits);
      if (const std::optional<Bytes> bytes = known(alive)) processes_seen_->alive(w.process, *bytes);
    }
    if (row.heap_in_use)
      processes_seen_->in_use(
          w.process, *row.heap_in_use + row.heap_mapped.value_or(Bytes{}) + row.python_arenas.value_or(Bytes{}));
    const std::vector<runfile::SiteStateRow> alive = states(w, m.sites);
    k.marks.push_back({writer_->add(row, alive), alive.size()});
    k.states += alive.size();
    states_ += alive.size();
    if (k.marks.size() > kMostMarks) thin(k);
    while (states_ > kMostStates) {
      Kept* largest = nullptr;
      for (Watched& other : watched_)
        for (auto& [name_of_kind, kept] : other.kept)
          if (kept.marks.size() > 1 && (!largest || kept.states > largest->states)) largest = &kept;
      if (!largest) break;
      thin(*largest);
    }
  }

  /// Every second mark goes, and from now on every second one is taken.
  void thin(Kept& k) {
    std::vector<Kept::One> rest;
    for (size_t i = 0; i < k.marks.size(); ++i) {
      if (i % 2 == 0)
        rest.push_back(k.marks[i]);
      else
        remove(k, k.marks[i]);
    }
    k.marks = std::move(rest);
    k.stride *= 2;
  }
  void remove(Kept& k, const Kept::One& mark) {
    writer_->remove_mark(mark.id);
    k.states -= mark.states;
    states_ -= mark.states;
  }

  std::vector<runfile::SiteStateRow> states(Watched& w, std::vector<RawSite> sites) {
    std::sort(sites.begin(), sites.end(), [](const RawSite& a, const RawSite& b) { return a.bytes > b.bytes; });
    if (sites.size() > kMostSites) sites.resize(kMostSites);
    std::vector<runfile::SiteStateRow> rows;
    for (const RawSite& s : sites) {
      const std::optional<RowId> site = site_of(w, s.stack);
      if (!site || s.bytes >> kAddressBits) continue;
      runfile::SiteStateRow row{{}, *site, Bytes{int64_t(s.bytes)}, s.blocks, {}};
      for (uint64_t kib : s.ages_kib)
        row.ages.push_back(Bytes{int64_t(std::min<uint64_t>(kib, s.bytes / 1024)) * 1024});
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::optional<RowId> site_of(Watched& w, uint32_t stack) {
    if (const auto at = w.sites.find(stack); at != w.sites.end()) return at->second;
    std::vector<runfile::FrameRow> frames;
    for (const RawFrame& f : w.view->frames(stack)) {
      if (f.python) {
        frames.push_back(
            {clean(f.file), clean(f.function), f.line, false, users_file(f.file, options_.start.agent_folder)});
        if (frames.back().user) sources_->want(f.file, f.function, f.line, false, Sources::Why::kSampled);
        continue;
      }
      const NativeName n = w.symbols.place(f.address);
      const runfile::FrameRow row{clean(n.module), n.module.empty() ? "" : format("{}{:x}", runfile::kOffset, n.offset),
                                  0, true, false};
      if (!n.module.empty()) w.native.try_emplace({n.module, n.offset}, row);
      frames.push_back(row);
    }
    if (frames.empty()) return {};
    // A thread is asked for its name while it is there.
    if (const std::optional<Stack> s = w.view->stack(stack); s && s->thread && w.threads.size() < kMostThreads)
      if (const auto [at, fresh] = w.threads.try_emplace(s->thread, Watched::Thread{}); fresh)
        at->second.name = clean(thread_name(w.pid, s->thread));
    return w.sites[stack] = writer_->add(w.process, frames);
  }

  /// A mark that the program did not make itself: what its table says now.
  RawMark mark_from_outside(Watched& w, Bytes rss) {
    RawMark m;
    const Shared h = w.view->header();
    std::copy(std::begin(h.units), std::end(h.units), m.units);
    m.rss = uint64_t(rss.value);
    m.sites = w.view->live(now_ns());
    return m;
  }

  void timer_marks(double t) {
    for (Watched& w : watched_) {
      if (w.ended || w.replaced || !w.view) continue;
      const bool peak = w.pid == main_pid() &&
                        rss_.value > w.peak.value + std::max<int64_t>(w.peak.value / 20, 8 << 20) && t > w.peak_t + 1;
      const bool timer = !w.marked && t >= w.next_timer;
      if (!peak && !timer) continue;
      const Bytes rss = resident(w.pid).value_or(Bytes{});
      if (rss.value == 0) continue;
      const RawMark m = mark_from_outside(w, rss);
      if (timer) {
        note_growth(w, "timer", m.rss);
        keep(w, "timer", "", int64_t(w.kept["timer"].seen), true, m, t);
        w.next_timer = t + kTimerEvery;
      } else {
        Kept& peaks = w.kept["peak"];
        for (const Kept::One& last : peaks.marks) remove(peaks, last);
        peaks.marks.clear();
        keep(w, "peak", "", 0, false, m, t);
        w.peak = rss, w.peak_t = t;
      }
    }
  }

  // The process has ended, or is left alone: what its table still says, and totals of its sites.
  void last_words(Watched& w) {
    if (!w.view) return;
    const double t = elapsed();
    if (!w.ended && !w.replaced)
      keep(w, "end", "killed", 0, false, mark_from_outside(w, w.pid == main_pid() ? rss_ : Bytes{}), t);
    for (const auto& [kind, phase] : w.open_phases) writer_->end_phase(phase, t);
    if (const uint64_t ended = w.view->header().ended_ns) processes_seen_->ended(w.process, seconds_at(ended));
    w.open_phases.clear();
    // What was never alive at a mark can still be most of what was allocated.
    for (const auto& [stack, totals] : w.view->largest_stacks(kMostChurning))
      if (totals.total_bytes >= kLeastChurned) site_of(w, stack);
    for (const auto& [stack, site] : w.sites)
      if (const std::optional<Stack> s = w.view->stack(stack);
          s && !(s->total_bytes >> 57) && !(s->freed_bytes >> 57) && !(s->total_blocks >> 57)) {
        writer_->set_totals(site, Bytes{int64_t(s->total_bytes)}, double(s->total_blocks),
                            Bytes{int64_t(s->freed_bytes)});
        const uint64_t temporary = std::min(uint64_t{s->soon_kib} << 10, s->freed_bytes);
        writer_->add(runfile::SiteDetailRow{site, s->flags & kStackShared ? RowId{} : thread_of(w, s->thread),
                                            Bytes{int64_t(temporary)}});
      }
    write_sizes(w);
    w.last = w.view->header();
    w.view.reset();
    remove_file(w.path, w.last.pool_bytes);
    w.path.clear();
  }

  void name_functions(Watched& w) {
    for (const auto& [place, row] : w.native) {
      const bool library = installed_module(place.first);
      if (library && !options_.start.native) continue;  // seconds for the large ones, and nobody's own line is in them
      const NativeName n = w.symbols.name(place.first, place.second);
      if (n.function.empty() && n.source.empty()) continue;
      // Without debug information the name of the function is what tells.
      const bool user = !library && !of_the_system(n.source) && !of_the_library(n.function);
      if (user && !n.source.empty()) sources_->want(n.source, n.function, n.line, true, Sources::Why::kSampled);
      writer_->rename(row, {clean(n.source.empty() ? n.module : n.source), clean(n.function), n.line, true, user});
    }
  }

  RowId thread_of(Watched& w, uint32_t tid) {
    if (tid == 0) return {};
    auto at = w.threads.find(tid);
    if (at == w.threads.end()) at = w.threads.emplace(tid, Watched::Thread{}).first;
    if (at->second.row == RowId{})
      at->second.row = writer_->add(runfile::ThreadRow{{}, w.process, tid, at->second.name});
    return at->second.row;
  }

  void write_sizes(const Watched& w) {
    if (w.replaced) return;  // what another program in its place allocates has rows of its own
    const Shared h = w.view->header();
    for (int i = 0; i < kSizeClasses; ++i) {
      const SizeTotals& s = h.sizes[i];
      if (s.bytes == 0 || s.bytes >> 57 || s.blocks >> 57) continue;
      const uint64_t freed = std::min(s.freed_bytes, s.bytes);
      writer_->add(runfile::SizeRow{w.process, Bytes{i == 0 ? 0 : int64_t{1} << (i + 4)}, double(s.blocks),
                                    Bytes{int64_t(s.bytes)}, Bytes{int64_t(freed)},
                                    Bytes{int64_t(std::min(s.soon_bytes, freed))}});
    }
  }

  /// A sentence for each reason why processes were seen from outside only.
  std::vector<std::string> why_unseen(const Room::Unseen& unseen) const {
    std::vector<std::string> why;
    const auto say = [&](uint64_t processes, const std::string& what) {
      if (processes > 0)
        why.push_back(format("{} {}: only resident memory was seen there",
                             watched_.empty() ? "the program" : format("{} of its processes", processes), what));
    };
    const std::string place = fs::path(room_.path()).parent_path().string();
    say(unseen.no_room, format("found no room in shared memory ({})", place));
    say(unseen.no_descriptor, "had no descriptor left to open a file for their records");
    say(unseen.unopened, format("could make no file for their records in {} ({})", place,
                                std::generic_category().message(unseen.unopened_error)));
    say(unseen.sanitized, "ran under a sanitizer, which allows nobody before it, and nothing was loaded");
    return why;
  }

  void finish(Result& result) {
    const double t = elapsed();
    Shared sum{};
    bool python = false, agent = false, pypy = false;
    std::set<std::string> unread;  // Pythons whose frames are not known
    for (const Watched& w : watched_) {
      const Shared& h = w.last;
      if (h.python > 0 && h.python_frames & kFramesNotKnown)
        unread.insert(format("Python {}.{}{}", h.python / 100, h.python % 100,
                             h.python_frames & kFreeThreaded ? ", built without the GIL" : ""));
      sum.probe_ns += h.probe_ns, sum.probe_bytes = std::max(sum.probe_bytes, h.probe_bytes), sum.samples += h.samples;
      sum.lost_live += h.lost_live, sum.lost_stacks += h.lost_stacks, sum.lost_codes += h.lost_codes,
          sum.lost_records += h.lost_records;
      python = python || h.python >= 307, agent = agent || h.agent, pypy = pypy || h.python_frames & kPyPy;
      if (w.pid == main_pid()) sum.interval = h.interval, sum.allocator = h.allocator;
    }
    rusage self{};
    getrusage(RUSAGE_SELF, &self);
    const double collector = double(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
                             double(self.ru_utime.tv_usec + self.ru_stime.tv_usec) * 1e-6;
    const auto put = [&](const char* key, const auto& value) { writer_->set_meta(key, format("{}", value)); };
    processes_seen_->finish(t, !result.left_running);
    if (processes_seen_->left_out()) put("processes.left_out", processes_seen_->left_out());
    if (sources_->left_out()) put("sources.left_out", sources_->left_out());
    if (own_limit_) put("limit.own.name", own_limit_->name), put("limit.own.bytes", own_limit_->resident.value);
    if (held_back_ && held_back_->pss >= files_told_) write_held_back_files();
    // Each is as large as it was last seen: of those that were removed too.
    if (const auto largest = std::max_element(loose_files_.begin(), loose_files_.end(),
                                              [](const auto& a, const auto& b) { return a.second < b.second; });
        largest != loose_files_.end())
      put("growing_file", clean(largest->first));
    put("peak_rss", peak_.value);
    put("file_rss", files_.value);
    put("main_pid", main_pid().value);
    put("overhead.probe_cpu_s", double(sum.probe_ns) * 1e-9);
    put("overhead.collector_cpu_s", collector);
    put("overhead.probe_bytes", sum.probe_bytes);
    put("sampling.interval", sum.interval);
    put("sampling.samples", sum.samples);
    put("dropped", sum.lost_live + sum.lost_stacks + sum.lost_codes + sum.lost_records + uint64_t(lost_notes_));
    if (!result.left_running) {
      put("exit_code", result.ending.exit_code);
      if (result.ending.signal) put("signal", *result.ending.signal);
    }
    if (python && !agent && !options_.start.agent_folder.empty())
      result.remarks.push_back(
          "Python ran without our agent (started with -I, -E or -S?): no epochs and no holders, native facts only");
    if (pypy)
      result.remarks.push_back("PyPy: only native facts are seen; lines of Python, epochs and holders need CPython");
    if (!unread.empty())
      result.remarks.push_back(
          format("the frames of {}{} are not known to this version of Millpond: where memory is allocated is told "
                 "without lines of Python",
                 *unread.begin(), unread.size() > 1 ? " and others" : ""));
    if (sum.allocator & kAllocatorHidden)
      result.remarks.push_back(
          "another allocator is loaded before ours that brings operator new along: what C++ takes by it is seen to "
          "grow, without its line");
    const Room::Unseen unseen = options_.start.probe_library.empty() ? Room::Unseen{} : room_.unseen();
    const std::vector<std::string> why = why_unseen(unseen);
    result.remarks.insert(result.remarks.end(), why.begin(), why.end());
    if (beyond_ > 0)
      result.remarks.push_back(
          format("more than {} processes: the later ones were seen from outside only", kMostProcesses));
    else if (why.empty() && watched_.empty() && !options_.start.probe_library.empty() && !options_.attach &&
             !blind_program_)
      result.remarks.push_back("nothing could be loaded into the program: only its resident memory was seen");
    if (watched_.empty() && !result.remarks.empty())
      put("blind", result.remarks.front());
    else if (!why.empty())
      put("blind", why.front()), put("blind.partly", 1);
    std::string remarks;
    for (const std::string& r : result.remarks) remarks += (remarks.empty() ? "" : "\n") + r;
    if (!remarks.empty()) put("remarks", remarks);
    writer_->finish(t, result.left_running && options_.until < 0 ? "interrupted"
                       : result.ending.exit_code == 0            ? "ended"
                                                                 : "failed");
  }

  // ---- for the person who waits ----
  void note_growth(const Watched& w, const std::string& kind, uint64_t rss) {
    if (w.pid != main_pid() || !rss) return;
    std::vector<double>& series = growth_[kind];
    series.push_back(double(rss));
    if (series.size() > 9) series.erase(series.begin());
    growth_kind_ = kind;
  }
  Progress progress(double t) const {
    Progress p{t, rss_, peak_, last_mark_, {}, root_};
    if (const auto at = growth_.find(growth_kind_); at != growth_.end() && at->second.size() >= 5) {
      std::vector<double> steps;
      for (size_t i = 1; i < at->second.size(); ++i) steps.push_back(at->second[i] - at->second[i - 1]);
      std::nth_element(steps.begin(), steps.begin() + long(steps.size() / 2), steps.end());
      p.bytes_per_period = steps[steps.size() / 2];
    }
    return p;
  }

  Options options_;
  uint64_t start_ns_;
  Room room_;
  std::optional<runfile::Writer> writer_;
  std::optional<Processes> processes_seen_;
  std::optional<Sources> sources_;
  Pid root_;
  std::list<Watched> watched_;
  Bytes rss_, peak_;
  std::optional<Bytes> swap_;
  std::optional<OwnLimit> own_limit_;
  Bytes files_;  // resident pages that have a file behind them
  double next_point_ = 0, next_totals_ = 0, point_every_ = kTick;
  Budget rounds_{.share = 0.005, .start = 0.4}, timed_{.share = 0.004, .start = 0.3},
      mapped_{.share = 0.002, .start = 0.1};
  time_t started_ = time(nullptr);
  bool had_shared_files_ = false;
  std::map<std::string, Bytes> loose_files_;  // in shared memory, that the program has open and nobody has mapped
  static constexpr size_t kMostLoose = 4096;
  std::optional<runfile::MappingRow> held_back_;  // the last look at files in shared memory
  Bytes files_told_;                              // what the look before it found
  std::set<std::string> opened_;
  double mapping_every_ = kMappingsEvery;
  struct {
    double t = -kMappingsLongest;
    Bytes rss, shared_free;
  } looked_at_;  // the last look at mappings: of the tree, and of /dev/shm
  int64_t mapping_points_ = 0, points_ = 0, tree_points_ = 0, gpu_points_ = 0, pool_points_ = 0;
  std::future<std::unique_ptr<Gpus>> opening_gpus_;
  std::unique_ptr<Gpus> gpus_;
  std::vector<std::optional<runfile::GpuRow>> gpu_rows_;  // by device, as written
  int64_t gpu_looks_ = 0, gpu_stride_ = 1;                // of so many looks one is written
  size_t phases_ = 0, states_ = 0;
  int processes_ = 1, lost_notes_ = 0;
  size_t note_bytes_ = 0;
  bool had_children_ = false, blind_program_ = false;
  double next_tree_ = 0, next_commit_ = kCommitEvery, next_tell_ = 0, next_scan_ = 0;
  size_t known_ = 0;        // processes when the tree was last looked at
  uint64_t beyond_ = 0;     // looks at files of processes that are too many
  std::string incomplete_;  // why the run file could not be written any further
  std::string last_mark_, growth_kind_;
  std::map<std::string, std::vector<double>> growth_;
};

}  // namespace

Result watch(const Options& options) { return Collector(options).run(); }

}  // namespace millpond::watch
