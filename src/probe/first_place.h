// What must be the first library of its process: the run time of a sanitizer. Nothing is loaded before it, or the
// program would not start. Asked between vfork and exec too: nothing is written but the stack, and nothing is
// allocated.
#pragma once

namespace millpond::probe {

/// Whether the file is a program or library that a run time is linked into, or that needs one; of a script, its
/// interpreter.
bool needs_first_place(const char* path);
/// Whether a word of LD_PRELOAD is one. A word without a slash is looked for as the dynamic linker does: in
/// LD_LIBRARY_PATH, then in the system's folders.
bool preload_needs_first_place(const char* preload, const char* library_path);

}  // namespace millpond::probe
