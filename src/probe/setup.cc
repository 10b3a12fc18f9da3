// The life of the process as the probe sees it: it begins, forks, ends. exec begins anew, with another file.
#include <pthread.h>
#include <stdlib.h>

#include "probe/agent_heap.h"
#include "probe/cells.h"
#include "probe/codes.h"
#include "probe/early.h"
#include "probe/enter.h"
#include "probe/file.h"
#include "probe/live.h"
#include "probe/loader.h"
#include "probe/mappings.h"
#include "probe/marks.h"
#include "probe/modules.h"
#include "probe/native_frames.h"
#include "probe/native_prints.h"
#include "probe/new_delete.h"
#include "probe/python_layout.h"
#include "probe/python_lines.h"
#include "probe/real.h"
#include "probe/ring.h"
#include "probe/sampler.h"
#include "probe/scan.h"
#include "probe/setup.h"
#include "probe/stacks.h"
#include "probe/system.h"
#include "probe/tables.h"
#include "probe/thread.h"
#include "probe/walk.h"

namespace millpond::probe {
namespace setup {

bool follow = true;

namespace {

// live: filter, reach, index; stacks: index; cells; codes: index, files; lines; mappings; cfi: places, rules; and small
// things.
constexpr uint64_t kOwnBytes = (72 + 64 + 128 + 64 + 8 + 256 + 16 + 128 + 128 + 256 + 64 + 32) << 10;

}  // namespace

void begin() {
  if (file::state == file::kInert) return;
  file::shared->probe_bytes += kOwnBytes;
  file::shared->python = python::layout.version;
  file::shared->python_frames = python::frames_flags();
  file::shared->allocator = allocator_flags;
  sampler::start();
  stacks::start();
  if (file::state == file::kInert) return;
  __atomic_store_n(&file::shared->version, uint64_t{kProbeVersion}, __ATOMIC_RELEASE);
  __atomic_store_n(&file::state, uint32_t{file::kOpen}, __ATOMIC_RELEASE);
}

void forget() {
  live::forget();
  early::each(live::mark);
  cells::forget();
  cells::each(live::mark);
  agent_heap::forget();
  agent_heap::each(live::mark);
  codes::forget();
  python::forget_lines();
  mappings::forget();
  ring::forget();
  modules::forget();
  marks::forget();
  walk::forget();
  scan::forget();
  native_prints::forget();
}

namespace {

// Without pages of files and of shared memory.
uint64_t anonymous_bytes() {
  const sys::Resident now = sys::resident();
  return now.all > now.shared ? now.all - now.shared : 0;
}

// Only the thread that called fork is there, and whatever another one was changing is half changed: all of it goes.
void begin_as_child() {
  Quiet quiet;
  loader::forget();
  forget_who_is_here();
  file::open_again(follow);
  if (!file::shared) return;  // nothing was ever open here, or we have left
  forget();
  if (file::state != file::kInert) file::shared->forked = 1, file::shared->inherited = anonymous_bytes();
  begin();
}

}  // namespace

void look_around() {
  marks::start();
  native::start();
  python::find_interpreter();
}

namespace {
long loader_holder = 0;  // the thread that forks; of two at once the other may have given up waiting
void before_fork() {
  if (loader::hold()) loader_holder = syscall(SYS_gettid);
}
void after_fork() {
  if (loader_holder != syscall(SYS_gettid)) return;
  loader_holder = 0;
  loader::asking.unlock();
}
}  // namespace

void hear_of_forks() {
  static bool heard = false;
  if (!heard) pthread_atfork(before_fork, after_fork, begin_as_child);
  heard = true;
}

namespace {

// After the C library is ready: its environment is not, in the first calls of malloc.
__attribute__((constructor(101))) void start() {
  if (!is_preloaded()) return file::become_inert();  // until it is told to enter
  look_up_real();
  Quiet quiet;
  file::open();
  if (file::state == file::kInert) return;
  const char* text = getenv("MILLPOND_FOLLOW");
  follow = !(text && *text == '0');
  look_around();
  begin();
  if (!file::is_open()) return;
  const bool at_once = new_delete::start();
  native_prints::start();
  at_once ? tables::change() : tables::change_soon();
  modules::write_new();
  hear_of_forks();
}

__attribute__((destructor(101))) void end() {
  if (!file::is_open() || me.quiet) return;
  Quiet quiet;
  modules::write_new();
  __atomic_store_n(&file::shared->ended_ns, sys::now_ns(), __ATOMIC_RELEASE);
}

}  // namespace
}  // namespace setup
}  // namespace millpond::probe
