// print and sys.stdout.write as rounds of the program: how often each place in the source printed is counted here, and
// the agent (millpond_agent/lines.py) is asked now and then what it prints.
//
// The functions stay the objects they are: only where the interpreter jumps to for them is exchanged, in the table that
// describes print, and TextIOWrapper.write. A call costs a look at the innermost frame and at a clock, about 20 ns.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "probe/python_api.h"
#include "probe/python_frames.h"
#include "probe/python_types.h"
#include "probe/shared.h"
#include "probe/system.h"
#include "probe/thread.h"

namespace millpond::probe::python {
namespace {

constexpr int kFastWithKeywords = 0x82, kFast = 0x80, kOneArgument = 8;
using Fast = void* (*)(void*, void* const*, ptrdiff_t);
using Print = void* (*)(void*, void* const*, ptrdiff_t, void*);
using Write = void* (*)(void*, void*);

struct Hook {
  Definition* definition = nullptr;
  void* original = nullptr;
};
Hook print_hook, write_hook, except_hook;
void* clean = nullptr;   // of the agent: (kind, value, traceback) before the program's last words are printed
void* ask = nullptr;     // of the agent: (site, values, names of keywords; for write the stream)
void* stream = nullptr;  // whose write counts

PrintSite sites[kPrintSites];
__attribute__((tls_model("initial-exec"))) __thread bool printing = false;

// Coarse: it is read for every line, and a mark does not come sooner than 50 ms after another.
uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// Where in the source we are: the code and the instruction of the innermost frame. False: nowhere, as far as can be
// seen.
bool here(uint64_t& code, uint64_t& instruction) {
  const Layout& l = layout;
  const void* frame = innermost_frame(l, l.this_thread());
  while (frame && is_shim(l, frame)) frame = at<const void*>(frame, l.frame_previous);
  if (!frame) return false;
  code = uint64_t(code_of(l, frame));
  instruction = l.frame_objects ? uint64_t(at<uint32_t>(frame, l.frame_at)) : at<uint64_t>(frame, l.frame_at);
  return true;
}

int site_of(uint64_t code, uint64_t instruction) {
  const uint32_t home = uint32_t(((code ^ instruction * 31) * 0x9e3779b97f4a7c15u) >> 53);
  for (uint32_t i = 0; i < 16; ++i) {
    PrintSite& site = sites[(home + i) % kPrintSites];
    if (site.code == code && site.instruction == instruction) return int((home + i) % kPrintSites);
    if (site.code != 0) continue;
    site.code = code;
    site.instruction = instruction;
    return int((home + i) % kPrintSites);
  }
  return -1;  // as many as nobody looks at any more
}

// The program's call is done; what happens here it must not notice. False: an exception that is the program's own (a
// signal's handler, in the main thread of many) is on its way.
bool ask_agent(int site, void* const* values, ptrdiff_t count, void* names) {
  const Api& a = *api();
  const int error = errno;
  bool good = true;
  void* const asked = ask;  // the agent may leave while it is asked
  a.add_reference(asked);
  void* arguments = a.new_tuple(3);
  void* given = arguments ? a.new_tuple(count) : nullptr;
  if (given) {
    for (ptrdiff_t i = 0; i < count; ++i) {
      a.add_reference(values[i]);
      a.set_item(given, i, values[i]);
    }
    if (!names) names = a.none;
    a.add_reference(names);
    a.set_item(arguments, 0, a.new_integer(site));
    a.set_item(arguments, 1, given);
    a.set_item(arguments, 2, names);
    Aside aside;
    void* answer = a.call(asked, arguments, nullptr);
    good = answer != nullptr;
    if (good) a.drop_reference(answer);
  } else {
    a.forget_error();
  }
  if (arguments) a.drop_reference(arguments);
  a.drop_reference(asked);
  errno = error;
  return good;
}

bool count_line(void* const* values, ptrdiff_t count, void* names) {
  if (!ask || me.quiet) return true;
  uint64_t code, instruction;
  if (!here(code, instruction)) return true;
  const int number = site_of(code, instruction);
  if (number < 0) return true;
  PrintSite& site = sites[number];
  ++site.hits;
  if ((site.skip && (--site.skip, now_ns() < site.due_ns)) || is_deep()) return true;
  return ask_agent(number, values, count, names);
}

void* after(void* result, void* const* values, ptrdiff_t count, void* names) {
  if (count_line(values, count, names)) return result;
  api()->drop_reference(result);
  return nullptr;
}

void* print_and_count(void* self, void* const* values, ptrdiff_t count, void* names) {
  const bool outer = printing;
  printing = true;
  void* result = reinterpret_cast<Print>(print_hook.original)(self, values, count, names);
  printing = outer;
  if (!result || outer) return result;
  const ptrdiff_t keywords = names ? at<ptrdiff_t>(names, layout.object_bytes) : 0;  // of a tuple: its size
  return after(result, values, count + keywords, names);
}

void* write_and_count(void* self, void* text) {
  void* result = reinterpret_cast<Write>(write_hook.original)(self, text);
  return result && self == stream && !printing ? after(result, &text, 1, stream) : result;
}

// An exception that nobody caught: the agent notes its kind, and takes frames of its own out of the traceback.
void* print_exception(void* self, void* const* values, ptrdiff_t count) {
  const Api& a = *api();
  void* const cleaning = clean;
  if (cleaning) a.add_reference(cleaning);
  void* arguments = cleaning && count == 3 ? a.new_tuple(3) : nullptr;
  if (arguments) {
    for (ptrdiff_t i = 0; i < 3; ++i) {
      a.add_reference(values[i]);
      a.set_item(arguments, i, values[i]);
    }
    Aside aside;
    void* traceback = a.call(cleaning, arguments, nullptr);
    a.drop_reference(arguments);
    if (traceback) {
      void* const cleaned[] = {values[0], values[1], traceback};
      void* result = reinterpret_cast<Fast>(except_hook.original)(self, cleaned, count);
      a.drop_reference(traceback);
      a.drop_reference(cleaning);
      return result;
    }
  }
  if (cleaning) a.drop_reference(cleaning);
  a.forget_error();
  return reinterpret_cast<Fast>(except_hook.original)(self, values, count);
}

bool is_writable(const void* place) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (!maps) return false;
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, maps)) {
    uintptr_t begin = 0, end = 0;
    char protection[5] = "";
    if (sscanf(line, "%lx-%lx %4s", &begin, &end, protection) == 3 && uintptr_t(place) >= begin &&
        uintptr_t(place) < end)
      found = protection[1] == 'w';
  }
  fclose(maps);
  return found;
}

