#include "watch/patient.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/format.h"
#include "millpond/error.h"

extern char** environ;

namespace millpond::watch {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

bool executable(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(path.c_str(), X_OK) == 0;
}

// A program without PT_INTERP has no dynamic linker, and so nobody who would load us.
bool is_static(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr head{};
  if (!file.read(reinterpret_cast<char*>(&head), sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return false;  // a script
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr)) return true;
  for (int i = 0; i < head.e_phnum && i < 256; ++i) {
    Elf64_Phdr segment{};
    file.seekg(std::streamoff(head.e_phoff) + i * std::streamoff(sizeof segment));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return true;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

std::string in_front(const std::string& what, const char* variable, char between) {
  const char* old = std::getenv(variable);
  return old && *old ? what + between + old : what;
}

}  // namespace

Program find_program(const std::string& name) {
  Program p;
  if (name.find('/') != name.npos) {
    p.path = name;
  } else {
    const char* path = std::getenv("PATH");
    std::string folders = path ? path : "/usr/bin:/bin";
    for (size_t at = 0; at <= folders.size() && p.path.empty();) {
      const size_t end = std::min(folders.find(':', at), folders.size());
      const std::string candidate = (end > at ? folders.substr(at, end - at) : ".") + "/" + name;
      if (executable(candidate)) p.path = candidate;
      at = end + 1;
    }
    if (p.path.empty()) throw Error(Code::kUsage, format("watch: there is no program {}", name)).hint("check its name, or give its path");
  }
  struct stat facts {};
  if (stat(p.path.c_str(), &facts) != 0)
    throw Error(Code::kUsage, format("watch: {} cannot be started: {}", p.path, strerror(errno))).hint("check the path");
  if (!executable(p.path)) {
    const bool python = p.path.size() > 3 && p.path.ends_with(".py");
    throw Error(Code::kUsage, format("watch: {} is not executable", p.path))
        .hint(python ? format("say `millpond watch -- python {}`", p.path) : "chmod +x, or name its interpreter");
  }
  if (facts.st_mode & (S_ISUID | S_ISGID) && facts.st_uid != geteuid())
    p.blind = format("{} is setuid: the system loads nothing into it, so only its resident memory is seen", p.path);
  else if (is_static(p.path))
    p.blind = format("{} is linked statically: nothing can be loaded into it, so only its resident memory is seen", p.path);
  return p;
}

Patient Patient::start(const Start& s, const Program& program) {
  std::vector<std::pair<std::string, std::string>> added = s.more;
  if (!s.probe_library.empty()) {
    added.emplace_back("LD_PRELOAD", in_front(s.probe_library, "LD_PRELOAD", ' '));
    added.emplace_back("MILLPOND_WATCH", s.folder);
    added.emplace_back("MILLPOND_PROBES", s.probes ? "1" : "0");
    added.emplace_back("MILLPOND_NATIVE", s.native ? "1" : "0");
    added.emplace_back("MILLPOND_FOLLOW", s.follow ? "1" : "0");
  }
  if (!s.agent_folder.empty()) added.emplace_back("PYTHONPATH", in_front(s.agent_folder, "PYTHONPATH", ':'));
  std::vector<std::string> texts;
  for (char** e = environ; *e; ++e) {
    const std::string_view old = *e;
    bool replaced = false;
    for (const auto& [name, value] : added) replaced = replaced || (old.starts_with(name) && old.size() > name.size() && old[name.size()] == '=');
    if (!replaced) texts.emplace_back(old);
  }
  for (const auto& [name, value] : added) texts.push_back(name + "=" + value);
  std::vector<char*> environment, arguments;
  for (std::string& t : texts) environment.push_back(t.data());
  environment.push_back(nullptr);
  for (const std::string& a : s.command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);

  Patient p;
  // Signals wait in a descriptor from now on, so that none is lost between the start and the first wait.
  sigset_t ours;
  sigemptyset(&ours);
  for (int signal : kPassedOn) sigaddset(&ours, signal);
  sigprocmask(SIG_BLOCK, &ours, &p.before_);
  p.signals_ = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setsigmask(&how, &p.before_);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.path.c_str(), nullptr, &how, arguments.data(), environment.data());
  posix_spawnattr_destroy(&how);
  if (error)
    throw Error(Code::kUsage, format("watch: {} cannot be started: {}", program.path, strerror(error)))
        .hint(error == ENOEXEC ? "a script needs a first line such as #!/usr/bin/env python3, or its interpreter named" : "check that it runs without us");
  p.pid_ = {pid};
  p.pidfd_ = int(syscall(SYS_pidfd_open, pid, 0));
  return p;
}

Patient Patient::attach(Pid pid) {
  if (!resident(pid)) throw Error(Code::kUsage, format("watch: there is no process {}", pid.value)).hint("check the number with ps");
  if (kill(pid.value, 0) != 0 && errno == EPERM)
    throw Error(Code::kUsage, format("watch: process {} belongs to another user", pid.value)).hint("run millpond as that user, or as root");
  Patient p;
  p.pid_ = pid;
  p.child_ = false;
  p.pidfd_ = int(syscall(SYS_pidfd_open, pid.value, 0));
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ours, signal);
  sigprocmask(SIG_BLOCK, &ours, &p.before_);
  p.signals_ = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  return p;
}

Patient::Patient(Patient&& o) noexcept
    : pid_(o.pid_), pidfd_(std::exchange(o.pidfd_, -1)), signals_(std::exchange(o.signals_, -1)), before_(o.before_), child_(o.child_), ended_(o.ended_), told_to_leave_(o.told_to_leave_), ending_(o.ending_) {}
Patient::~Patient() {
  if (pidfd_ >= 0) close(pidfd_);
  if (signals_ < 0) return;
  close(signals_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool Patient::wait(double seconds, int also) {
  if (ended_) return true;
  pollfd sources[] = {{pidfd_, POLLIN, 0}, {signals_, POLLIN, 0}, {also, POLLIN, 0}};  // a descriptor of -1 is passed over
  poll(sources, 3, int(seconds * 1000 + 0.5));
  signalfd_siginfo info{};
  while (signals_ >= 0 && ::read(signals_, &info, sizeof info) == sizeof info) {
    if (!child_) {
      told_to_leave_ = true;
      continue;
    }
    // What the terminal sends goes to its whole group: the program has it already.
    if (info.ssi_code != SI_KERNEL) kill(pid_.value, int(info.ssi_signo));
  }
  if (!child_) return ended_ = kill(pid_.value, 0) != 0 || (pidfd_ >= 0 && sources[0].revents & POLLIN);  // also when nobody has waited for it yet
  int status = 0;
  rusage used{}, own{};
  if (wait4(pid_.value, &status, WNOHANG, &used) != pid_.value) return false;
  ended_ = true;
  // Before its exec the child had our pages: what does not exceed our own peak says nothing.
  getrusage(RUSAGE_SELF, &own);
  const Bytes peak{used.ru_maxrss > own.ru_maxrss ? int64_t{used.ru_maxrss} * 1024 : 0};
  if (WIFSIGNALED(status)) ending_ = {128 + WTERMSIG(status), WTERMSIG(status), peak};
  else ending_ = {WEXITSTATUS(status), {}, peak};
  return true;
}

}  // namespace millpond::watch
