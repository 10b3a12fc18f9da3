#include "watch/patient.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "millpond/error.h"
#include "watch/binary.h"

extern char** environ;

namespace millpond::watch {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

bool executable(const std::string& path) {
  struct stat facts{};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string environment_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}
std::string in_front(const std::string& what, const char* variable, char between) {
  const std::string old = environment_of(variable);
  return old.empty() ? what : what + between + old;
}

// The path, or a link to it in the run's own folder where the path holds a character that ends a name in the variable
// it is meant for.
std::string without(const char* ends, const std::string& path, const std::string& folder) {
  if (path.find_first_of(ends) == path.npos) return path;
  const std::string link = folder + path.substr(path.rfind('/'));
  if (symlink(path.c_str(), link.c_str()) != 0 && errno != EEXIST)
    throw Error(Code::kFile, format("watch: {} cannot be loaded through {}: {}", path, link, strerror(errno)))
        .hint("install Millpond in a folder without space and colon in its path");
  return link;
}

// Not posix_spawn: the C library leaves two signals of its own ignored in what it starts so. 0, or what was wrong.
int start_child(const char* path, char* const* arguments, char* const* environment, const sigset_t& mask, pid_t& pid) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return errno;
  pid = fork();
  if (pid == 0) {
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    execve(path, arguments, environment);
    const int error = errno;
    (void)!::write(report[1], &error, sizeof error);
    _exit(127);
  }
  int error = pid < 0 ? errno : 0;
  close(report[1]);
  if (pid > 0 && ::read(report[0], &error, sizeof error) == sizeof error) waitpid(pid, nullptr, 0);
  close(report[0]);
  return error;
}

// Pages that its waited-for children faulted in (the field cminflt): none means no such child, as none runs without.
bool waited_for_none(Pid pid) {
  char part[1024];
  std::FILE* file = std::fopen(format("/proc/{}/stat", pid.value).c_str(), "re");
  if (!file) return false;
  const std::string text(part, std::fread(part, 1, sizeof part, file));
  std::fclose(file);
  size_t at = text.rfind(')');  // the name before it may hold anything
  for (int field = 2; field < 11 && at != text.npos; ++field) at = text.find(' ', at + 1);
  return at != text.npos && text.compare(at, 3, " 0 ") == 0;
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
    if (p.path.empty())
      throw Error(Code::kUsage, format("watch: there is no program {}", name)).hint("check its name, or give its path");
  }
  struct stat facts{};
  if (stat(p.path.c_str(), &facts) != 0)
    throw Error(Code::kUsage, format("watch: {} cannot be started: {}", p.path, strerror(errno)))
        .hint("check the path");
  if (!executable(p.path)) {
    const bool python = p.path.size() > 3 && p.path.ends_with(".py");
    throw Error(Code::kUsage, format("watch: {} is not executable", p.path))
        .hint(python ? format("say `millpond watch -- python {}`", p.path) : "chmod +x, or name its interpreter");
  }
  const Binary binary = read_binary(p.path);
  const std::string preloaded = preloaded_sanitizer(environment_of("LD_PRELOAD"), environment_of("LD_LIBRARY_PATH"));
  if (facts.st_mode & (S_ISUID | S_ISGID) && facts.st_uid != geteuid())
    p.blind = format("{} is setuid: the system loads nothing into it, so only its resident memory is seen", p.path),
    p.hands_on = false;
  else if (!preloaded.empty())
    p.blind = format(
        "LD_PRELOAD has the {}, which allows nobody before it: nothing is loaded into the program, so only its "
        "resident memory is seen",
        preloaded),
    p.hands_on = false;
  else if (binary.is_static)
    p.blind =
        format("{} is linked statically: nothing can be loaded into it, so only its resident memory is seen", p.path);
  else if (!binary.sanitizer.empty())
    p.blind = format(
        "{} is built with the {}, which allows nobody before it: nothing is loaded into it, so only its resident "
        "memory is seen",
        p.path, binary.sanitizer),
    p.hands_on = false;
  return p;
}