void put(Hook& hook, Definition* definition, const char* name, int flags, void* ours) {
  if (hook.definition) return;  // from an earlier stay: somebody's is over it
  if (!definition || strcmp(definition->name, name) != 0 || definition->flags != flags ||
      !is_writable(&definition->function))
    return;
  hook.definition = definition;
  hook.original = definition->function;
  __atomic_store_n(&definition->function, ours, __ATOMIC_RELEASE);
}
void take_away(Hook& hook, void* ours) {
  // Somebody may have come after us; then ours stays in his way, and does nothing any more.
  if (!hook.definition || hook.definition->function != ours) return;
  __atomic_store_n(&hook.definition->function, hook.original, __ATOMIC_RELEASE);
  hook.definition = nullptr;
}

}  // namespace
}  // namespace millpond::probe::python

using namespace millpond::probe::python;

extern "C" __attribute__((visibility("default"))) PrintSite* millpond_probe_prints(void* callable, void* print_object,
                                                                                   void* write_object,
                                                                                   void* stdout_object) {
  if (!callable) {
    ask = nullptr;
    take_away(print_hook, reinterpret_cast<void*>(print_and_count));
    take_away(write_hook, reinterpret_cast<void*>(write_and_count));
    return nullptr;
  }
  if (!frames_known() || !api()) return nullptr;
  memset(sites, 0, sizeof sites);  // another stay: code that was there may be gone, and other code may lie at its place
  ask = callable;
  stream = stdout_object;
  millpond::probe::Quiet quiet;
  if (print_object)
    put(print_hook, at<Definition*>(print_object, layout.object_bytes), "print", kFastWithKeywords,
        reinterpret_cast<void*>(print_and_count));
  if (write_object)
    put(write_hook, at<Definition*>(write_object, layout.object_bytes + 24), "write", kOneArgument,
        reinterpret_cast<void*>(write_and_count));
  return print_hook.definition ? sites : nullptr;
}

extern "C" __attribute__((visibility("default"))) int millpond_probe_exceptions(void* callable, void* hook_object) {
  if (!callable) {
    clean = nullptr;
    take_away(except_hook, reinterpret_cast<void*>(print_exception));
    return 0;
  }
  if (!frames_known() || !api()) return 1;
  clean = callable;
  millpond::probe::Quiet quiet;
  put(except_hook, at<Definition*>(hook_object, layout.object_bytes), "excepthook", kFast,
      reinterpret_cast<void*>(print_exception));
  return except_hook.definition ? 0 : 1;
}
