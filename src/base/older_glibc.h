// Which loaded file a piece of code belongs to, and where that file's tables for exceptions are.
#pragma once
#include <cstdint>

namespace millpond {

/// As dlfcn.h of glibc 2.35 has it.
struct LoadedObject {
  unsigned long long flags;
  void* begin;
  void* end;
  void* link_map;
  void* eh_frame_header;
  unsigned long long unused[7];
};

/// What the loader's _dl_find_object tells but for the link map, found by looking through all loaded files; 0, or -1
/// when the address is in none of them.
int find_object_in_list(void* pc, LoadedObject* result) noexcept;

}  // namespace millpond
