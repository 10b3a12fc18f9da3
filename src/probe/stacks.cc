#include "probe/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "probe/file.h"
#include "probe/lock.h"
#include "probe/native_frames.h"
#include "probe/python_frames.h"
#include "probe/thread.h"

namespace millpond::probe::stacks {
namespace {

constexpr uint32_t kUsable = kStacks / 8 * 7;  // beyond that, looking for an empty place takes long
constexpr uint32_t kNone = ~0u;

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

// The place of the stack, or the empty one where it belongs. Stacks are never taken out, so an empty place ends the way.
uint32_t place_of(uint64_t hash, bool& there) {
  for (uint32_t at = uint32_t(hash >> 40) % kStacks;; at = (at + 1) % kStacks) {
    Stack& stack = file::stacks()[at];
    const uint64_t found = file::reserve(&stack, sizeof stack) ? __atomic_load_n(&stack.hash, __ATOMIC_ACQUIRE) : 0;
    if (found == hash || found == 0) {
      there = found != 0;
      return at;
    }
  }
}

uint32_t put(const Trace& trace, uint64_t hash) {
  Locked locked(adding);
  bool there;
  const uint32_t at = place_of(hash, there);
  if (there) return at;
  Shared& shared = *file::shared;
  Stack& stack = file::stacks()[at];
  Frame* frames = file::frames() + shared.frames;
  if (shared.stacks >= kUsable || shared.frames + trace.count > kFrames || !file::reserve(&stack, sizeof stack) ||
      (trace.count && !file::reserve(frames, trace.count * sizeof(Frame))))
    return kNone;
  memcpy(frames, trace.frames, trace.count * sizeof(Frame));
  stack.first = shared.frames;
  stack.frames = uint16_t(trace.count);
  stack.flags = trace.flags;
  stack.thread = me.id;
  __atomic_store_n(&shared.frames, shared.frames + trace.count, __ATOMIC_RELAXED);
  __atomic_store_n(&shared.stacks, shared.stacks + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&stack.hash, hash, __ATOMIC_RELEASE);
  return at;
}

uint32_t intern(const Trace& trace) {
  const uint64_t hash = hash_of(trace);
  bool there;
  uint32_t at = place_of(hash, there);
  if (!there) at = put(trace, hash);
  return at;
}

}  // namespace

void start() {
  adding = {};
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
