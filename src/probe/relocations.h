// The tables through which a module calls what it does not define (x86-64: the words that R_X86_64_JUMP_SLOT, GLOB_DAT
// and 64 fill in), of every loaded module but the loader, this library and an allocator that is not the C library's. A
// word that leads to a function we have a hook for is changed to lead to the hook, and later changed back.
//
// A word is changed only when its old value is known to be right: that very function, or the module's own stub that
// would look it up at the first call. So a module that the loader is just putting together, or one with a malloc of its
// own, is left alone. Pages that the loader made read-only become writable for the moment of the change and get the
// protection back that they had. Memory: 16 bytes for each word that was changed, some MiB of address space; all of it
// is gone after restore().
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::relocations {

struct Function {
  const char* name;
  void* hook;
  void* real;  // what the program calls without us; null: it has none
};

// Where the program's `name` is defined: in the first module that has it, as the loader would find it. `in`: an address
// of the only module that counts; null: any.
void* definition_of(const char* name, const void* in = nullptr);
// The program's allocator is not the C library's: this address lies in it. Null: it is.
void set_foreign_allocator(const void* code);

// Changes the tables of all modules that were not seen yet. Returns the number of words. `functions` stay there until
// restore().
size_t change(const Function* functions, size_t count);
// Puts every word back that still leads to a hook. Returns the number of those that somebody else has changed since:
// they stay as they are.
size_t restore();
// Whether modules were loaded or unloaded since the last change().
bool modules_changed();
void forget();  // in a child: whoever held the lock is not there

}  // namespace millpond::probe::relocations
