// millpond info: what can be seen on this machine, what is missing for more, and what to do about it. Changes nothing;
// every Python on PATH is asked for its version.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "base/format.h"
#include "base/process.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/report.h"
#include "cli/self.h"
#include "report/text.h"
#include "watch/gpu.h"
#include "watch/patient.h"

extern char** environ;

namespace millpond::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstPython = 9, kLastPython = 15;  // 3.9 to 3.15, with the GIL or without: probe/python_layout.h
constexpr size_t kMostPythons = 24;
constexpr auto kLongestAnswer = std::chrono::seconds(5);

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  while (!all.empty() && (all.back() == '\n' || all.back() == '\0')) all.pop_back();
  return all;
}

/// The number after "Key:" in a file of /proc.
std::optional<uint64_t> field(const std::string& text, const std::string& key, int base = 10) {
  const size_t at = ("\n" + text).find("\n" + key + ":");
  if (at == text.npos) return {};
  const char* begin = text.c_str() + at + key.size() + 1;
  char* end = nullptr;
  const uint64_t value = std::strtoull(begin, &end, base);
  return end == begin ? std::nullopt : std::optional(value);
}

std::optional<Bytes> limit_of(int resource) {
  rlimit limit{};
  if (getrlimit(__rlimit_resource_t(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return Bytes{int64_t(std::min<rlim_t>(limit.rlim_cur, INT64_MAX))};
}

struct Container {
  std::string kind;  // "docker", "podman", "kubernetes", ...; empty: none was recognised
  int cgroup = 0;    // version; 0: none is mounted
  std::string hint;  // what it was recognised by
};
Container container() {
  Container c;
  const std::string first = text_of("/proc/1/cgroup"), mounts = text_of("/proc/self/mountinfo").substr(0, 1 << 20);
  const char* named = std::getenv("container");
  const auto is = [&](const char* kind, const std::string& hint) {
    if (c.kind.empty()) c.kind = kind, c.hint = hint;
  };
  if (std::getenv("KUBERNETES_SERVICE_HOST")) is("kubernetes", "KUBERNETES_SERVICE_HOST is set");
  if (first.find("kubepods") != first.npos) is("kubernetes", "/proc/1/cgroup");
  if (access("/run/.containerenv", F_OK) == 0) is("podman", "/run/.containerenv");
  if (access("/.dockerenv", F_OK) == 0) is("docker", "/.dockerenv");
  if (first.find("docker") != first.npos) is("docker", "/proc/1/cgroup");
  if (first.find("containerd") != first.npos) is("containerd", "/proc/1/cgroup");
  if (first.find("lxc") != first.npos) is("lxc", "/proc/1/cgroup");
  if (named && *named) is(report::shown(named, 40).c_str(), "the variable container is set");
  if (mounts.find(" / / rw") != mounts.npos && mounts.find(" - overlay ") != mounts.npos &&
      mounts.find(" - overlay ") < mounts.find('\n'))
    is("a container", "its root is an overlay");
  if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0)
    c.cgroup = 2;
  else if (access("/sys/fs/cgroup/memory", F_OK) == 0)
    c.cgroup = 1;
  return c;
}

struct Python {
  std::string path, version, implementation, why_not;  // why_not: empty when its lines are seen
  bool newer = false;                                  // than what is known here
  bool looks_inside() const { return why_not.empty(); }
};

/// What a short program says, or nothing when it fails or takes too long.
std::optional<std::string> answer_of(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int failed = posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  const auto until = std::chrono::steady_clock::now() + kLongestAnswer;
  bool late = false;
  while (failed == 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd source{ends[0], POLLIN, 0};
    if (left <= 0 || poll(&source, 1, int(left)) == 0) {
      late = true;
      break;
    }
    char part[512];
    const ssize_t n = read(ends[0], part, sizeof part);
    if (n <= 0 || text.size() > 4096) break;
    text.append(part, size_t(n));
  }
  close(ends[0]);
  if (failed) return {};
  if (late) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (late || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return {};
  return text;
}

std::vector<Python> pythons() {
  std::vector<Python> found;
  std::set<std::string> asked, known;
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable ? variable : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("python") && name.find_first_not_of("0123456789.t", 6) == name.npos) names.push_back(name);
    }
    std::ranges::sort(names);
    for (const std::string& name : names) {
      const std::string path = (fs::path(folder) / name).string(), real = fs::canonical(path, error).string();
      // A shim that chooses among several by its own name is asked under every name.
      const bool shim = real.find("/shims/") != real.npos;
      if (error || access(path.c_str(), X_OK) != 0 || found.size() >= kMostPythons ||
          !asked.insert(shim ? path : real).second)
        continue;
      const std::optional<std::string> said =
          answer_of({path, "-I", "-S", "-c",
                     "import sys; v = sys.version_info; print(sys.implementation.name, v[0], v[1], v[2], "
                     "int('t' in getattr(sys, 'abiflags', '')), sys.executable)"});
      if (!said) continue;
      std::istringstream words(*said);
      Python p;
      int major = 0, minor = 0, micro = 0, free_threaded = 0;
      words >> p.implementation >> major >> minor >> micro >> free_threaded >> std::ws;
      std::getline(words, p.path);
      const std::string same = fs::canonical(p.path, error).string();  // python, python3 and python3.11 are often one
      if (!words || !known.insert(error ? p.path : same).second) continue;
      p.version = format("{}.{}.{}{}", major, minor, micro, free_threaded ? "t" : "");
      if (p.implementation != "cpython")
        p.why_not = "not CPython";
      else if (major == 3 && minor > kLastPython)
        p.newer = true,
        p.why_not = format("newer than 3.{}: its lines too if they pass a check while it runs", kLastPython);
      else if (major != 3 || minor < kFirstPython)
        p.why_not = format("not 3.{} or newer", kFirstPython);
      else
        try {
          p.why_not = watch::find_program(p.path).blind.empty() ? "" : "nothing can be loaded into it";
        } catch (const Error&) {
          p.why_not = "it cannot be started by its path";
        }
      found.push_back(std::move(p));
    }
  }
  return found;
}