Patient Patient::start(const Start& s, const Program& program) {
  std::vector<std::pair<std::string, std::string>> added = s.more;
  if (!s.probe_library.empty()) {
    added.emplace_back("LD_PRELOAD", in_front(without(" :", s.probe_library, s.folder), "LD_PRELOAD", ' '));
    added.emplace_back("MILLPOND_WATCH", s.folder);
    added.emplace_back("MILLPOND_PROBES", s.probes ? "1" : "0");
    added.emplace_back("MILLPOND_NATIVE", s.native ? "1" : "0");
    added.emplace_back("MILLPOND_FOLLOW", s.follow ? "1" : "0");
  }
  if (!s.agent_folder.empty()) {
    const std::string agent = without(":", s.agent_folder, s.folder);
    added.emplace_back("PYTHONPATH", in_front(agent, "PYTHONPATH", ':'));
    added.emplace_back("MILLPOND_AGENT", agent);
  }
  std::vector<std::string> texts;
  for (char** e = environ; *e; ++e) {
    const std::string_view old = *e;
    bool replaced = false;
    for (const auto& [name, value] : added)
      replaced = replaced || (old.starts_with(name) && old.size() > name.size() && old[name.size()] == '=');
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
  pid_t pid = 0;
  const int error = start_child(program.path.c_str(), arguments.data(), environment.data(), p.before_, pid);
  if (!error) p.witness_ = Witness(ours);
  if (error)
    throw Error(Code::kUsage, format("watch: {} cannot be started: {}", program.path, strerror(error)))
        .hint(error == ENOEXEC ? "a script needs a first line such as #!/usr/bin/env python3, or its interpreter named"
                               : "check that it runs without us");
  p.pid_ = {pid};
  p.pidfd_ = int(syscall(SYS_pidfd_open, pid, 0));
  return p;
}

Patient Patient::attach(Pid pid) {
  if (!resident(pid))
    throw Error(Code::kUsage, format("watch: there is no process {}", pid.value)).hint("check the number with ps");
  if (kill(pid.value, 0) != 0 && errno == EPERM)
    throw Error(Code::kUsage, format("watch: process {} belongs to another user", pid.value))
        .hint("run millpond as that user, or as root");
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
    : pid_(o.pid_),
      pidfd_(std::exchange(o.pidfd_, -1)),
      signals_(std::exchange(o.signals_, -1)),
      witness_(std::move(o.witness_)),
      before_(o.before_),
      child_(o.child_),
      ended_(o.ended_),
      told_to_leave_(o.told_to_leave_),
      stopping_(o.stopping_),
      ending_(o.ending_) {}
Patient::~Patient() {
  if (pidfd_ >= 0) close(pidfd_);
  if (signals_ < 0) return;
  close(signals_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool Patient::wait(double seconds, int also) {
  if (ended_) return true;
  pollfd sources[] = {
      {pidfd_, POLLIN, 0}, {signals_, POLLIN, 0}, {also, POLLIN, 0}};  // a descriptor of -1 is passed over
  poll(sources, 3, int(seconds * 1000 + 0.5));
  signalfd_siginfo info{};
  while (signals_ >= 0 && ::read(signals_, &info, sizeof info) == sizeof info) {
    if (!child_) {
      told_to_leave_ = true;
      continue;
    }
    const int signal = int(info.ssi_signo);
    if (signal == SIGTSTP) stopping_ = true;
    if (signal == SIGCONT) stopping_ = false;
    // What the terminal sends goes to its whole group: the program has it already.
    const bool has_it = info.ssi_code == SI_KERNEL || witness_.saw(signal);
    if (!has_it) kill(pid_.value, signal);
  }
  if (!child_)
    return ended_ = kill(pid_.value, 0) != 0 ||
                    (pidfd_ >= 0 && sources[0].revents & POLLIN);  // also when nobody has waited for it yet
  // A zombie still tells of its children. What they had at most is in ru_maxrss too, so it is the program's own only
  // where it waited for none.
  const bool alone = (pidfd_ < 0 || sources[0].revents & POLLIN) && waited_for_none(pid_);
  int status = 0;
  rusage used{}, own{};
  if (wait4(pid_.value, &status, WNOHANG | (stopping_ ? WUNTRACED : 0), &used) != pid_.value) return false;
  if (WIFSTOPPED(status)) {
    // A shell waits for us and not for the program: it goes on when we stop too, and wakes both. Only after a stop that
    // came to us: one who stops the program alone will wake it alone.
    stopping_ = false;
    kill(getpid(), SIGSTOP);
    return false;
  }
  ended_ = true;
  // Before its exec the child had our pages: what does not exceed our own peak says nothing.
  getrusage(RUSAGE_SELF, &own);
  const Bytes peak{alone && used.ru_maxrss > own.ru_maxrss ? int64_t{used.ru_maxrss} * 1024 : 0};
  if (WIFSIGNALED(status))
    ending_ = {128 + WTERMSIG(status), WTERMSIG(status), peak};
  else
    ending_ = {WEXITSTATUS(status), {}, peak};
  return true;
}

}  // namespace millpond::watch
