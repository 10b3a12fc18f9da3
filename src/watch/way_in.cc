#include "watch/way_in.h"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "millpond/error.h"
#include "probe/shared.h"
#include "watch/patient.h"

extern char** environ;

namespace millpond::watch {
namespace {

namespace fs = std::filesystem;

constexpr double kAnswerWithin = 20, kGdbWithin = 60;  // seconds
constexpr uint64_t kPage = 4096;

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

std::string read_text(const std::string& path, size_t most = 1 << 20) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), std::streamsize(most));
  text.resize(size_t(file.gcount()));
  return text;
}

// A file that is mapped while it is read; everything in it is a stranger's and is asked for by place and size.
class Bytes_ {
 public:
  explicit Bytes_(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts{};
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      void* p = mmap(nullptr, size_t(facts.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (p != MAP_FAILED) at_ = static_cast<const char*>(p), size_ = size_t(facts.st_size);
    }
    if (fd >= 0) close(fd);
  }
  ~Bytes_() {
    if (at_) munmap(const_cast<char*>(at_), size_);
  }
  Bytes_(const Bytes_&) = delete;
  Bytes_& operator=(const Bytes_&) = delete;
  template <class T>
  bool get(uint64_t place, T& value) const {
    if (place > size_ || size_ - place < sizeof value) return false;
    memcpy(&value, at_ + place, sizeof value);
    return true;
  }
  bool is_text(uint64_t place, const std::string& text) const {
    return place <= size_ && size_ - place > text.size() && memcmp(at_ + place, text.c_str(), text.size() + 1) == 0;
  }

 private:
  const char* at_ = nullptr;
  size_t size_ = 0;
};

std::optional<Elf64_Ehdr> header_of(const Bytes_& file) {
  Elf64_Ehdr head{};
  if (!file.get(0, head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  return head;
}

std::optional<Elf64_Sym> symbol_of(const Bytes_& file, const std::string& name) {
  const std::optional<Elf64_Ehdr> head = header_of(file);
  if (!head || head->e_shentsize != sizeof(Elf64_Shdr)) return {};
  for (int i = 0; i < head->e_shnum; ++i) {
    Elf64_Shdr section{}, names{};
    if (!file.get(head->e_shoff + uint64_t(i) * sizeof section, section)) return {};
    if (section.sh_type != SHT_DYNSYM || section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= head->e_shnum)
      continue;
    if (!file.get(head->e_shoff + section.sh_link * sizeof names, names)) return {};
    Elf64_Sym symbol{};
    for (uint64_t at = 0; at + sizeof symbol <= section.sh_size && file.get(section.sh_offset + at, symbol);
         at += sizeof symbol)
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_value && symbol.st_name < names.sh_size &&
          file.is_text(names.sh_offset + symbol.st_name, name))
        return symbol;
  }
  return {};
}

// Where the linker of the file put its first page.
std::optional<uint64_t> first_page(const Bytes_& file) {
  const std::optional<Elf64_Ehdr> head = header_of(file);
  if (!head || head->e_phentsize != sizeof(Elf64_Phdr)) return {};
  for (int i = 0; i < head->e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!file.get(head->e_phoff + uint64_t(i) * sizeof part, part)) return {};
    if (part.p_type == PT_LOAD) return part.p_vaddr / kPage * kPage;
  }
  return {};
}

struct Module {
  std::string path;
  uint64_t begin = 0, end = 0;
};

struct Maps {
  std::vector<Module> modules;  // each file once, with all that is mapped of it
  uint64_t free_page = 0;
};
Maps read_maps(Pid pid) {
  Maps maps;
  std::istringstream text(read_text(format("/proc/{}/maps", pid.value), 64 << 20));
  uint64_t last_end = 0;
  for (std::string line; std::getline(text, line);) {
    unsigned long long begin = 0, end = 0, offset = 0;
    int path_at = 0;
    if (sscanf(line.c_str(), "%llx-%llx %*4s %llx %*s %*s %n", &begin, &end, &offset, &path_at) < 3) continue;
    // A gap with some room around: nobody's stack grows into it.
    if (last_end > (1ull << 32) && begin > last_end && begin - last_end > (64ull << 20) && begin < (1ull << 47))
      maps.free_page = (last_end + (begin - last_end) / 2) / kPage * kPage;
    last_end = end;
    const std::string path = path_at ? line.substr(size_t(path_at)) : "";
    if (path.empty() || path[0] != '/') continue;
    if (!maps.modules.empty() && maps.modules.back().path == path)
      maps.modules.back().end = end;
    else if (offset == 0)
      maps.modules.push_back({path, begin, end});
  }
  return maps;
}

std::string python_text(const std::string& s) {
  std::string out = "'";
  for (const char c : s) {
    if (c == '\'' || c == '\\')
      out += '\\', out += c;
    else if (uint8_t(c) < 0x20 || c == 0x7f)
      out += format("\\x{:02x}", int(uint8_t(c)));
    else
      out += c;
  }
  return out + "'";
}

// Whatever is wrong stays in there: an exception would come out of the program's own code. Nor does a name stay in its
// __main__.
std::string guarded(const std::string& text) {
  return format("try:\n    exec({}, {{}})\nexcept BaseException:\n    pass\n", python_text(text));
}

struct Ran {
  int status = -1;  // of exit; -1: it could not be started, or did not end in time
  std::string output;
};
Ran run(const std::vector<std::string>& command, double within) {
  Ran ran;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ran;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  posix_spawn_file_actions_adddup2(&files, ends[1], 2);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setpgroup(&how, 0);  // a Ctrl-C that ends the watching is not for it
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &files, &how, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    return ran;
  }
  const double until = now() + within;
  bool asked = false;
  for (pollfd source{ends[0], POLLIN, 0};;) {
    if (poll(&source, 1, 100) > 0) {
      char text[4096];
      const ssize_t n = read(ends[0], text, sizeof text);
      if (n <= 0) break;
      if (ran.output.size() < (1 << 20)) ran.output.append(text, size_t(n));
    } else if (now() > until && !asked) {
      kill(pid, SIGINT);  // gdb puts everything back and lets go
      asked = true;
    } else if (now() > until + 10) {
      kill(pid, SIGKILL);
      break;
    }
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  ran.status = WIFEXITED(status) && !asked ? WEXITSTATUS(status) : -1;
  return ran;
}

std::optional<std::string> on_path(const std::string& name) {
  try {
    return find_program(name).path;
  } catch (const Error&) {
    return {};
  }
}

// Why tracing is refused, and what to do.
std::string not_allowed(Pid pid) {
  const std::string scope = read_text("/proc/sys/kernel/yama/ptrace_scope", 8);
  if (!scope.empty() && scope[0] != '0')
    return format(
        "process {} may not be traced: /proc/sys/kernel/yama/ptrace_scope is {}; run millpond as root, or `sysctl "
        "kernel.yama.ptrace_scope=0` for now, or start the program under `millpond watch`",
        pid.value, scope.substr(0, 1));
  return format(
      "process {} may not be traced: another debugger holds it, or this container lacks CAP_SYS_PTRACE; run millpond "
      "as root, or start the program under `millpond watch`",
      pid.value);
}

// By a signal; a process that is traced has another letter.
bool is_stopped(Pid pid) {
  const std::string facts = read_text(format("/proc/{}/stat", pid.value), 1024);
  const size_t name_end = facts.rfind(')');
  return name_end != facts.npos && facts.substr(name_end, 3) == ") T";
}

bool same_files(Pid pid) {
  std::error_code a, b;
  const fs::path theirs = fs::read_symlink(format("/proc/{}/ns/mnt", pid.value), a),
                 ours = fs::read_symlink("/proc/self/ns/mnt", b);
  return a || b || theirs == ours;
}

}  // namespace

