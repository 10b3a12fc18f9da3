// Programs that the watched one starts are watched too, whatever environment they are given; but nothing is loaded into
// one that would not start then: the run time of a sanitizer insists on being first.
//
// The agent hides our variables from os.environ, so a program that hands a copy of it on does not hand on ours: they
// are put in here. These calls may come after vfork, when parent and child share all memory: nothing is written but the
// stack, and nothing is allocated.
#include <alloca.h>
#include <dlfcn.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

#include "probe/file.h"
#include "probe/first_place.h"
#include "probe/system.h"
#include "probe/thread.h"

extern char** environ;

namespace millpond::probe {
namespace {

constexpr size_t kMostEntries = 65536;
constexpr const char* kNames[] = {"MILLPOND_WATCH", "MILLPOND_PROBES", "MILLPOND_NATIVE", "MILLPOND_FOLLOW",
                                  "MILLPOND_AGENT"};
constexpr size_t kOurs = sizeof kNames / sizeof *kNames;

char ours[kOurs][4200];  // NAME=value as we were given them; empty: not
char library[4096], agent[4096];

int (*real_execve)(const char*, char* const*, char* const*);
int (*real_execvpe)(const char*, char* const*, char* const*);
int (*real_spawn)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const*,
                  char* const*);
int (*real_spawnp)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const*,
                   char* const*);

template <class F>
void find(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// Before any other constructor of the program could start something; before that, what is asked for is looked up then.
__attribute__((constructor(102))) void remember() {
  Quiet quiet;
  find(real_execve, "execve");
  find(real_execvpe, "execvpe");
  find(real_spawn, "posix_spawn");
  find(real_spawnp, "posix_spawnp");
  if (!getenv("MILLPOND_WATCH")) return;
  for (size_t i = 0; i < kOurs; ++i)
    if (const char* value = getenv(kNames[i]); value && strlen(kNames[i]) + strlen(value) + 2 < sizeof ours[i]) {
      strcpy(ours[i], kNames[i]);
      strcat(ours[i], "=");
      strcat(ours[i], value);
    }
  if (const char* folder = getenv("MILLPOND_AGENT"); folder && strlen(folder) < sizeof agent) strcpy(agent, folder);
  // By the name under which it was asked for.
  const char* preload = getenv("LD_PRELOAD");
  Dl_info self;
  if (preload && dladdr(reinterpret_cast<void*>(remember), &self) && self.dli_fname &&
      strlen(self.dli_fname) < sizeof library && strstr(preload, self.dli_fname))
    strcpy(library, self.dli_fname);
}

bool watched() { return ours[0][0] && library[0]; }

// ---- what would not start with us ----

// As execvp looks: in the folders of PATH, where the name is none of a path.
bool found_needs_first_place(const char* name) {
  if (strchr(name, '/')) return needs_first_place(name);
  const char* path = getenv("PATH");
  for (const char* at = path ? path : "/bin:/usr/bin"; *at;) {
    const size_t size = strcspn(at, ":"), length = strlen(name);
    char full[PATH_MAX];
    if (size + length + 2 < sizeof full) {
      memcpy(full, at, size);
      full[size] = '/';
      memcpy(full + size + 1, name, length + 1);
      if (syscall(SYS_access, full, X_OK) == 0) return needs_first_place(full);
    }
    at += size + (at[size] == ':');
  }
  return false;
}

// ---- the environment with us, or without ----

bool is_name(const char* entry, const char* name) {
  const size_t size = strlen(name);
  return strncmp(entry, name, size) == 0 && entry[size] == '=';
}
bool is_ours(const char* entry) {
  for (const char* name : kNames)
    if (is_name(entry, name)) return true;
  return false;
}

size_t count_of(char* const* list) {
  size_t n = 0;
  while (list && list[n]) ++n;
  return n;
}

// "NAME=what:theirs" without `what` among theirs, and with it in front if `with`; empty when nothing is left. What is
// theirs stays between the characters they have chosen.
void join(char* to, const char* name, const char* theirs, const char* what, const char* between, bool with) {
  strcpy(to, name);
  strcat(to, "=");
  const size_t begin = strlen(to);
  if (with) strcat(to, what);
  char separator = between[0];
  for (const char* at = theirs ? theirs : ""; *at;) {
    const size_t size = strcspn(at, between);
    if (size && !(strlen(what) == size && strncmp(at, what, size) == 0)) {
      if (to[begin]) strncat(to, &separator, 1);
      strncat(to, at, size);
    }
    at += size;
    if (*at) separator = *at++;
  }
  if (!to[begin]) to[0] = 0;
}

struct Made {
  char** list;
  char* preload;
  char* python;
};
void make(Made& made, char* const* given, bool with) {
  const char *preload = nullptr, *python = nullptr;
  size_t n = 0;
  for (size_t i = 0; given && given[i]; ++i) {
    if (is_name(given[i], "LD_PRELOAD"))
      preload = given[i] + strlen("LD_PRELOAD=");
    else if (is_name(given[i], "PYTHONPATH") && agent[0])
      python = given[i] + strlen("PYTHONPATH=");
    else if (!is_ours(given[i]))
      made.list[n++] = given[i];
  }
  join(made.preload, "LD_PRELOAD", preload, library, " :", with);
  if (made.preload[0]) made.list[n++] = made.preload;
  made.python[0] = 0;
  if (agent[0]) join(made.python, "PYTHONPATH", python, agent, ":", with);
  if (made.python[0]) made.list[n++] = made.python;
  for (size_t i = 0; with && i < kOurs; ++i)
    if (ours[i][0]) made.list[n++] = ours[i];
  made.list[n] = nullptr;
}
const char* value_of(char* const* list, const char* name) {
  for (size_t i = 0; list && list[i]; ++i)
    if (is_name(list[i], name)) return list[i] + strlen(name) + 1;
  return "";
}

// Into the program, or into what is preloaded into it, a sanitizer's run time is linked: it starts without us then, and
// the report says so. One that could not be started was none.
class Without {
 public:
  Without(bool program_needs, char* const* given)
      : without_(watched() && (program_needs || preload_needs_first_place(value_of(given, "LD_PRELOAD"),
                                                                          value_of(given, "LD_LIBRARY_PATH")))) {
    if (without_) file::count_sanitized(1);
  }
  bool with() const { return !without_; }
  int failed(int error) const {
    if (without_) file::count_sanitized(-1);
    return error;
  }

 private:
  bool without_;
};

// On the stack of the caller. Too many entries: as they were given.
#define MP_ENVIRONMENT(given, program_needs)                                                                 \
  const Without out(program_needs, given);                                                                   \
  Made made{};                                                                                               \
  char* const* environment = given;                                                                          \
  if (const size_t n = count_of(given); watched() && n < kMostEntries) {                                     \
    made.list = static_cast<char**>(alloca((n + kOurs + 3) * sizeof(char*)));                                \
    made.preload = static_cast<char*>(alloca(strlen(value_of(given, "LD_PRELOAD")) + strlen(library) + 32)); \
    made.python = static_cast<char*>(alloca(strlen(value_of(given, "PYTHONPATH")) + strlen(agent) + 32));    \
    make(made, given, out.with());                                                                           \
    environment = made.list;                                                                                 \
  }

}  // namespace
}  // namespace millpond::probe

