// What the file of a program says of how it can be looked into, before it is started. Reads its headers only; a file
// that is none of ours to understand (a script) says nothing.
#pragma once
#include <string>

namespace millpond::watch {

struct Binary {
  bool is_static = false;  // no dynamic linker, and so nobody who would load us; or not for this machine
  std::string sanitizer;   // "address sanitizer": its run time must come first of all libraries; empty: none
};
/// Of a script what its first line names is read.
Binary read_binary(const std::string& path);

/// The sanitizer whose run time a word of LD_PRELOAD is, or brings along; empty: none. A word without a slash is looked
/// for as the dynamic linker does: in LD_LIBRARY_PATH, then in the system's folders.
std::string preloaded_sanitizer(const std::string& preload, const std::string& library_path);

}  // namespace millpond::watch