std::optional<uint64_t> dynamic_symbol(const std::string& path, const std::string& name) {
  const Bytes_ file(path);
  const std::optional<Elf64_Sym> symbol = symbol_of(file, name);
  return symbol ? std::optional<uint64_t>(symbol->st_value) : std::nullopt;
}

WayIn::Facts WayIn::facts_of(Pid pid) {
  Facts f;
  const Maps maps = read_maps(pid);
  f.free_page = maps.free_page;
  std::error_code error;
  const std::string exe = fs::read_symlink(format("/proc/{}/exe", pid.value), error).string();
  for (const Module& m : maps.modules) {
    const std::string name = fs::path(m.path).filename().string();
    const bool program = m.path == exe,
               c = name.starts_with("libc.so") || name.starts_with("libc-2") || name.starts_with("libdl");
    if (name.starts_with("ld-linux") || name.starts_with("ld-2")) f.loader_begin = m.begin, f.loader_end = m.end;
    if (!program && !c && name.find("libpython") == name.npos) continue;
    const Bytes_ file(format("/proc/{}/root{}", pid.value, m.path));
    const std::optional<uint64_t> first = first_page(file);
    if (!first) continue;
    const auto address = [&](const char* symbol) {
      const std::optional<Elf64_Sym> found = symbol_of(file, symbol);
      return found ? m.begin - *first + found->st_value : 0;
    };
    const auto take = [&](uint64_t& place, const char* symbol) {
      if (!place) place = address(symbol);
    };
    if (c)
      take(f.mmap, "mmap"), take(f.munmap, "munmap"), take(f.malloc, "malloc"), take(f.dlopen, "dlopen"),
          take(f.dlsym, "dlsym");
    if (!c && !f.add_pending) {
      take(f.add_pending, "Py_AddPendingCall"), take(f.run_text, "PyRun_SimpleString");
      if (!f.add_pending) continue;
      f.python = true;
      const std::optional<Elf64_Sym> version = symbol_of(file, "Py_Version");
      if (const size_t at = name.find("python3."); !version && at != name.npos)
        f.version = 0x0300 | std::atoi(name.c_str() + at + 8);
      if (version) {  // a constant: what the file holds
        const std::optional<Elf64_Ehdr> head = header_of(file);
        for (int i = 0; head && i < head->e_phnum; ++i) {
          Elf64_Phdr part{};
          uint64_t value = 0;
          if (file.get(head->e_phoff + uint64_t(i) * sizeof part, part) && part.p_type == PT_LOAD &&
              version->st_value - part.p_vaddr < part.p_filesz &&
              file.get(part.p_offset + version->st_value - part.p_vaddr, value))
            f.version = int(value >> 16 & 0xffff);
        }
      }
      if (fs::path(exe).filename().string().starts_with("python")) f.interpreter = exe;
    }
  }
  if (f.python && f.version && f.interpreter.empty())
    f.interpreter = on_path(format("python3.{}", f.version & 0xff)).value_or("");
  return f;
}

