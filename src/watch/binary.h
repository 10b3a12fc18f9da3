// What the file of a program says of how it can be looked into, before it is started. Reads its headers only; a file that is none of ours to
// understand (a script) says nothing.
#pragma once
#include <string>

namespace millpond::watch {

struct Binary {
  bool is_static = false;  // no dynamic linker, and so nobody who would load us; or not for this machine
  std::string sanitizer;   // "address sanitizer": its run time must come first of all libraries; empty: none
};
Binary read_binary(const std::string& path);

}  // namespace millpond::watch
