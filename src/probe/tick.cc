#include "probe/tick.h"

#include "probe/python_api.h"

namespace millpond::probe::tick {
namespace {

int (*add_pending)(int (*)(void*), void*) = nullptr;
void* callable = nullptr;  // owned, so that it is there when Python comes to the call while it ends; once.py keeps it too, so it may run while another thread sets null
uint64_t every = 0, next = ~0ull;

// What Python is asked to call is ours and stays mapped: it may come to it when nobody wants the call any more. -1: an exception goes on its way in the
// program; the agent keeps its own to itself, so it is one that a handler of the program raised.
int call_if_wanted(void*) {
  const python::Api* a = python::api();
  void* const agent = __atomic_load_n(&callable, __ATOMIC_ACQUIRE);
  if (!agent || !a) return 0;
  python::Aside aside;
  void* none = a->new_tuple(0);
  void* answer = none ? a->call(agent, none, nullptr) : nullptr;
  if (none) a->drop_reference(none);
  if (answer) a->drop_reference(answer);
  return answer ? 0 : -1;
}

}  // namespace

void set(void* function, uint64_t every_ns) {
  __atomic_store_n(&next, ~0ull, __ATOMIC_SEQ_CST);
  const python::Api* a = function || callable ? python::api() : nullptr;
  if (!a) return;
  add_pending = a->add_pending;
  if (function) a->add_reference(function);
  void* const before = __atomic_exchange_n(&callable, function, __ATOMIC_ACQ_REL);
  if (before) a->drop_reference(before);
  every = every_ns;
  if (function && every_ns) __atomic_store_n(&next, 0, __ATOMIC_SEQ_CST);
}

void at(uint64_t now) {
  uint64_t due = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
  if (now < due || due == ~0ull) return;
  if (__atomic_compare_exchange_n(&next, &due, now + every, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) add_pending(call_if_wanted, nullptr);
}

}  // namespace millpond::probe::tick
