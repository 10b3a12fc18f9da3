#include "cli/self.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/format.h"
#include "base/process.h"
#include "base/team.h"
#include "millpond/error.h"
#include "probe/count.h"

namespace millpond::cli {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14; an older kernel refuses it, which does no harm
constexpr const char* kAgain = "MILLPOND_STARTED_TO_COUNT";

// A small file of /proc into `text`, as a C string; empty when it cannot be read.
template <size_t N>
const char* read_small(const char* file, char (&text)[N]) {
  size_t n = 0;
  if (const int fd = open(file, O_RDONLY | O_CLOEXEC); fd >= 0) {
    for (ssize_t got; n < N - 1 && (got = read(fd, text + n, N - 1 - n)) > 0;) n += size_t(got);
    close(fd);
  }
  text[n] = 0;
  return text;
}

int64_t kib_after(const char* text, const char* key) {
  const char* at = std::strstr(text, key);
  return at ? std::strtoll(at + std::strlen(key), nullptr, 10) : -1;
}

double start = 0;
Bytes in_use;

double now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace

void note_start() {
  in_use = heap_state().in_use;
  char text[1024];
  const double here = now(CLOCK_BOOTTIME), used = now(CLOCK_PROCESS_CPUTIME_ID);
  start = here - used;
  const char* at = std::strrchr(read_small("/proc/self/stat", text), ')');  // the name before it may hold anything
  for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
  if (!at) return;
  // It began within that tick, and at least as long ago as it has computed, all on one thread so far.
  const double tick = 1.0 / double(sysconf(_SC_CLK_TCK)), began = double(std::strtoull(at, nullptr, 10)) * tick;
  start = std::clamp(start, began, began + tick);
}

void fill_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR | O_CLOEXEC);  // takes the lowest number that is free
}

Bytes heap_at_start() { return in_use; }

double seconds_since_start() { return now(CLOCK_BOOTTIME) - start; }

Bytes resident_now() {
  char text[4096];
  if (const int64_t kib = kib_after(read_small("/proc/self/smaps_rollup", text), "\nRss:"); kib >= 0)
    return Bytes{kib << 10};
  return Bytes{std::max<int64_t>(0, kib_after(read_small("/proc/self/status", text), "\nVmRSS:")) << 10};
}

Bytes resident_peak() {
  char text[4096];
  return Bytes{std::max<int64_t>(0, kib_after(read_small("/proc/self/status", text), "\nVmHWM:")) << 10};
}

namespace {

void settle_code() {
  // Our own code is all used in the first epoch; the C library's branches (a float that is almost zero, a thread that
  // has to wait) are not.
  static char text[1 << 15];
  read_small("/proc/self/maps", text);
  for (char* line = text; line && *line;) {
    char* const end = std::strchr(line, '\n');
    if (!end) break;
    *end = 0;
    unsigned long long from = 0, to = 0;
    char permissions[5] = {};
    const char* const path = std::strchr(line, '/');
    if (path && std::sscanf(line, "%llx-%llx %4s", &from, &to, permissions) == 3) {
      const bool math = std::strstr(path, "/libm.so"), c = std::strstr(path, "/libc.so");
      if ((math && permissions[1] == '-') || (c && permissions[2] == 'x'))
        madvise(reinterpret_cast<void*>(from), size_t(to - from), kPopulateRead);
    }
    line = end + 1;
  }
}

}  // namespace

void settle(int threads) {
  settle_code();
  touch_stack();
  const TeamLease lease(threads);  // which leaves its threads to the training
}

std::optional<Counted> counted_now() {
  const CountPage* page = count_page();
  if (!page) return {};
  return Counted{count_allocations(page), count_read(&page->heap_taken.calls) + count_read(&page->mapped.calls),
                 count_read(&page->heap_given.calls) + count_read(&page->unmapped.calls)};
}

namespace {
std::string own_path() {
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  return std::string(self, size_t(std::max<ssize_t>(n, 0)));
}
}  // namespace

std::string installed(const std::string& name) {
  const std::string exe = own_path(), own = exe.substr(0, exe.rfind('/'));
  if (access((own + "/libmillpond_probe.so").c_str(), F_OK) == 0) return own + "/" + name;
  return own.substr(0, own.rfind('/')) + "/lib/millpond/" + name;
}

void restart_counting(char** argv) {
  if (count_page()) {
    if (const char* again = getenv(kAgain); again && *again) {
      close(std::atoi(again));                          // through which it was loaded
      if (const char* loaded = getenv("LD_PRELOAD")) {  // whose first name means nothing to our children
        const char* rest = std::strchr(loaded, ':');
        if (const std::string others = rest ? rest + 1 : ""; !others.empty())
          setenv("LD_PRELOAD", others.c_str(), 1);
        else
          unsetenv("LD_PRELOAD");
      }
    }
    unsetenv(kAgain);
    return;
  }
  const std::string exe = own_path(), library = installed("libmillpond_count.so");
  if (access(library.c_str(), R_OK) != 0)
    throw Error(Code::kFile, format("--count-allocations: the counting library is not at {}", library))
        .hint("build or install Millpond again");
  if (getenv(kAgain))
    throw Error(Code::kUnsupported, "--count-allocations: the counting library does not load into this program")
        .with("library", library);
  // The loader takes a space or a colon in LD_PRELOAD for the end of a name: such a path is opened here, and the
  // descriptor has a name without them.
  std::string loaded = library, descriptor;
  if (library.find_first_of(" :") != library.npos) {
    descriptor = std::to_string(open(library.c_str(), O_RDONLY));  // to be open after exec
    loaded = "/proc/self/fd/" + descriptor;
  }
  const char* before = getenv("LD_PRELOAD");
  setenv("LD_PRELOAD", before && *before ? (loaded + ":" + before).c_str() : loaded.c_str(), 1);
  setenv(kAgain, descriptor.c_str(), 1);
  execv(exe.c_str(), argv);
  throw Error(Code::kFile, format("--count-allocations: {} does not start again: {}", exe, std::strerror(errno)));
}

}  // namespace millpond::cli
