#include "probe/python_api.h"

#include <dlfcn.h>
#include <pthread.h>

#include <initializer_list>

#include "probe/python_frames.h"
#include "probe/python_layout.h"
#include "probe/python_types.h"
#include "probe/shared.h"
#include "probe/thread.h"

namespace millpond::probe::python {
namespace {

constexpr size_t kTracing =
    44;  // PyThreadState.tracing of 3.9 and 3.10: how many trace functions run now; none is called then

template <class F>
bool find(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

bool look_up(Api& a) {
  Quiet quiet;
  const bool all = find(a.new_tuple, "PyTuple_New") && find(a.set_item, "PyTuple_SetItem") &&
                   find(a.item, "PyTuple_GetItem") && find(a.add_reference, "Py_IncRef") &&
                   find(a.drop_reference, "Py_DecRef") && find(a.call, "PyObject_Call") &&
                   find(a.new_integer, "PyLong_FromLong") && find(a.forget_error, "PyErr_Clear") &&
                   find(a.add_pending, "Py_AddPendingCall") && find(a.take_gil, "PyGILState_Ensure") &&
                   find(a.give_gil, "PyGILState_Release") && find(a.new_function, "PyCFunction_NewEx") &&
                   find(a.new_method, "PyInstanceMethod_New") && find(a.recursion_limit, "Py_GetRecursionLimit") &&
                   find(a.none, "_Py_NoneStruct");
  if (find(a.enter_tracing, "PyThreadState_EnterTracing")) find(a.leave_tracing, "PyThreadState_LeaveTracing");
  return all;
}

constexpr int kWithKeywords = 1 | 2;  // a tuple and a dictionary

void* call_untraced(void* callable, void* arguments, void* keywords) {
  Aside aside;
  return api()->call(callable, arguments, keywords);
}
// self: a tuple of what is called and what is called after it.
void* call_and_after(void* both, void* arguments, void* keywords) {
  const Api& a = *api();
  void* result = a.call(a.item(both, 0), arguments, keywords);
  if (!result || is_deep()) return result;
  Aside aside;
  void* answer = a.call(a.item(both, 1), arguments, keywords);
  if (!answer) {
    a.drop_reference(result);
    return nullptr;
  }
  a.drop_reference(answer);
  return result;
}
Definition after_call = {"millpond", reinterpret_cast<void*>(call_and_after), kWithKeywords, nullptr};
Definition untraced_call = {"millpond", reinterpret_cast<void*>(call_untraced), kWithKeywords, nullptr};

}  // namespace

const Api* api() {
  static Api found;
  static bool looked = false, all = false;
  if (!looked) {
    all = look_up(found);
    looked = true;
  }
  return all ? &found : nullptr;
}

bool is_deep() {
  // Until 3.11 calls through functions written in C count too: as many again for each frame, and some for our own.
  constexpr int kForAFrame = 3, kForUs = 64;
  const Api* a = api();
  if (!a || !frames_known()) return false;
  const int most = (a->recursion_limit() - kForUs) / kForAFrame;
  const void* frame = innermost_frame(layout, layout.this_thread());
  for (int i = 0; i < most; ++i) {
    if (!plausible(frame)) return false;
    frame = at<const void*>(frame, layout.frame_previous);
  }
  return true;
}

Aside::Aside() : thread_(layout.this_thread ? layout.this_thread() : nullptr) {
  sigset_t most;
  sigfillset(&most);
  for (const int at_once : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&most, at_once);
  pthread_sigmask(SIG_SETMASK, &most, &before_);
  if (!thread_) return;
  if (layout.version < 311)
    ++*reinterpret_cast<int*>(static_cast<char*>(thread_) + kTracing);
  else if (api() && api()->leave_tracing)
    api()->enter_tracing(thread_);
}
Aside::~Aside() {
  if (thread_ && layout.version < 311)
    --*reinterpret_cast<int*>(static_cast<char*>(thread_) + kTracing);
  else if (thread_ && api() && api()->leave_tracing)
    api()->leave_tracing(thread_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace millpond::probe::python

using namespace millpond::probe::python;

extern "C" __attribute__((visibility("default"))) void* millpond_probe_untraced(void* callable) {
  const Api* a = api();
  if (a && layout.this_thread)
    if (void* function = a->new_function(&untraced_call, callable, nullptr)) return function;
  if (a) a->forget_error(), a->add_reference(callable);
  return callable;
}

extern "C" __attribute__((visibility("default"))) void* millpond_probe_after(void* original, void* then, int method) {
  const Api* a = api();
  void* both = a ? a->new_tuple(2) : nullptr;
  if (!both) return nullptr;
  a->add_reference(original), a->set_item(both, 0, original);
  a->add_reference(then), a->set_item(both, 1, then);
  void* function = a->new_function(&after_call, both, nullptr);
  a->drop_reference(both);
  if (!function || !method) return function;
  void* bound = a->new_method(function);
  a->drop_reference(function);
  return bound;
}

extern "C" __attribute__((visibility("default"))) void* millpond_probe_locals(void* frame, size_t hop, size_t offset,
                                                                              int count) {
  const Api* a = api();
  void* values = a->new_tuple(count);  // a collection may run here; from now on nothing else does
  if (!values) return nullptr;
  char* base = static_cast<char*>(frame);
  if (hop) base = *reinterpret_cast<char**>(base + hop);
  void** places = reinterpret_cast<void**>(base + offset);
  for (int i = 0; i < count; ++i) {
    void* value = places[i] ? places[i] : frame;
    a->add_reference(value);
    a->set_item(values, i, value);
  }
  return values;
}

extern "C" __attribute__((visibility("default"))) void* millpond_probe_registered(const void* table, int count) {
  const Api* a = api();
  void* parts = a->new_tuple(ptrdiff_t(count) * 3);  // a collection may run here; from now on nothing else does
  if (!parts) return nullptr;
  void*** const entries = at<void***>(table, 0);
  const bool same = at<int>(table, 8) == count;
  for (int i = 0; i < count * 3; ++i) {
    void* part = same && entries[i / 3] ? entries[i / 3][i % 3] : nullptr;
    if (!part) part = a->none;
    a->add_reference(part);
    a->set_item(parts, i, part);
  }
  return parts;
}
