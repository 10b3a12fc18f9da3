#include "probe/tick.h"

#include "probe/python_api.h"

namespace millpond::probe::tick {
namespace {

AddPending add_pending = nullptr;
Call call = nullptr;
uint64_t every = 0, next = ~0ull;

int call_aside(void*) {
  const Call agent = __atomic_load_n(&call, __ATOMIC_ACQUIRE);
  if (!agent) return 0;
  python::Aside aside;
  return agent(nullptr);
}

}  // namespace

void set(AddPending add, Call function, uint64_t every_ns) {
  __atomic_store_n(&next, ~0ull, __ATOMIC_SEQ_CST);
  add_pending = add;
  call = function;
  every = every_ns;
  if (add && function && every_ns) __atomic_store_n(&next, 0, __ATOMIC_SEQ_CST);
}

void at(uint64_t now) {
  uint64_t due = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
  if (now < due || due == ~0ull) return;
  if (__atomic_compare_exchange_n(&next, &due, now + every, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) add_pending(call_aside, nullptr);
}

}  // namespace millpond::probe::tick
