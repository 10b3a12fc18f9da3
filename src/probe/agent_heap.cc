#include "probe/agent_heap.h"

#include "probe/file.h"
#include "probe/live.h"
#include "probe/lock.h"
#include "probe/system.h"

namespace millpond::probe::agent_heap {
namespace {

constexpr size_t kBytes = 64 << 20, kSmallest = 1 << 10, kLargest = 4 << 20, kClasses = 13;
constexpr size_t kReturned = 64 << 10;  // the system gets the memory of blocks of that size back at once
static_assert(kSmallest << (kClasses - 1) == kLargest);

struct Header {
  uint32_t size_class;
  uint32_t asked;  // bytes, and one more; 0: it was given back
  Header* next;    // of those
};
static_assert(sizeof(Header) == 16);  // what follows it is aligned as malloc's blocks are

Lock lock;
char* begin = nullptr;  // of all blocks; set once
size_t end = 0;         // offset behind the last that was ever used; its header is written before
Header* given_back[kClasses];
uint64_t asked_bytes = 0;

size_t size_of(uint32_t size_class) { return kSmallest << size_class; }
uint32_t class_of(size_t bytes) {
  return bytes <= kSmallest ? 0 : uint32_t(64 - __builtin_clzll((bytes - 1) / kSmallest));
}
Header* header_of(const void* block) { return static_cast<Header*>(const_cast<void*>(block)) - 1; }

Header* new_block(uint32_t size_class) {
  if (!begin) {
    char* mapped = static_cast<char*>(sys::map_private(kBytes));
    if (!mapped) return nullptr;
    __atomic_store_n(&begin, mapped, __ATOMIC_RELEASE);
  }
  const size_t size = size_of(size_class);
  if (kBytes - end < size) return nullptr;
  auto* header = reinterpret_cast<Header*>(begin + end);
  header->size_class = size_class;
  __atomic_store_n(&end, end + size, __ATOMIC_RELEASE);
  if (file::is_open()) file::add(file::shared->probe_bytes, size);
  return header;
}

}  // namespace

void* take(size_t size) {
  if (size > kLargest - sizeof(Header)) return nullptr;
  const uint32_t size_class = class_of(size + sizeof(Header));
  Header* header;
  {
    Locked locked(lock);
    header = given_back[size_class];
    if (header)
      given_back[size_class] = header->next;
    else
      header = new_block(size_class);
    if (!header) return nullptr;
    header->asked = uint32_t(size + 1);
  }
  file::add(asked_bytes, size);
  live::enter(header + 1);
  return header + 1;
}

void give(void* block) {
  live::leave(block);
  Header* header = header_of(block);
  file::add(asked_bytes, uint64_t{0} - (header->asked - 1));
  if (const size_t size = size_of(header->size_class); size >= kReturned) {
    const uintptr_t first = (uintptr_t(block) + sys::kPageSize - 1) / sys::kPageSize * sys::kPageSize;
    const uintptr_t last = (uintptr_t(header) + size) / sys::kPageSize * sys::kPageSize;
    sys::wipe(reinterpret_cast<void*>(first), last - first);
  }
  Locked locked(lock);
  header->asked = 0;
  header->next = given_back[header->size_class];
  given_back[header->size_class] = header;
}

bool holds(const void* block) {
  const char* at = __atomic_load_n(&begin, __ATOMIC_ACQUIRE);
  return at && uintptr_t(block) - uintptr_t(at) < kBytes;
}

bool resize(void* block, size_t size) {
  Header* header = header_of(block);
  if (size > room_of(block)) return false;
  file::add(asked_bytes, size + 1 - header->asked);
  header->asked = uint32_t(size + 1);
  return true;
}

uint64_t in_use() { return __atomic_load_n(&asked_bytes, __ATOMIC_RELAXED); }

size_t room_of(const void* block) { return size_of(header_of(block)->size_class) - sizeof(Header); }

void each(void (*call)(const void* block)) {
  for (size_t at = 0; at < end;) {
    auto* header = reinterpret_cast<Header*>(begin + at);
    if (header->asked) call(header + 1);
    at += size_of(header->size_class);
  }
}

// The lists may be half changed: what lies in them is not used again.
void forget() {
  lock = {};
  for (Header*& first : given_back) first = nullptr;
}

}  // namespace millpond::probe::agent_heap
