// Where CPython keeps what a stack needs: thread, frame, code, string, bytes. Fixed offsets for 3.9 to 3.12; from 3.13
// on those that the interpreter publishes itself (_Py_DebugOffsets), with the GIL or without. Once the interpreter is
// up, what is read by them is held against what it says itself (python_check.h): a version that is not known here is
// read if it passes, and otherwise told. 64-bit builds.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::python {

enum class Lines : uint8_t { kLnotab, kLinetable, kLocations };  // 3.9, 3.10, since 3.11

struct Layout {
  int version = 0;              // 311: 3.11; 0: no interpreter
  bool free_threaded = false;   // built without the GIL
  uint16_t thread_frame = 0;    // where a thread keeps its innermost frame...
  uint16_t through_cframe = 0;  // ...or, when `has_cframe`, what points to it
  bool has_cframe = false;
  bool frame_objects = false;  // PyFrameObject with f_lasti (before 3.11); later ones hold a pointer into the code
  bool has_shims = false;      // frames that only stand for a call from C
  uint16_t frame_code = 0, frame_previous = 0, frame_at = 0, frame_owner = 0;
  uint16_t frame_copy = 0,
           code_copies = 0;  // free-threaded since 3.14: threads run copies of the byte code, frame_copy is which
  uint16_t code_file = 0, code_name = 0, code_first_line = 0, code_lines = 0, code_begin = 0, code_first_traceable = 0;
  Lines lines = Lines::kLocations;
  uint16_t object_bytes = 16, object_type = 8;  // what every object begins with
  uint16_t bytes_size = 16, bytes_text = 32;
  uint16_t string_length = 16, string_state = 32, string_kind_bit = 2;  // the state's bits: kind (3), compact, ascii
  uint16_t ascii_text = 0, compact_text = 0;                            // where the characters of a string begin
  void* (*this_thread)() = nullptr;  // PyGILState_GetThisThreadState: reads a thread-local value
  int (*is_ending)() = nullptr;      // Py_IsFinalizing: reads a value
  const void* code_type = nullptr;   // PyCode_Type
};

extern Layout layout;

enum class Frames : uint32_t {
  kNone,      // no interpreter was found
  kPyPy,      // another one than CPython
  kUnproven,  // one whose layout must be tried first
  kKnown,     // `layout` counts
  kRefused    // what was read is not what the interpreter says: nothing is read
};
extern Frames frames;
inline bool frames_known() { return __atomic_load_n(&frames, __ATOMIC_ACQUIRE) == Frames::kKnown; }

inline constexpr int kNewestVersion = 315;  // whose headers were read; of newer ones only what the check proves is used
inline constexpr uint8_t kOwnedByGenerator = 1,
                         kOwnedByC = 3;   // and above: frames that are no function's, only a call from C
inline constexpr uintptr_t kTagBits = 3;  // of a frame's pointer to its code since 3.14: how it is counted

// Looks for an interpreter in the process, if none was found yet. Asks the loader, so it is not for hooks.
void find_interpreter();

// Tries the layout, or each that is known here where the version is not, on the frames of this thread. With the GIL
// held.
void prove_frames();

uint64_t frames_flags();  // PythonFrames in shared.h

template <class T>
inline T at(const void* object, size_t offset) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(object) + offset);
}
// A pointer that an object can have. The last defence against a layout that is not what we think: no frames, no crash.
inline bool plausible(const void* p) {
  return uintptr_t(p) >= 4096 && uintptr_t(p) < (uintptr_t{1} << 47) && uintptr_t(p) % 8 == 0;
}

}  // namespace millpond::probe::python
