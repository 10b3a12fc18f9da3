#include "probe/new_delete.h"

#include <dlfcn.h>

#include "probe/file.h"
#include "probe/live.h"
#include "probe/real.h"
#include "probe/sampler.h"
#include "probe/shared.h"
#include "probe/tables.h"
#include "probe/thread.h"

// Arguments are passed in registers, so one type serves all of a family: size, or block; then alignment, size or
// std::nothrow, whichever there are.
#define MP_NEW(X)            \
  X(0, _Znwm)                \
  X(1, _Znam)                \
  X(2, _ZnwmRKSt9nothrow_t)  \
  X(3, _ZnamRKSt9nothrow_t)  \
  X(4, _ZnwmSt11align_val_t) \
  X(5, _ZnamSt11align_val_t) X(6, _ZnwmSt11align_val_tRKSt9nothrow_t) X(7, _ZnamSt11align_val_tRKSt9nothrow_t)
#define MP_DELETE(X)            \
  X(8, _ZdlPv)                  \
  X(9, _ZdaPv)                  \
  X(10, _ZdlPvm)                \
  X(11, _ZdaPvm)                \
  X(12, _ZdlPvRKSt9nothrow_t)   \
  X(13, _ZdaPvRKSt9nothrow_t)   \
  X(14, _ZdlPvSt11align_val_t)  \
  X(15, _ZdaPvSt11align_val_t)  \
  X(16, _ZdlPvmSt11align_val_t) \
  X(17, _ZdaPvmSt11align_val_t) X(18, _ZdlPvSt11align_val_tRKSt9nothrow_t) X(19, _ZdaPvSt11align_val_tRKSt9nothrow_t)

namespace millpond::probe::new_delete {
namespace {

constexpr int kNothrow = 2, kDelete = 8;
using New = void* (*)(size_t, size_t, size_t);
using Delete = void (*)(void*, size_t, size_t);

// What is thrown passes through: nothing here has to be undone.
template <int kWhich>
void* new_hook(size_t size, size_t a, size_t b) {
  const auto real = reinterpret_cast<New>(functions[kWhich].real);
  if (__builtin_expect(passes(size), 1)) return real(size, a, b);
  const Weight weight = sampler::decide(size);
  void* block = real(size, a, b);
  if (weight.bytes && block) sampler::record(block, size, weight, kLiveMalloc, __builtin_return_address(0));
  return block;
}
// The record goes first: once the block is free another thread may get it, and record it anew.
template <int kWhich>
void delete_hook(void* block, size_t a, size_t b) {
  if (__builtin_expect(live::may_hold(block), 0)) live::remove(block);
  reinterpret_cast<Delete>(functions[kWhich].real)(block, a, b);
}

void* module_of(const void* function) {
  Dl_info info;
  return function && dladdr(function, &info) ? info.dli_fbase : nullptr;
}

bool comes_by_malloc() {
  static const char nothrow = 0;
  Quiet quiet;
  const uint64_t before = me.left;
  void* block = reinterpret_cast<New>(functions[kNothrow].real)(48, reinterpret_cast<size_t>(&nothrow), 0);
  const bool met = me.left != before;
  me.left = before;
  if (block) reinterpret_cast<Delete>(functions[kDelete].real)(block, 0, 0);
  return met || !block;
}

}  // namespace

#define MP_ENTRY_NEW(number, name) {#name, reinterpret_cast<void*>(&new_hook<number>), nullptr},
#define MP_ENTRY_DELETE(number, name) {#name, reinterpret_cast<void*>(&delete_hook<number>), nullptr},
relocations::Function functions[kFunctions] = {MP_NEW(MP_ENTRY_NEW) MP_DELETE(MP_ENTRY_DELETE)};

bool look_up(const void* of_allocator) {
  const void* module = module_of(of_allocator);
  // A delete that the allocator lacks is the C++ library's, and that one calls the allocator's through a table of its
  // own, which we cannot change.
  for (int i = 0; i < int(kFunctions); ++i) {
    functions[i].real = relocations::definition_of(functions[i].name);
    if (i < kDelete && module_of(functions[i].real) != module) functions[i].real = nullptr;
  }
  // One that is only in part the allocator's own, or that comes by malloc, is seen there.
  const bool whole = functions[0].real && functions[kNothrow].real && module_of(functions[kDelete].real) == module;
  if (whole && !comes_by_malloc()) return true;
  for (relocations::Function& f : functions) f.real = nullptr;
  return false;
}

bool start() {
  if (!(allocator_flags & kAllocatorHidden) || !look_up(reinterpret_cast<void*>(real::malloc))) return false;
  relocations::set_foreign_allocator(reinterpret_cast<void*>(real::malloc));
  tables::add(functions, kFunctions);
  allocator_flags &= ~uint64_t{kAllocatorHidden};
  file::shared->allocator = allocator_flags;
  return true;
}

}  // namespace millpond::probe::new_delete