using namespace millpond::probe;
#define MP_EXPORT extern "C" __attribute__((visibility("default")))

MP_EXPORT int execve(const char* path, char* const* arguments, char* const* given) noexcept {
  if (!real_execve) return int(syscall(SYS_execve, path, arguments, given));
  MP_ENVIRONMENT(given, needs_first_place(path))
  return out.failed(real_execve(path, arguments, environment));
}
MP_EXPORT int execv(const char* path, char* const* arguments) noexcept { return execve(path, arguments, environ); }
MP_EXPORT int execvpe(const char* name, char* const* arguments, char* const* given) noexcept {
  if (!real_execvpe) find(real_execvpe, "execvpe");
  MP_ENVIRONMENT(given, found_needs_first_place(name))
  return out.failed(real_execvpe(name, arguments, environment));
}
MP_EXPORT int execvp(const char* name, char* const* arguments) noexcept { return execvpe(name, arguments, environ); }
MP_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* how, char* const* arguments, char* const* given) {
  if (!real_spawn) find(real_spawn, "posix_spawn");
  MP_ENVIRONMENT(given, needs_first_place(path))
  const int error = real_spawn(pid, path, actions, how, arguments, environment);
  return error ? out.failed(error) : 0;
}
MP_EXPORT int posix_spawnp(pid_t* pid, const char* name, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* how, char* const* arguments, char* const* given) {
  if (!real_spawnp) find(real_spawnp, "posix_spawnp");
  MP_ENVIRONMENT(given, found_needs_first_place(name))
  const int error = real_spawnp(pid, name, actions, how, arguments, environment);
  return error ? out.failed(error) : 0;
}