std::string on_path(const std::string& name) {
  try {
    return watch::find_program(name).path;
  } catch (const Error&) {
    return "";
  }
}

std::string or_none(const std::optional<Bytes>& b) { return b ? to_string(*b) : "none"; }
Json or_null(const std::optional<Bytes>& b) { return b ? Json(b->value) : Json(); }

struct Facts {
  Json object = Json::object();
  std::vector<std::pair<std::string, std::string>> rows;  // label and words; no label: belongs to the one above
  std::vector<std::string> missing;
};

void system_facts(Facts& f) {
  utsname system{};
  uname(&system);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int usable = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
  f.object["version"] = MILLPOND_VERSION;
  f.object["system"] = {
      {"kernel", std::string(system.sysname) + " " + system.release}, {"machine", system.machine}, {"cores", usable}};
  f.rows.emplace_back("system", format("{} {} on {}, {} usable", system.sysname, system.release, system.machine,
                                       usable == 1 ? "one core" : format("{} cores", usable)));
  if (std::string(system.sysname) != "Linux" || std::string(system.machine) != "x86_64")
    f.missing.push_back("Linux on x86-64 is what is supported");
  const Container c = container();
  f.object["container"] = {{"kind", c.kind.empty() ? Json() : Json(c.kind)},
                           {"hint", c.hint.empty() ? Json() : Json(c.hint)},
                           {"cgroup_version", c.cgroup ? Json(c.cgroup) : Json()}};
  f.rows.emplace_back(
      "container", format("{}; cgroup {}", c.kind.empty() ? "none was recognised" : format("{} ({})", c.kind, c.hint),
                          c.cgroup ? format("version {}", c.cgroup) : "not mounted"));
}

