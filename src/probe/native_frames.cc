#include "probe/native_frames.h"

#include <dlfcn.h>
#include <unwind.h>

#include "probe/cfi.h"
#include "probe/real.h"

namespace millpond::probe::native {
namespace {

constexpr uintptr_t kLargestStack = 256 << 20;
constexpr int kMaxSteps = 4 * kMaxDepth;

uintptr_t main_stack_end = 0;  // __libc_stack_end
CodeRange cxx_library;

// The upper end of the stack that `sp` is on, or 0. The C library puts a thread's own data above its stack.
uintptr_t stack_end(uintptr_t sp) {
  uintptr_t thread;
  asm("mov %%fs:0x10, %0" : "=r"(thread));
  if (sp < thread && thread - sp < kLargestStack) return thread;
  if (sp < main_stack_end && main_stack_end - sp < kLargestStack) return main_stack_end;
  return 0;
}

struct Registers {
  uintptr_t pc, sp, bp;
};

enum class Step { kDone, kEnd, kFailed };

Step step(Registers& r, uintptr_t end) {
  const cfi::Rule rule = cfi::rule_at(r.pc);
  auto inside = [&](uintptr_t p) { return p >= r.sp && p + 8 <= end && p % 8 == 0; };
  auto word = [](uintptr_t p) { return *reinterpret_cast<const uintptr_t*>(p); };
  uintptr_t cfa = 0;
  switch (rule.cfa) {
    case cfi::Cfa::kUnknown:
      return Step::kFailed;
    case cfi::Cfa::kEnd:
      return Step::kEnd;
    case cfi::Cfa::kFromRsp:
      cfa = r.sp + uintptr_t(intptr_t(rule.cfa_offset));
      break;
    case cfi::Cfa::kFromRbp:
      cfa = r.bp + uintptr_t(intptr_t(rule.cfa_offset));
      break;
    case cfi::Cfa::kThroughRbp: {
      const uintptr_t at = r.bp + uintptr_t(intptr_t(rule.cfa_offset));
      if (!inside(at)) return Step::kFailed;
      cfa = word(at);
      break;
    }
  }
  if (cfa <= r.sp || !inside(cfa - 8)) return Step::kFailed;
  if (rule.rbp != cfi::Rbp::kSame) {
    const uintptr_t at = (rule.rbp == cfi::Rbp::kFromCfa ? cfa : r.bp) + uintptr_t(intptr_t(rule.rbp_offset));
    if (!inside(at)) return Step::kFailed;
    r.bp = word(at);
  }
  r.pc = word(cfa - 8);
  r.sp = cfa;
  return r.pc ? Step::kDone : Step::kEnd;
}

// False: another unwinder must do it; the trace is as it was.
template <class More>
__attribute__((noinline)) bool walk_by_rules(stacks::Trace& trace, uintptr_t caller, More more) {
  Registers r;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(r.pc), "=r"(r.sp), "=r"(r.bp));
  const uintptr_t end = stack_end(r.sp);
  if (!end) return false;
  const uint32_t before = trace.count;
  bool begun = false;
  for (int i = 0; i < kMaxSteps; ++i) {
    const Step did = step(r, end);
    if (did == Step::kEnd && begun) return true;
    if (did != Step::kDone) break;
    if (!begun && r.pc != caller) continue;  // the probe's own frames
    begun = true;
    if (!trace.add(r.pc) || !more(r.pc)) return true;
  }
  trace.count = before;
  return false;
}

struct SlowWalk {
  stacks::Trace& trace;
  uintptr_t caller;
  bool begun = false;
};
_Unwind_Reason_Code slow_step(_Unwind_Context* context, void* walk_) {
  auto& walk = *static_cast<SlowWalk*>(walk_);
  const uintptr_t pc = _Unwind_GetIP(context);
  if (pc == 0) return _URC_END_OF_STACK;
  if (!walk.begun) {
    if (pc != walk.caller) return _URC_NO_REASON;
    walk.begun = true;
  }
  return walk.trace.add(pc) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

void start() {
  cfi::start();
  if (void* end = dlsym(RTLD_DEFAULT, "__libc_stack_end")) main_stack_end = *static_cast<uintptr_t*>(end);
}

void walk_slowly(stacks::Trace& trace, const void* caller) {
  SlowWalk walk{trace, uintptr_t(caller)};
  _Unwind_Backtrace(slow_step, &walk);
  if (!walk.begun) trace.add(uintptr_t(caller));
}

void walk(stacks::Trace& trace, const void* caller) {
  if (!walk_by_rules(trace, uintptr_t(caller), [](uintptr_t) { return true; })) walk_slowly(trace, caller);
}

void walk_to_owner(stacks::Trace& trace, const void* caller) {
  if (!cxx_library.holds(caller) || !walk_by_rules(trace, uintptr_t(caller), [](uintptr_t pc) {
        return cxx_library.holds(reinterpret_cast<void*>(pc));
      }))
    trace.add(uintptr_t(caller));
}

void set_cxx_library(uintptr_t begin, uintptr_t end) { cxx_library = {begin, end}; }

}  // namespace millpond::probe::native
