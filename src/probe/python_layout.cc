#include "probe/python_layout.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "probe/file.h"

namespace millpond::probe::python {

Layout layout;

namespace {

// Read from the headers of 3.9.18, 3.10.13, 3.11.7 and 3.12.1; tests/probe/python_test.py walks through each.
void fixed(Layout& l, int version) {
  switch (version) {
    case 309:
    case 310:
      l.frame_objects = true;
      l.thread_frame = 24;
      l.frame_code = 32, l.frame_previous = 24, l.frame_at = version == 309 ? 104 : 96;
      l.code_file = 104, l.code_name = 112, l.code_first_line = 40, l.code_lines = 120;
      l.lines = version == 309 ? Lines::kLnotab : Lines::kLinetable;
      l.ascii_text = 48, l.compact_text = 72;
      break;
    case 311:
      l.has_cframe = true;
      l.thread_frame = 56, l.through_cframe = 8;
      l.frame_code = 32, l.frame_previous = 48, l.frame_at = 56, l.frame_owner = 69;
      l.code_file = 112, l.code_name = 128, l.code_first_line = 72, l.code_lines = 136, l.code_begin = 184;
      l.code_first_traceable = 168;
      l.ascii_text = 48, l.compact_text = 72;
      break;
    case 312:
      l.has_cframe = true, l.has_shims = true;
      l.thread_frame = 56, l.through_cframe = 0;
      l.frame_code = 0, l.frame_previous = 8, l.frame_at = 56, l.frame_owner = 70;
      l.code_file = 112, l.code_name = 128, l.code_first_line = 68, l.code_lines = 136, l.code_begin = 192;
      l.code_first_traceable = 176;
      l.ascii_text = 40, l.compact_text = 56;
      break;
  }
}

// _PyRuntime begins with a cookie, the version, whether it is free-threaded, and groups of offsets. The places below are
// those of 3.13; what they hold is what this interpreter was built with.
bool published(Layout& l, const void* runtime) {
  if (!runtime || memcmp(runtime, "xdebugpy", 8) != 0) return false;
  if (at<uint64_t>(runtime, 8) >> 16 != 0x030d || at<uint64_t>(runtime, 16) != 0) return false;
  auto offset = [&](size_t place) { return uint16_t(at<uint64_t>(runtime, place)); };
  l.has_shims = true;
  l.thread_frame = offset(184);
  l.frame_previous = offset(232), l.frame_code = offset(240), l.frame_at = offset(248), l.frame_owner = offset(264);
  l.code_file = offset(280), l.code_name = offset(296), l.code_lines = offset(304), l.code_first_line = offset(312);
  l.code_begin = offset(344), l.code_first_traceable = uint16_t(l.code_begin - 16);
  l.ascii_text = offset(560), l.compact_text = uint16_t(l.ascii_text + 16);
  return true;
}

}  // namespace

void find_interpreter() {
  if (layout.this_thread) return;
  const auto name = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  const auto this_thread = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  if (!name || !this_thread) return;
  char* rest = nullptr;
  const long major = strtol(name(), &rest, 10);
  const int version = int(major * 100 + (*rest == '.' ? strtol(rest + 1, nullptr, 10) : 0));
  if (file::shared) file::shared->python = version;
  Layout found;
  found.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
  const char* is_ending = version >= 313 ? "Py_IsFinalizing" : "_Py_IsFinalizing";
  found.is_ending = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, is_ending));
  found.version = version;
  fixed(found, version);
  if (version == 313 && !published(found, dlsym(RTLD_DEFAULT, "_PyRuntime"))) return;
  if (!found.code_file || !found.code_type || !found.is_ending) return;
  layout = found;
  __atomic_store_n(&layout.this_thread, this_thread, __ATOMIC_RELEASE);  // with it, the rest counts
}

}  // namespace millpond::probe::python
