// memory_judge: what a program's memory did, seen from outside only: /proc/<pid> and the page of libmillpond_count.so.
//
//   memory_judge [--json FILE] [--every MS] [--start TEXT] [--end TEXT] [--series] [--no-count] -- millpond train
//   mlp_small
//
// It believes nothing the program says about itself. The program's output (both streams) is passed on to standard
// output; the moment its start TEXT (default "Epoch 1") appears in it is the start of training, the end TEXT after that
// the end (default: the end of the process, when a model may be gone already). Samples every 5 ms (statm, the
// counters); the page tables themselves (smaps) at start and end, every 200 ms, and in the last moment of the process,
// when it has stopped running and its memory is still there (ptrace's stop at exit). JSON on standard error, or in
// FILE; all amounts in bytes. Exit code: the program's own; 125 when it could not be started or the arguments are
// wrong. Memory: bounded; the series keeps at most 1024 points, each the highest of its interval.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "probe/count.h"

namespace {
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string json, start = "Epoch 1", end, count_library;
  double every_ms = 5;
  bool series = false, count = true;
  std::vector<char*> command;
};

std::string slurp(const std::string& file) {
  std::string text;
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char part[16384];
  for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) text.append(part, size_t(n));
  close(fd);
  return text;
}

// "VmHWM:   123 kB" -> bytes; -1 when it is not there.
int64_t field(const std::string& text, const std::string& key) {
  const size_t at = text.find("\n" + key + ":");
  return at == std::string::npos ? -1 : std::strtoll(text.c_str() + at + key.size() + 2, nullptr, 10) * 1024;
}

struct Small {  // one line of statm
  double t = 0;
  int64_t rss = 0, shared = 0;
  int64_t anonymous() const { return rss - shared; }
};

struct Full {
  double t = 0;
  int64_t rss = 0, pss = 0, anonymous = 0, file = 0, private_dirty = 0, huge = 0, swap = 0, hwm = -1;
  std::map<std::string, int64_t> by_mapping;  // resident bytes
  ordered_json json() const {
    return {{"t", t},
            {"rss", rss},
            {"anonymous", anonymous},
            {"file", file},
            {"pss", pss},
            {"private_dirty", private_dirty},
            {"huge_pages", huge},
            {"swap", swap}};
  }
};

class Judge {
 public:
  explicit Judge(Options o) : options_(std::move(o)) {}

