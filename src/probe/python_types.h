// What the interpreter hands over and takes by its C functions, as its headers lay it out. Only what is the same in
// every version we know.
#pragma once
#include <stddef.h>

namespace millpond::probe::python {

// cpython/pymem.h and objimpl.h; since 3.5.
struct Allocator {
  void* context;
  void* (*malloc)(void* context, size_t size);
  void* (*calloc)(void* context, size_t count, size_t size);
  void* (*realloc)(void* context, void* block, size_t size);
  void (*free)(void* context, void* block);
};
struct ArenaAllocator {
  void* context;
  void* (*alloc)(void* context, size_t size);
  void (*free)(void* context, void* arena, size_t size);
};
enum Domain { kRaw, kMem, kObject };

// methodobject.h: PyMethodDef.
struct Definition {
  const char* name;
  void* function;
  int flags;
  const char* text;
};

}  // namespace millpond::probe::python
