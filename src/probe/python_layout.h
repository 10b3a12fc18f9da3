// Where CPython keeps what a stack needs: thread, frame, code, string, bytes. Offsets by version: fixed ones for 3.9 to
// 3.12, those that the interpreter publishes itself (_Py_DebugOffsets) for 3.13. 64-bit builds with the GIL.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::python {

enum class Lines : uint8_t { kLnotab, kLinetable, kLocations };  // 3.9, 3.10, since 3.11

struct Layout {
  int version = 0;              // 311: 3.11; 0: no interpreter, or one whose inside is not known
  uint16_t thread_frame = 0;    // where a thread keeps its innermost frame...
  uint16_t through_cframe = 0;  // ...or, when `has_cframe`, what points to it
  bool has_cframe = false;
  bool frame_objects = false;  // PyFrameObject with f_lasti (before 3.11); later ones hold a pointer into the code
  bool has_shims = false;      // frames that only stand for a call from C
  uint16_t frame_code = 0, frame_previous = 0, frame_at = 0, frame_owner = 0;
  uint16_t code_file = 0, code_name = 0, code_first_line = 0, code_lines = 0, code_begin = 0, code_first_traceable = 0;
  Lines lines = Lines::kLocations;
  uint16_t ascii_text = 0, compact_text = 0;  // where the characters of a string begin
  void* (*this_thread)() = nullptr;           // PyGILState_GetThisThreadState: reads a thread-local value
  int (*is_ending)() = nullptr;               // Py_IsFinalizing: reads a value
  const void* code_type = nullptr;            // PyCode_Type
};

extern Layout layout;

// The same in every version.
inline constexpr size_t kObjectType = 8, kBytesSize = 16, kBytesText = 32, kStringLength = 16, kStringState = 32;
inline constexpr uint8_t kOwnedByGenerator = 1, kOwnedByC = 3;

// Looks for an interpreter in the process, if none was found yet. Asks the loader, so it is not for hooks.
void find_interpreter();

template <class T>
inline T at(const void* object, size_t offset) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(object) + offset);
}
// A pointer that an object can have. The last defence against a layout that is not what we think: no frames, no crash.
inline bool plausible(const void* p) {
  return uintptr_t(p) >= 4096 && uintptr_t(p) < (uintptr_t{1} << 47) && uintptr_t(p) % 8 == 0;
}

}  // namespace millpond::probe::python