void memory_facts(Facts& f) {
  const std::string meminfo = text_of("/proc/meminfo");
  const auto kib = [&](const char* key) { return Bytes{int64_t(field(meminfo, key).value_or(0)) * 1024}; };
  const FreeMemory free = memory_free_now();
  const std::optional<Bytes> space = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);
  const std::optional<Bytes> files = limit_of(RLIMIT_NOFILE);
  f.object["memory"] = {{"total", kib("MemTotal").value},
                        {"available", kib("MemAvailable").value},
                        {"swap_free", kib("SwapFree").value},
                        {"can_be_taken", free.bytes.value},
                        {"limited_by", free.limited_by},
                        {"cgroup_free", or_null(free.cgroup)},
                        {"limit_address_space", or_null(space)},
                        {"limit_data", or_null(data)},
                        {"limit_open_files", files ? Json(files->value) : Json()}};
  f.rows.emplace_back("memory", format("{}, of which {} are available; swap free {}", kib("MemTotal"),
                                       kib("MemAvailable"), kib("SwapFree")));
  f.rows.emplace_back("", format("a program here can take {} (limited by {})", free.bytes,
                                 free.limited_by == "machine" ? "the machine" : free.limited_by));
  f.rows.emplace_back("limits", format("address space {}, data {}, open files {}", or_none(space), or_none(data),
                                       files ? std::to_string(files->value) : "unlimited"));
  constexpr int64_t kFewFiles = 256;
  if (files && files->value < kFewFiles)
    f.missing.push_back(
        format("only {} files may be open at once: `ulimit -n 1024` before watching programs with many children",
               files->value));
}

void access_facts(Facts& f) {
  const std::string status = text_of("/proc/self/status"), scope = text_of("/proc/sys/kernel/yama/ptrace_scope");
  constexpr uint64_t kSysPtrace = uint64_t{1} << 19;
  const bool capable = field(status, "CapEff", 16).value_or(0) & kSysPtrace;
  const uint64_t seccomp = field(status, "Seccomp").value_or(0);
  const bool may = capable ? scope != "3" : scope.empty() || scope == "0";
  const char* meaning = scope.empty()  ? "no Yama"
                        : scope == "0" ? "own processes"
                        : scope == "1" ? "own children only"
                        : scope == "2" ? "administrators only"
                                       : "nobody";
  f.object["ptrace"] = {{"yama_scope", scope.empty() ? Json() : Json(std::atoi(scope.c_str()))},
                        {"cap_sys_ptrace", capable},
                        {"seccomp", seccomp != 0},
                        {"can_attach", may}};
  f.rows.emplace_back(
      "ptrace", format("{}: ptrace_scope {}, {} CAP_SYS_PTRACE, {}", may ? "allowed" : "not allowed",
                       scope.empty() ? "absent (no Yama)" : format("{} ({})", scope, meaning),
                       capable ? "with" : "without", seccomp ? "under seccomp, which may forbid it" : "no seccomp"));
  if (!may)
    f.missing.push_back(
        "`watch --pid` cannot look inside a process that runs already: `sysctl kernel.yama.ptrace_scope=0`, or in a "
        "container `--cap-add=SYS_PTRACE`. Programs that "
        "`watch` starts itself do not need it");
  struct statvfs room{};
  constexpr int64_t kEnough = int64_t{64} << 20;
  if (statvfs("/dev/shm", &room) == 0) {
    const Bytes size{int64_t(room.f_blocks) * int64_t(room.f_frsize)},
        left{int64_t(room.f_bavail) * int64_t(room.f_frsize)};
    const bool writable = access("/dev/shm", W_OK) == 0;
    f.object["shm"] = {{"size", size.value}, {"free", left.value}, {"writable", writable}};
    f.rows.emplace_back("/dev/shm", format("{}, {} free{}", size, left, writable ? "" : ", not writable"));
    if (!writable)
      f.missing.push_back("/dev/shm cannot be written, so nothing is seen inside a program: mount it with mode 1777");
    else if (left.value < kEnough)
      f.missing.push_back(
          format("/dev/shm has {} left; a program with many processes is seen better with more: in a container "
                 "`--shm-size=256m`",
                 left));
  } else {
    f.object["shm"] = nullptr;
    f.rows.emplace_back("/dev/shm", "not there");
    f.missing.push_back("there is no /dev/shm, so nothing is seen inside a program: mount a tmpfs there");
  }
  const std::string gdb = on_path("gdb");
  f.object["gdb"] = gdb.empty() ? Json() : Json(gdb);
  f.rows.emplace_back("gdb", gdb.empty() ? "not found" : gdb);
  if (gdb.empty())
    f.missing.push_back(
        "without gdb `watch --pid` sees a Python before 3.14 from outside only: install gdb to look inside");
}

