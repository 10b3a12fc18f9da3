#include "probe/python_layout.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "probe/file.h"
#include "probe/python_check.h"

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

// _PyRuntime begins with a cookie, the version, whether it is free-threaded, and groups of offsets, each with the size
// of its structure in front. The groups that we need have their fields in the same order in every version; fields are
// added at their ends, and groups and fields between them, so a version is told by the words at which they begin.
struct Table {
  int version;
  uint16_t thread, frame, code, object, bytes, string;
};
constexpr Table kTables[] = {
    {kNewestVersion, 22, 39, 47, 58, 86, 89},
    {314, 22, 31, 39, 50, 74, 77},
    {313, 19, 28, 34, 44, 64, 67},
};
constexpr size_t kVersionWord = 1, kFreeThreadedWord = 2;

class Group {
 public:
  Group(const uint64_t* words, uint16_t begin, uint64_t most)
      : words_(words + begin), good_(words_[0] > 0 && words_[0] <= most) {}
  // An offset: within its structure.
  uint16_t operator[](size_t field) {
    good_ = good_ && words_[field] < words_[0];
    return uint16_t(words_[field]);
  }
  // A size, of a structure that this one begins with.
  uint16_t part(size_t field) {
    good_ = good_ && words_[field] <= words_[0];
    return uint16_t(words_[field]);
  }
  bool good() const { return good_; }

 private:
  const uint64_t* words_;
  bool good_;
};

// False: this is not how that table is laid out. What python_check.cc reads by it before it is proven lies within these
// sizes.
bool published(Layout& l, const Table& table, const uint64_t* words) {
  Group thread(words, table.thread, 16384), frame(words, table.frame, 256), code(words, table.code, 512);
  Group object(words, table.object, 64), bytes(words, table.bytes, 128), string(words, table.string, 128);
  l.free_threaded = words[kFreeThreadedWord] != 0;
  l.has_shims = true;
  l.thread_frame = thread[4];
  l.frame_previous = frame[1], l.frame_code = frame[2], l.frame_at = frame[3], l.frame_owner = frame[5];
  l.code_file = code[1], l.code_name = code[3], l.code_lines = code[4], l.code_first_line = code[5],
  l.code_begin = code[9];
  const bool copies = l.free_threaded && table.version >= 314;
  if (copies) l.frame_copy = frame[7], l.code_copies = code[10];
  l.code_first_traceable = uint16_t((copies ? l.code_copies : l.code_begin) - 16);
  l.object_bytes = object.part(0), l.object_type = object[1];
  l.bytes_size = bytes[1], l.bytes_text = bytes[2];
  l.string_state = string[1], l.string_length = string[2], l.ascii_text = string.part(3);
  l.compact_text = uint16_t(l.ascii_text + 16);
  l.string_kind_bit = copies ? 8 : 2;  // without the GIL the first byte is a value of its own
  return thread.good() && frame.good() && code.good() && object.good() && bytes.good() && string.good() &&
         l.code_file && l.code_begin >= 32;
}

const uint64_t* published_words() {
  const auto* words = static_cast<const uint64_t*>(dlsym(RTLD_DEFAULT, "_PyRuntime"));
  return words && memcmp(words, "xdebugpy", 8) == 0 ? words : nullptr;
}

// Finished versions keep their table; one that is still being made may have another.
bool is_finished(uint64_t hex_version) { return (hex_version >> 4 & 15) >= 0xc; }

Frames first_guess(Layout& l) {
  fixed(l, l.version);
  if (l.version <= 312) return l.code_file ? Frames::kKnown : Frames::kRefused;
  const uint64_t* words = published_words();
  if (!words) return Frames::kRefused;
  l.free_threaded = words[kFreeThreadedWord] != 0;
  for (const Table& table : kTables)
    if (table.version == l.version && !l.free_threaded && is_finished(words[kVersionWord]) &&
        published(l, table, words))
      return Frames::kKnown;
  return Frames::kUnproven;
}

void show(Frames now) {
  __atomic_store_n(&frames, now, __ATOMIC_RELEASE);
  if (file::shared) file::shared->python_frames = frames_flags();
}

}  // namespace

Frames frames = Frames::kNone;

void find_interpreter() {
  if (layout.this_thread) return;
  const auto name = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "Py_GetVersion"));
  const auto this_thread = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  if (!name || !this_thread) {
    if (frames == Frames::kNone && dlsym(RTLD_DEFAULT, "pypy_main_startup")) show(Frames::kPyPy);
    return;
  }
  char* rest = nullptr;
  const long major = strtol(name(), &rest, 10);
  Layout found;
  found.version = int(major * 100 + (*rest == '.' ? strtol(rest + 1, nullptr, 10) : 0));
  if (file::shared) file::shared->python = found.version;
  found.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
  const char* is_ending = found.version >= 313 ? "Py_IsFinalizing" : "_Py_IsFinalizing";
  found.is_ending = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, is_ending));
  const Frames guess = found.code_type && found.is_ending ? first_guess(found) : Frames::kRefused;
  layout = found;
  __atomic_store_n(&layout.this_thread, this_thread, __ATOMIC_RELEASE);
  show(guess);  // with it, the rest counts
}

void prove_frames() {
  static bool proven = false;
  if (proven || (frames != Frames::kKnown && frames != Frames::kUnproven)) return;
  if (frames == Frames::kKnown) {
    const Checked checked = check(layout);
    if (checked == Checked::kWrong) show(Frames::kRefused);
    proven = checked != Checked::kCannotTell;
    return;
  }
  const uint64_t* words = published_words();
  bool could_tell = true;
  for (const Table& table : kTables) {
    Layout l = layout;
    if (!published(l, table, words)) continue;
    const Checked checked = check(l);
    could_tell = could_tell && checked != Checked::kCannotTell;
    if (checked != Checked::kRight) continue;
    layout = l;
    proven = true;
    show(Frames::kKnown);
    return;
  }
  if (could_tell) show(Frames::kRefused);
}

uint64_t frames_flags() {
  if (frames == Frames::kNone) return 0;
  if (frames == Frames::kPyPy) return kPyPy;
  return (frames == Frames::kKnown ? kFramesSeen : kFramesNotKnown) | (layout.free_threaded ? kFreeThreaded : 0);
}

}  // namespace millpond::probe::python