  int run() {
    make_page();
    if (!launch()) return 125;
    const auto period =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(options_.every_ms));
    Clock::time_point next = Clock::now();
    while (!ended_) {
      const auto now = Clock::now();
      if (now >= next) {
        take_small();
        if (t() - last_full_ > 0.2) take_full();
        next = std::max(next + period, Clock::now());
      }
      pollfd p{output_, POLLIN, 0};
      const timespec wait = until(next);
      if (ppoll(&p, output_ >= 0 ? 1 : 0, &wait, nullptr) > 0) pass_output();
      reap();
    }
    while (output_ >= 0 && pass_output()) {
    }
    report();
    return signal_ ? 128 + signal_ : exit_;
  }

 private:
  double t() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  timespec until(Clock::time_point when) const {
    const auto ns =
        std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(when - Clock::now()).count());
    return {ns / 1000000000, ns % 1000000000};
  }
  std::string proc(const char* what) const { return "/proc/" + std::to_string(pid_) + "/" + what; }

  void make_page() {
    if (!options_.count) return;
    const int fd = memfd_create("millpond_count", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, kCountPageBytes) != 0) return;
    void* p = mmap(nullptr, kCountPageBytes, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return;
    page_ = static_cast<const CountPage*>(p);
    setenv("MILLPOND_COUNT", ("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd)).c_str(), 1);
  }

  bool launch() {
    int out[2], ready[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0) return false;
    begin_ = Clock::now();
    pid_ = fork();
    if (pid_ == 0) {
      char c;
      close(ready[1]);
      (void)!read(ready[0], &c, 1);  // until the judge holds us
      dup2(out[1], 1);
      dup2(out[1], 2);
      if (page_) {
        const char* before = getenv("LD_PRELOAD");
        setenv("LD_PRELOAD", (options_.count_library + (before && *before ? std::string(":") + before : "")).c_str(),
               1);
      }
      execvp(options_.command[0], options_.command.data());
      std::fprintf(stderr, "memory_judge: %s cannot be started: %s\n", options_.command[0], std::strerror(errno));
      _exit(125);
    }
    // A stop before its memory goes away; without the right to that, the last sample is up to one period old.
    held_ = ptrace(PTRACE_SEIZE, pid_, nullptr, reinterpret_cast<void*>(PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC)) == 0;
    close(ready[0]);
    close(ready[1]);
    close(out[1]);
    output_ = out[0];
    fcntl(output_, F_SETFL, O_NONBLOCK);
    return true;
  }

  void reap() {
    int status = 0;
    rusage use{};
    for (pid_t got; (got = wait4(pid_, &status, WNOHANG | __WALL, &use)) == pid_;) {
      if (!WIFSTOPPED(status)) {
        ended_ = true;
        maxrss_ = int64_t(use.ru_maxrss) * 1024;
        exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        return;
      }
      const int event = status >> 16, sig = WSTOPSIG(status);
      if (event == PTRACE_EVENT_EXIT) {
        while (output_ >= 0 && pass_output()) {
        }
        take_small();
        take_full();
        stopped_at_exit_ = true;
        ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
      } else if (event == PTRACE_EVENT_EXEC) {  // what was there before was another program
        first_.reset(), last_.reset(), latest_.reset();
        series_.clear();
        highest_ = highest_anonymous_ = 0, hwm_ = -1, in_point_ = 0;
        ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
      } else if (event == PTRACE_EVENT_STOP) {
        const bool group = sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
        ptrace(group ? PTRACE_LISTEN : PTRACE_CONT, pid_, nullptr, nullptr);
      } else {
        ptrace(PTRACE_CONT, pid_, nullptr, reinterpret_cast<void*>(long(event ? 0 : sig)));
      }
    }
  }

  bool pass_output() {
    char part[4096];
    const ssize_t n = read(output_, part, sizeof part);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
      close(output_);
      output_ = -1;
    }
    if (n <= 0) return false;
    (void)!write(1, part, size_t(n));
    said_.append(part, size_t(n));
    // First the counters: the program does not wait for us.
    if (!start_ && appeared(options_.start)) {
      counts_at_start_ = counts();
      take_small();
      start_ = take_full();
    }
    if (start_ && !end_ && !options_.end.empty() && appeared(options_.end)) {
      const auto now = counts();
      take_small();
      end_ = take_full();
      counts_at_end_ = now;
    }
    const size_t longest = std::max(options_.start.size(), options_.end.size());
    if (said_.size() > longest) said_.erase(0, said_.size() - longest);
    return true;
  }

  bool appeared(const std::string& text) {
    const size_t at = said_.find(text);
    if (at != std::string::npos) said_.erase(0, at + text.size());
    return at != std::string::npos;
  }

  void take_small() {
    const std::string text = slurp(proc("statm"));
    long long pages = 0, shared = 0;
    if (std::sscanf(text.c_str(), "%*s %lld %lld", &pages, &shared) != 2 || pages == 0)
      return;  // not there, or no memory any more
    const Small s{t(), pages * 4096, shared * 4096};
    ++samples_;
    if (!first_) first_ = s;
    last_ = s;
    highest_ = std::max(highest_, s.rss);
    highest_anonymous_ = std::max(highest_anonymous_, s.anonymous());
    keep(s);
  }

  // Twice as many samples to a point whenever there are too many points.
  void keep(const Small& s) {
    if (in_point_++ == 0)
      series_.push_back(s);
    else if (s.rss > series_.back().rss)
      series_.back() = s;
    if (in_point_ >= per_point_) in_point_ = 0;
    if (series_.size() <= 1024 || in_point_) return;
    for (size_t i = 0; i < series_.size() / 2; ++i)
      series_[i] = series_[2 * i].rss >= series_[2 * i + 1].rss ? series_[2 * i] : series_[2 * i + 1];
    if (series_.size() % 2) series_[series_.size() / 2] = series_.back();
    series_.resize((series_.size() + 1) / 2);
    per_point_ *= 2;
  }

  std::optional<Full> take_full() {
    last_full_ = t();
    const std::string smaps = slurp(proc("smaps"));
    if (smaps.empty()) return std::nullopt;
    Full f;
    f.t = t();
    std::string name;
    for (size_t at = 0; at < smaps.size();) {
      const size_t end = std::min(smaps.find('\n', at), smaps.size());
      const std::string line = smaps.substr(at, end - at);
      at = end + 1;
      unsigned long long from = 0, to = 0;
      int path = 0;
      if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &from, &to, &path) == 2) {
        name = line.substr(std::min(size_t(path), line.size()));
        if (name.empty()) name = "[anonymous]";
        continue;
      }
      const size_t colon = line.find(':');
      if (colon == std::string::npos) continue;
      const std::string key = line.substr(0, colon);
      const int64_t value = std::strtoll(line.c_str() + colon + 1, nullptr, 10) * 1024;
      if (key == "Rss")
        f.rss += value, f.by_mapping[name] += value;
      else if (key == "Pss")
        f.pss += value;
      else if (key == "Anonymous")
        f.anonymous += value;
      else if (key == "Private_Dirty")
        f.private_dirty += value;
      else if (key == "AnonHugePages")
        f.huge += value;
      else if (key == "Swap")
        f.swap += value;
    }
    f.file = f.rss - f.anonymous;  // copied pages of a private file mapping are anonymous memory, as the kernel counts
    f.hwm = field(slurp(proc("status")), "VmHWM");
    hwm_ = std::max(hwm_, f.hwm);
    highest_ = std::max(highest_, f.rss);
    latest_ = f;
    if (!end_) counts_at_end_ = counts();
    return f;
  }

  std::optional<CountPage> counts() const {
    if (!page_ || count_read(&page_->version) != kCountVersion) return std::nullopt;
    CountPage copy;
    std::memcpy(&copy, page_, sizeof copy);
    return copy;
  }

  static ordered_json counts_json(const CountPage& c) {
    static constexpr const char* kNames[] = {
#define MP_HOOK(name, result, parameters, arguments) #name,
#include "probe/hooks.inc"
#undef MP_HOOK
    };
    const auto of = [](const CountOf& o) { return ordered_json{{"calls", o.calls}, {"bytes", o.bytes}}; };
    ordered_json j{{"pid", c.pid},
                   {"allocations", count_allocations(&c)},
                   {"heap_live", int64_t(c.heap_taken.bytes - c.heap_given.bytes)},
                   {"mapped_live", int64_t(c.mapped.bytes - c.unmapped.bytes)},
                   {"heap_taken", of(c.heap_taken)},
                   {"heap_given", of(c.heap_given)},
                   {"mapped", of(c.mapped)},
                   {"unmapped", of(c.unmapped)}};
    for (int i = 0; i < kCountHooks; ++i) j["calls"][kNames[i]] = of(c.of[i]);
    return j;
  }

  void report() {
    ordered_json j;
    for (char* word : options_.command)
      if (word) j["command"].push_back(word);
    j["pid"] = pid_;
    j["exit"] = signal_ ? ordered_json(nullptr) : ordered_json(exit_);
    j["signal"] = signal_ ? ordered_json(signal_) : ordered_json(nullptr);
    j["seconds"] = t();
    j["samples"] = samples_;
    j["every_ms"] = options_.every_ms;
    j["seen_at_exit"] = stopped_at_exit_;
    // The highest of what samples saw and the kernel's own high-water mark, or failing that (no stop at exit) the
    // number it hands out with the exit status, which may be that of the moment before exec.
    const int64_t peak = std::max({highest_, hwm_, stopped_at_exit_ ? 0 : maxrss_});
    j["peak"] = {{"rss", peak},
                 {"sampled", highest_},
                 {"hwm", hwm_ < 0 ? ordered_json(nullptr) : ordered_json(hwm_)},
                 {"maxrss", maxrss_},
                 {"anonymous_sampled", highest_anonymous_}};
    j["first"] = first_ ? ordered_json{{"t", first_->t}, {"rss", first_->rss}, {"anonymous", first_->anonymous()}}
                        : ordered_json(nullptr);
    j["start"] = start_ ? start_->json() : ordered_json(nullptr);
    const std::optional<Full>& end = end_ ? end_ : latest_;
    j["end"] = end ? end->json() : ordered_json(nullptr);
    j["growth"] = nullptr;
    if (start_ && end) {
      ordered_json& g = j["growth"];
      g = {{"rss", end->rss - start_->rss},
           {"anonymous", end->anonymous - start_->anonymous},
           {"file", end->file - start_->file},
           {"peak_over_start", peak - start_->rss}};
      std::vector<std::pair<int64_t, std::string>> parts;
      for (const auto& [name, bytes] : end->by_mapping) {
        const auto before = start_->by_mapping.find(name);
        const int64_t more = bytes - (before == start_->by_mapping.end() ? 0 : before->second);
        if (more) parts.emplace_back(more, name);
      }
      for (const auto& [name, bytes] : start_->by_mapping)
        if (!end->by_mapping.count(name) && bytes) parts.emplace_back(-bytes, name);
      std::sort(parts.begin(), parts.end(),
                [](const auto& a, const auto& b) { return std::llabs(a.first) > std::llabs(b.first); });
      if (parts.size() > 20) parts.resize(20);
      g["by_mapping"] = ordered_json::object();
      for (const auto& [bytes, name] : parts) g["by_mapping"][name] = bytes;
      if (counts_at_start_ && counts_at_end_) {
        const auto live = [](const CountPage& c) { return int64_t(c.heap_taken.bytes - c.heap_given.bytes); };
        const auto mapped = [](const CountPage& c) { return int64_t(c.mapped.bytes - c.unmapped.bytes); };
        g["allocations"] = count_allocations(&*counts_at_end_) - count_allocations(&*counts_at_start_);
        g["heap_live"] = live(*counts_at_end_) - live(*counts_at_start_);
        g["mapped_live"] = mapped(*counts_at_end_) - mapped(*counts_at_start_);
      }
    }
    // Resident bytes a quarter, a half, three quarters through the training, and at its end: flat, or not.
    j["quarters"] = nullptr;
    if (start_ && !series_.empty()) {
      const double from = start_->t, to = end_ ? end_->t : series_.back().t;
      j["quarters"] = ordered_json::array();
      for (int q = 0; q <= 4; ++q) {
        const double when = from + (to - from) * q / 4;
        const auto nearest = std::min_element(series_.begin(), series_.end(), [&](const Small& a, const Small& b) {
          return std::abs(a.t - when) < std::abs(b.t - when);
        });
        j["quarters"].push_back({{"t", nearest->t}, {"rss", nearest->rss}, {"anonymous", nearest->anonymous()}});
      }
    }
    const auto end_counts = counts() ? counts() : counts_at_end_;
    j["counts"] = end_counts ? counts_json(*end_counts) : ordered_json(nullptr);
    if (options_.series)
      for (const Small& s : series_) j["series"].push_back({s.t, s.rss, s.anonymous()});
    const std::string text = j.dump(2) + "\n";
    if (options_.json.empty())
      std::cerr << text;
    else if (!(std::ofstream(options_.json) << text))
      std::cerr << "memory_judge: " << options_.json << " cannot be written\n" << text;
  }

  Options options_;
  const CountPage* page_ = nullptr;
  pid_t pid_ = -1;
  int output_ = -1, exit_ = 0, signal_ = 0;
  bool held_ = false, ended_ = false, stopped_at_exit_ = false;
  Clock::time_point begin_;
  double last_full_ = -1;
  std::string said_;  // the last of it: a text may come in two parts
  int64_t samples_ = 0, highest_ = 0, highest_anonymous_ = 0, hwm_ = -1, maxrss_ = 0;
  int in_point_ = 0, per_point_ = 1;
  std::vector<Small> series_;
  std::optional<Small> first_, last_;
  std::optional<Full> start_, end_, latest_;
  std::optional<CountPage> counts_at_start_, counts_at_end_;
};