void python_facts(Facts& f) {
  Json list = Json::array();
  bool any = false;
  std::string label = "python";
  for (const Python& p : pythons()) {
    list.push_back({{"path", p.path},
                    {"version", p.version},
                    {"implementation", p.implementation},
                    {"looks_inside", p.looks_inside()},
                    {"why_not", p.looks_inside() ? Json() : Json(p.why_not)}});
    f.rows.emplace_back(label, format("{} {}: {}", report::short_path(p.path, 48), p.version,
                                      p.looks_inside() ? "lines, epochs and holders are seen"
                                                       : format("resident memory and native code{} ({})",
                                                                p.newer ? "" : " only", p.why_not)));
    label.clear();
    any = any || p.looks_inside();
  }
  f.object["pythons"] = std::move(list);
  if (!any)
    f.missing.push_back(
        format("no Python on PATH whose lines can be seen: CPython 3.{} to 3.{}", kFirstPython, kLastPython));
}

void gpu_facts(Facts& f) {
  Json list = Json::array();
  if (const std::unique_ptr<watch::Gpus> gpus = watch::Gpus::open()) {
    gpus->look({Pid{getpid()}});
    for (const watch::Gpu& gpu : gpus->devices()) {
      list.push_back(
          {{"name", gpu.name}, {"total", gpu.total.value}, {"used", gpu.answered ? Json(gpu.used.value) : Json()}});
      f.rows.emplace_back(list.size() == 1 ? "gpu" : "", format("{}, {}{}", report::shown(gpu.name, 60), gpu.total,
                                                                gpu.answered ? format(", {} used", gpu.used) : ""));
    }
  }
  if (list.empty()) {
    const bool device = access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0;
    f.rows.emplace_back("gpu", device ? "a device is there, but the driver's library (NVML) does not answer"
                                      : "none that NVIDIA's driver tells of");
    if (device)
      f.missing.push_back(
          "the GPU cannot be asked: libnvidia-ml.so.1 of the driver must be found, in a container through the NVIDIA "
          "container toolkit");
  }
  f.object["gpus"] = std::move(list);
}

void own_facts(Facts& f) {
  const std::string probe = installed("libmillpond_probe.so"), agent = installed("inject");
  const bool whole = access(probe.c_str(), R_OK) == 0 && access(agent.c_str(), R_OK) == 0;
  f.object["installed"] = {{"probe", access(probe.c_str(), R_OK) == 0}, {"agent", access(agent.c_str(), R_OK) == 0}};
  if (!whole) f.missing.push_back(format("{} or {} is missing: build or install Millpond again", probe, agent));
  if (const char* preload = std::getenv("LD_PRELOAD"); preload && *preload) {
    f.object["preload"] = preload;
    f.rows.emplace_back("preload", format("LD_PRELOAD is set: {}", report::shown(preload, 100)));
  }
}

int run_info(const JsonTarget& json) {
  Facts f;
  system_facts(f);
  memory_facts(f);
  access_facts(f);
  python_facts(f);
  gpu_facts(f);
  own_facts(f);
  f.object["missing"] = f.missing;
  if (!json.on_stdout()) {
    const int width = text_style(STDOUT_FILENO).width;
    std::string text = format("millpond {}\n", MILLPOND_VERSION);
    for (const auto& [label, words] : f.rows)
      text += format("  {:<9} ", label) + report::wrapped(report::shown_lines(words), width, 12, 12);
    text += f.missing.empty() ? "\nNothing is missing.\n" : "\nMissing:\n";
    for (const std::string& m : f.missing) text += "  " + report::wrapped(report::shown_lines(m) + ".", width, 4, 2);
    std::fputs(text.c_str(), stdout);
  }
  json.write(f.object);
  return kOk;
}

}  // namespace

static void add_info(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("info", "Say what can be seen on this machine, and what is missing");
  auto json = std::make_shared<JsonTarget>();
  sub->add_option("--json", json->where, "All of it as one JSON object to FILE, or - for standard output");
  sub->footer(R"(
Examples:
  millpond info
  millpond info --json -

Container, limits, ptrace, /dev/shm, every Python on PATH, GPUs, gdb; what is missing, and what to do about it. Nothing is changed.)");
  sub->callback([json, &chosen] { chosen.run = [json] { return run_info(*json); }; });
}
constinit const Command commands::info{100, add_info};

}  // namespace millpond::cli