WayIn::WayIn(Pid pid, Visit visit) : pid_(pid), visit_(std::move(visit)) {}

std::optional<std::string> WayIn::enter(const std::string& folder) {
  folder_ = folder;
  if (!same_files(pid_))
    return format("process {} runs in a container with files of its own; run millpond inside of it", pid_.value);
  facts_ = facts_of(pid_);
  struct stat owner{};
  if (geteuid() == 0 && stat(format("/proc/{}", pid_.value).c_str(), &owner) == 0 && owner.st_uid != 0 &&
      (chown(folder_.c_str(), owner.st_uid, owner.st_gid) != 0 ||
       chown((folder_ + "/room").c_str(), owner.st_uid, owner.st_gid) != 0))
    return format("{} cannot be given to the user of process {}", folder_, pid_.value);
  std::optional<std::string> why;
  if (facts_.python) {
    const std::string text = format(
        "import sys\nsys.path.insert(0, {0})\ntry:\n    import millpond_agent.inside\nfinally:\n    "
        "sys.path.remove({0})\n"
        "millpond_agent.inside.attach({1}, {2}, probes={3}, native={4}, follow={5})\n",
        python_text(visit_.agent_folder), python_text(folder_), python_text(visit_.probe_library),
        visit_.probes ? "True" : "False", visit_.native ? "True" : "False", visit_.follow ? "True" : "False");
    why = run_script("enter", text);
  } else {
    why = call_natively("millpond_probe_enter", true);
  }
  inside_ = !why;
  return why;
}

std::optional<std::string> WayIn::leave() {
  if (!inside_) return {};
  inside_ = false;
  if (!facts_.python) {
    facts_ = facts_of(pid_);
    return call_natively("millpond_probe_leave", false);
  }
  facts_.free_page = facts_of(pid_).free_page;
  std::optional<std::string> why = run_script(
      "leave", format("import sys\nsys.modules['millpond_agent.inside'].detach({})\n", python_text(folder_)));
  if (why) return format("the probe is still inside process {} ({})", pid_.value, *why);
  return {};
}

