// The walk as the agent asks for it: in place, or in a child that the program does not see. The child is made by clone alone, so no handler of fork
// runs; it ends without a signal, and only we can wait for it; it has none of the program's descriptors, and no signal but a fatal one reaches it.
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <initializer_list>

#include "probe/file.h"
#include "probe/python_layout.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/use.h"
#include "probe/walk.h"

namespace millpond::probe::walk {
namespace {

Walk* result = nullptr;  // shared with the child
long child = 0;
uint64_t began_ns = 0;
constexpr uint64_t kLongestNs = 20'000'000'000;

struct List {
  void* const* items;
  size_t count;
};
List list_of(void* list) {
  constexpr size_t kSize = 16, kItems = 24;  // PyListObject
  if (!list) return {nullptr, 0};
  return {python::at<void* const*>(list, kItems), python::at<size_t>(list, kSize)};
}

void leave_the_program() {
  sigset_t all;
  sigfillset(&all);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8);
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
  } standard{};
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) syscall(SYS_rt_sigaction, number, &standard, nullptr, 8);
  const rlimit none{0, 0};
  syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, nullptr);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  syscall(SYS_prctl, PR_SET_NAME, kWalkProcess, 0, 0, 0);
  syscall(SYS_setpriority, PRIO_PROCESS, 0, 19);  // what the program leaves of the processors
  constexpr long kCloseRange = 436;
  syscall(kCloseRange, 0, ~0u, 0);
}

int state() {
  if (child <= 0) return 1;
  int status = 0;
  const long ended = syscall(SYS_wait4, child, &status, WNOHANG | __WALL, nullptr);
  if (ended == 0) {
    if (sys::now_ns() - began_ns > kLongestNs) syscall(SYS_kill, child, SIGKILL);
    return 0;
  }
  child = 0;
  return status == 0 && result->done == 1 ? 1 : -1;
}

}  // namespace

void forget() {
  if (result) sys::unmap(result, sizeof(Walk));
  result = nullptr;
  child = 0;
}

void release() {
  if (child > 0) {
    syscall(SYS_kill, child, SIGKILL);
    syscall(SYS_wait4, child, nullptr, __WALL, nullptr);
  }
  forget();
}

}  // namespace millpond::probe::walk

using namespace millpond::probe;

extern "C" __attribute__((visibility("default"))) int millpond_probe_walked() {
  Quiet quiet;
  return walk::state();
}

extern "C" __attribute__((visibility("default"))) Walk* millpond_probe_walk(void* roots, void* all, void* hidden, const uint64_t* owned, size_t owned_count,
                                                                            const uint64_t* links, size_t link_count, size_t room, int apart) {
  Use use;
  // Without the GIL other threads change what is walked over; and how types are laid out is not part of the check.
  if (!use || !python::frames_known() || python::layout.free_threaded || python::layout.version > python::kNewestVersion) return nullptr;
  Quiet quiet;
  if (walk::state() == 0) return nullptr;
  using walk::result;
  if (!result) result = static_cast<Walk*>(sys::map(sizeof(Walk), sys::kRead | sys::kWrite, sys::kMapShared | sys::kMapAnonymous, -1));
  if (!result) return nullptr;
  *result = Walk{};
  const walk::List from = walk::list_of(roots), known = walk::list_of(all), ours = walk::list_of(hidden);
  const walk::Request request{room, from.items, from.count, known.items, known.count, ours.items, ours.count, reinterpret_cast<const walk::Owned*>(owned), owned_count,
                              reinterpret_cast<const walk::Link*>(links), link_count};
  if (!apart) {
    result->done = walk::run(request, *result) ? 1 : 2;
    return result;
  }
  walk::began_ns = sys::now_ns();
  walk::child = syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, nullptr);
  if (walk::child == 0) {
    walk::leave_the_program();
    result->done = walk::run(request, *result) ? 1 : 2;
    syscall(SYS_exit_group, result->done == 1 ? 0 : 1);
  }
  if (walk::child < 0) {
    walk::child = 0;
    return nullptr;
  }
  return result;
}
