// Functions of the interpreter that the agent's own calls need, looked up once with the GIL held. Not for hooks of
// malloc.
#pragma once
#include <signal.h>
#include <stddef.h>

namespace millpond::probe::python {

struct Api {
  void* (*new_tuple)(ptrdiff_t);
  int (*set_item)(void*, ptrdiff_t, void*);  // takes the reference over
  void* (*item)(void*, ptrdiff_t);           // lends it
  void (*add_reference)(void*);
  void (*drop_reference)(void*);
  void* (*call)(void*, void*, void*);  // with a tuple and a dictionary, or null
  void* (*new_integer)(long);
  void (*forget_error)();
  int (*add_pending)(int (*)(void*), void*);  // needs no GIL and allocates nothing
  int (*take_gil)();                          // of a thread that Python need not know
  void (*give_gil)(int);
  void* (*new_function)(void* definition, void* self, void* module);
  void* (*new_method)(void* callable);
  void (*enter_tracing)(void*);  // since 3.11
  void (*leave_tracing)(void*);
  int (*recursion_limit)();
  void* none;
};
// Null where one is missing.
const Api* api();

// This thread is so deep in calls that the agent's own could meet the recursion limit: it is not asked then. The error
// would be the program's, and Python 3.9 that has told it once lets the program run on until the stack is full.
bool is_deep();

// While one is there, what this thread runs is the agent's and not the program's: trace and profile functions do not
// see it, and signals wait, so that no handler of the program runs, and raises, in the middle of it.
class Aside {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  void* thread_;
  sigset_t before_;
};

}  // namespace millpond::probe::python