std::optional<std::string> WayIn::run_script(const char* what, const std::string& text) {
  const std::string script = format("{}/{}.py", folder_, what);
  {
    std::ofstream file(script);
    file << text;
    if (!file.flush()) return format("{} cannot be written", script);
  }
  std::error_code ignored;
  std::optional<std::string> why;
  const std::string visit = format(
      "with open({0}) as file:\n    text = file.read()\nexec(compile(text, {0}, 'exec'), {{'__name__': "
      "'millpond_visit'}})\n",
      python_text(script));
  bool by_request = false;
  if (facts_.version >= 0x030e) {
    why = by_remote_exec(visit);
    by_request = !why;
    // It may be switched off (PYTHON_DISABLE_REMOTE_DEBUG, -X disable_remote_debug, a build without it), or no such
    // Python is here: gdb needs none of it.
    if (why && on_path("gdb")) {
      if (const std::optional<std::string> nor = by_gdb(visit); nor)
        why = format("{}; nor by gdb: {}", *why, *nor);
      else
        why.reset();
    }
  } else {
    why = by_gdb(visit);
  }
  if (!why && (why = answer(what)) && by_request) take_back_request();
  fs::remove(script, ignored);  // a program that comes back to Python later finds nothing to run
  return why;
}

void WayIn::take_back_request() {
  // The interpreter runs the script that was named last, and our folder goes: an empty one takes its place.
  run({facts_.interpreter, "-I", "-S", "-c", "import sys; sys.remote_exec(int(sys.argv[1]), '/dev/null')",
       std::to_string(pid_.value)},
      kGdbWithin);
}

