#include "probe/tick.h"

#include <pthread.h>
#include <unistd.h>

#include "probe/python_api.h"
#include "probe/thread.h"

namespace millpond::probe::tick {
namespace {

int (*add_pending)(int (*)(void*), void*) = nullptr;
void* callable = nullptr;  // owned, so that it is there when Python comes to the call while it ends; once.py keeps it
                           // too, so it may run while another thread sets null
uint64_t every = 0, next = ~0ull;
uint64_t asked = 0;  // when Python was asked for the call that it has not made yet; 0: it has
bool helping = false;
constexpr uint64_t kPatience = 1'000'000'000;

// What Python is asked to call is ours and stays mapped: it may come to it when nobody wants the call any more. -1: an
// exception goes on its way in the program; the agent keeps its own to itself, so it is one that a handler of the
// program raised.
int call(void* const agent) {
  const python::Api* a = python::api();
  if (!agent || !a || python::is_deep()) return 0;
  python::Aside aside;
  void* none = a->new_tuple(0);
  void* answer = none ? a->call(agent, none, nullptr) : nullptr;
  if (none) a->drop_reference(none);
  if (answer) a->drop_reference(answer);
  return answer ? 0 : -1;
}
int call_if_wanted(void*) {
  __atomic_store_n(&asked, 0, __ATOMIC_RELEASE);
  return call(__atomic_load_n(&callable, __ATOMIC_ACQUIRE));
}

void* help(void*) {
  const python::Api* a = python::api();
  const int before = a->take_gil();
  if (call(__atomic_load_n(&callable, __ATOMIC_ACQUIRE)) != 0) a->forget_error();
  a->give_gil(before);
  __atomic_store_n(&helping, false, __ATOMIC_RELEASE);
  return nullptr;
}
// The main thread has not been between two bytecodes for long, and others run.
void start_helper() {
  if (me.id == uint32_t(getpid()) || __atomic_exchange_n(&helping, true, __ATOMIC_ACQ_REL)) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread has them blocked: no handler of the program runs there
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 2 << 20);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, help, nullptr) != 0) __atomic_store_n(&helping, false, __ATOMIC_RELEASE);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  __atomic_store_n(&asked, 0, __ATOMIC_RELEASE);
  if (function && every_ns) __atomic_store_n(&next, 0, __ATOMIC_SEQ_CST);
}

void at(uint64_t now) {
  uint64_t due = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
  if (now < due || due == ~0ull) return;
  if (!__atomic_compare_exchange_n(&next, &due, now + every, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  const uint64_t since = __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
  if (since == 0) {
    __atomic_store_n(&asked, now, __ATOMIC_RELEASE);
    if (add_pending(call_if_wanted, nullptr) != 0) __atomic_store_n(&asked, 0, __ATOMIC_RELEASE);
  } else if (now - since > kPatience) {
    start_helper();
  }
}

}  // namespace millpond::probe::tick