std::string beside_me() {
  char me[4096];
  const ssize_t n = readlink("/proc/self/exe", me, sizeof me - 1);
  if (n <= 0) return "libmillpond_count.so";
  std::string path(me, size_t(n));
  path.resize(path.rfind('/'));
  return path + "/../lib/millpond/libmillpond_count.so";
}

int usage(const char* why) {
  std::cerr << "memory_judge: " << why
            << "\nusage: memory_judge [--json FILE] [--every MS] [--start TEXT] [--end TEXT] [--series] [--no-count] "
               "-- command ...\n";
  return 125;
}
}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.count_library = beside_me();
  int i = 1;
  for (; i < argc; ++i) {
    const std::string a = argv[i];
    const bool more = i + 1 < argc;
    if (a == "--") {
      ++i;
      break;
    }
    if (a == "--json" && more)
      o.json = argv[++i];
    else if (a == "--every" && more)
      o.every_ms = std::atof(argv[++i]);
    else if (a == "--start" && more)
      o.start = argv[++i];
    else if (a == "--end" && more)
      o.end = argv[++i];
    else if (a == "--series")
      o.series = true;
    else if (a == "--no-count")
      o.count = false;
    else
      return usage(("\"" + a + "\" is not known").c_str());
  }
  for (; i < argc; ++i) o.command.push_back(argv[i]);
  if (o.command.empty()) return usage("no command was given");
  if (!(o.every_ms >= 0.1)) return usage("--every must be at least 0.1 ms");
  if (o.start.empty()) return usage("--start must not be empty");
  if (o.count && access(o.count_library.c_str(), R_OK) != 0)
    return usage((o.count_library + " is not there; build it, or give --no-count").c_str());
  o.command.push_back(nullptr);
  return Judge(std::move(o)).run();
}