std::optional<std::string> WayIn::answer(const char* what) {
  const std::string path = format("{}/{}.answer", folder_, what);
  for (const double until = now() + kAnswerWithin; now() < until;) {
    if (access(path.c_str(), F_OK) == 0) {
      const std::string text = read_text(path, 4096);
      unlink(path.c_str());
      if (text == "ok") return {};
      return text;
    }
    if (kill(pid_.value, 0) != 0) return format("process {} has ended", pid_.value);
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  return format(
      "the main thread of process {} has not come back to Python within {:.0f} s: it waits, or computes in native "
      "code; try again later, or start the program under `millpond watch`",
      pid_.value, kAnswerWithin);
}

std::optional<std::string> WayIn::by_remote_exec(const std::string& text) {
  const std::string version = format("3.{}", facts_.version & 0xff);
  if (facts_.interpreter.empty())
    return format("process {} runs Python {}, and no python{} is found that could ask it in (sys.remote_exec)",
                  pid_.value, version, version);
  const std::string script = format("{}/visit.py", folder_);
  std::ofstream(script) << guarded(text);
  const Ran ran =
      run({facts_.interpreter, "-I", "-S", "-c", "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])",
           std::to_string(pid_.value), script},
          kGdbWithin);
  if (ran.status == 0) return {};
  if (ran.output.find("PermissionError") != ran.output.npos ||
      ran.output.find("Operation not permitted") != ran.output.npos)
    return not_allowed(pid_);
  const size_t end = ran.output.find_last_not_of("\n"),
               begin = end == ran.output.npos ? end : ran.output.rfind('\n', end);
  return format("sys.remote_exec of Python {} failed: {}", version,
                end == ran.output.npos ? "it said nothing"
                                       : ran.output.substr(begin == ran.output.npos ? 0 : begin + 1, end - begin));
}

std::optional<std::string> WayIn::gdb(const std::string& commands, std::string& output) {
  const std::optional<std::string> program = on_path("gdb");
  if (!program)
    return format(
        "process {} can be entered only with gdb, which is not installed{}; install gdb, or start the program under "
        "`millpond watch`",
        pid_.value, facts_.python ? " (Python 3.14 and newer need none)" : "");
  const std::string file = format("{}/gdb", folder_);
  std::ofstream(file) << commands;
  const bool stopped = is_stopped(pid_);
  const Ran ran =
      run({*program, "-nx", "-nh", "-q", "-batch", "-iex", "set auto-load no", "-iex", "set auto-solib-add off", "-iex",
           "set confirm off", "-iex", "set debuginfod enabled off", "-p", std::to_string(pid_.value), "-x", file},
          facts_.python ? kGdbWithin : kAnswerWithin);
  unlink(file.c_str());
  output = ran.output;
  if (!stopped && is_stopped(pid_)) kill(pid_.value, SIGCONT);  // a gdb that hung and had to be ended leaves it so
  if (output.find("ptrace: Operation not permitted") != output.npos || output.find("Could not attach") != output.npos)
    return not_allowed(pid_);
  return {};
}

std::optional<std::string> WayIn::by_gdb(const std::string& text) {
  const Facts& f = facts_;
  if (!f.add_pending || !f.run_text || !f.mmap || !f.free_page)
    return format(
        "the interpreter of process {} does not show the functions that are needed (Py_AddPendingCall, "
        "PyRun_SimpleString)",
        pid_.value);
  // The page goes when its text has been read.
  const std::string whole =
      guarded(format("import ctypes\nctypes.CDLL(None).munmap(ctypes.c_void_p({}), ctypes.c_size_t({}))\n", f.free_page,
                     kPage * 2) +
              text);
  const std::string file = format("{}/page", folder_);
  std::ofstream(file) << whole << '\0';
  std::string output;
  const std::optional<std::string> why =
      gdb(format("set unwindonsignal on\n"
                 "set $page = ((void*(*)(void*,unsigned long,int,int,int,long)){0})((void*){1},{2},3,0x100022,-1,0)\n"
                 "if (unsigned long)$page == {1}\n"
                 "restore {3} binary {1}\n"
                 "set $queued = ((int(*)(void*,void*)){4})((void*){5},(void*){1})\n"
                 "printf \"millpond: queued %d\\n\", $queued\n"
                 "end\n"
                 "detach\n",
                 f.mmap, f.free_page, kPage * 2, file, f.add_pending, f.run_text),
          output);
  unlink(file.c_str());
  if (why) return why;
  if (output.find("millpond: queued 0") != output.npos) return {};
  const size_t begin = output.size() > 300 ? output.size() - 300 : 0;
  std::string tail = output.substr(begin);
  std::replace(tail.begin(), tail.end(), '\n', ' ');
  return format("gdb could not ask process {} in: {}", pid_.value, tail);
}

std::optional<std::string> WayIn::call_natively(const char* function, bool load) {
  const Facts& f = facts_;
  if (!f.mmap || !f.munmap || !f.malloc || !f.dlopen || !f.dlsym || !f.free_page)
    return format("process {} is linked statically, or not with glibc: nothing can be loaded into it", pid_.value);
  const std::string texts[] = {visit_.probe_library, function, folder_};
  uint64_t at[3], size = 0;
  std::string page;
  for (int i = 0; i < 3; ++i) at[i] = f.free_page + page.size(), page += texts[i], page += '\0';
  size = (page.size() + kPage - 1) / kPage * kPage;
  const std::string file = format("{}/page", folder_);
  std::ofstream(file, std::ios::binary) << page;
  const uint32_t flags = (visit_.native ? kEnterNative : 0) | (visit_.follow ? kEnterFollow : 0);
  std::string output;
  // Not in the middle of the loader, which asks malloc too: what it is about is half done then.
  const std::optional<std::string> why =
      gdb(format("set unwindonsignal on\n"
                 "tbreak *{0} if *(unsigned long*)$rsp < {1} || *(unsigned long*)$rsp >= {2}\n"
                 "continue\n"
                 "set $page = ((void*(*)(void*,unsigned long,int,int,int,long)){3})((void*){4},{5},3,0x100022,-1,0)\n"
                 "if (unsigned long)$page == {4}\n"
                 "restore {6} binary {4}\n"
                 "set $library = ((void*(*)(const char*,int)){7})((const char*){8},{9})\n"
                 "if $library\n"
                 "set $function = ((void*(*)(void*,const char*)){10})($library,(const char*){11})\n"
                 "set $result = ((int(*)(const char*,unsigned))$function)((const char*){12},{13})\n"
                 "printf \"millpond: result %d\\n\", $result\n"
                 "end\n"
                 "set $gone = ((int(*)(void*,unsigned long)){14})((void*){4},{5})\n"  // nobody keeps these texts: the
                 // loader and the probe have copies
                 "end\n"
                 "detach\n",
                 f.malloc, f.loader_begin, f.loader_end, f.mmap, f.free_page, size, file, f.dlopen, at[0],
                 load ? 0x2 : 0x6 /* RTLD_NOW, RTLD_NOLOAD */, f.dlsym, at[1], at[2], flags, f.munmap),
          output);
  unlink(file.c_str());
  if (why) return why;
  if (output.find("millpond: result 0") != output.npos) return {};
  if (output.find("millpond: result") != output.npos)
    return format("process {} is watched already, or there was no room for its records", pid_.value);
  return format("process {} has not called malloc within {:.0f} s, and it cannot be entered at any other point",
                pid_.value, kAnswerWithin);
}

}  // namespace millpond::watch
