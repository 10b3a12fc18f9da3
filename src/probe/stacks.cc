#include "probe/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/file.h"
#include "probe/lock.h"
#include "probe/native_frames.h"
#include "probe/python_frames.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/use.h"

namespace millpond::probe::stacks {
namespace {

constexpr uint32_t kNone = ~0u, kPlaces = 2 * kStacks;
alignas(sys::kPageSize) uint16_t index[kPlaces];  // by hash: the id of a stack, and one more; 0: none
static_assert(kStacks < 0x10000);

Lock adding;
bool always_native = false;
uint32_t nameless = 0;  // the stack without frames

uint64_t hash_of(const Trace& trace) {
  uint64_t h = 0x2545f4914f6cdd1du + trace.count + (uint64_t{trace.flags} << 32);
  for (uint32_t i = 0; i < trace.count; ++i) {
    h = (h ^ trace.frames[i]) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  h *= 0xbf58476d1ce4e5b9u;
  h ^= h >> 32;
  return h ? h : 1;
}

// The stack, or kNone and the empty place of the index where it belongs. Stacks are never taken out, so an empty place
// ends the way; there are twice as many places as stacks.
uint32_t find(uint64_t hash, uint32_t& place) {
  for (place = uint32_t(hash >> 40) % kPlaces;; place = (place + 1) % kPlaces) {
    const uint16_t id = __atomic_load_n(&index[place], __ATOMIC_ACQUIRE);
    if (id == 0) return kNone;
    if (file::stacks()[id - 1].hash == hash) return uint32_t(id - 1);
  }
}

uint32_t put(const Trace& trace, uint64_t hash) {
  Locked locked(adding);
  uint32_t place;
  if (const uint32_t known = find(hash, place); known != kNone) return known;
  Shared& shared = *file::shared;
  const uint32_t at = shared.stacks;
  if (at >= kStacks) return kNone;
  Stack& stack = file::stacks()[at];
  Frame* frames = file::frames() + shared.frames;
  if (shared.frames + trace.count > kFrames || !file::reserve(&stack, sizeof stack) ||
      (trace.count && !file::reserve(frames, trace.count * sizeof(Frame))))
    return kNone;
  memcpy(frames, trace.frames, trace.count * sizeof(Frame));
  stack.first = shared.frames;
  stack.frames = uint16_t(trace.count);
  stack.flags = trace.flags;
  stack.thread = me.id;
  __atomic_store_n(&shared.frames, shared.frames + trace.count, __ATOMIC_RELAXED);
  __atomic_store_n(&stack.hash, hash, __ATOMIC_RELEASE);
  __atomic_store_n(&shared.stacks, at + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&index[place], uint16_t(at + 1), __ATOMIC_RELEASE);
  return at;
}

uint32_t intern(const Trace& trace) {
  const uint64_t hash = hash_of(trace);
  uint32_t place;
  const uint32_t at = find(hash, place);
  return at != kNone ? at : put(trace, hash);
}

}  // namespace

void start() {
  adding = {};
  sys::wipe(index, sizeof index);
  const char* text = getenv("MILLPOND_NATIVE");
  always_native = text && *text == '1';
  Trace none;
  none.flags = Trace::kCut | Trace::kNoPython;
  nameless = intern(none);
  if (nameless == kNone) file::become_inert();
}

void show_native(bool always) { always_native = always; }

uint32_t here(const void* caller) {
  Trace trace;
  if (always_native)
    native::walk(trace, caller);
  else
    native::walk_to_owner(trace, caller);
  const bool python = python::walk(trace);
  if (!python) {
    trace.flags |= Trace::kNoPython;
    if (!always_native) {
      trace.count = 0;
      native::walk(trace, caller);
    }
  }
  const uint32_t at = intern(trace);
  if (at != kNone) return at;
  file::add(file::shared->lost_stacks);
  return nameless;
}

}  // namespace millpond::probe::stacks

using namespace millpond::probe;

extern "C" __attribute__((visibility("default"))) size_t millpond_probe_stack(uint32_t stack, char* out, size_t room) {
  Use use;
  if (!use || stack >= kStacks || !file::was_reserved(&file::stacks()[stack]) || !file::stacks()[stack].hash) return 0;
  const Stack& found = file::stacks()[stack];
  size_t size = 0;
  for (uint32_t i = 0; i < found.frames && found.first + i < kFrames; ++i) {
    const Frame frame = file::frames()[found.first + i];
    const uint64_t number = (frame & ~kFramePython) >> 32;
    if (!(frame & kFramePython) || number >= kCodes) continue;
    const Code& code = file::codes()[number];
    const int written =
        snprintf(out + size, room - size, "%.*s\t%u\t%.*s\n", int(code.file.size), file::text() + code.file.at,
                 uint32_t(frame), int(code.name.size), file::text() + code.name.at);
    if (written < 0 || size_t(written) >= room - size) break;
    size += size_t(written);
  }
  return size;
}
