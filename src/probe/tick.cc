#include "probe/tick.h"

#include "probe/python_api.h"

namespace millpond::probe::tick {
namespace {

AddPending add_pending = nullptr;
Call call = nullptr;
uint64_t every = 0, next = ~0ull;

// What Python is asked to call is ours and stays mapped: it may come to it when nobody wants the call any more.
int call_if_wanted(void*) {
  const Call agent = __atomic_load_n(&call, __ATOMIC_ACQUIRE);
  if (!agent) return 0;
  python::Aside aside;
  return agent(nullptr);
}

}  // namespace

void set(AddPending add, Call function, uint64_t every_ns) {
  __atomic_store_n(&next, ~0ull, __ATOMIC_SEQ_CST);
  add_pending = add;
  __atomic_store_n(&call, function, __ATOMIC_RELEASE);
  every = every_ns;
  if (add && function && every_ns) __atomic_store_n(&next, 0, __ATOMIC_SEQ_CST);
}

void at(uint64_t now) {
  uint64_t due = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
  if (now < due || due == ~0ull) return;
  if (__atomic_compare_exchange_n(&next, &due, now + every, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) add_pending(call_if_wanted, nullptr);
}

}  // namespace millpond::probe::tick
