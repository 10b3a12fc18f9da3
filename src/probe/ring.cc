#include "probe/ring.h"

#include <string.h>

#include "probe/file.h"
#include "probe/lock.h"

namespace millpond::probe::ring {
namespace {

Lock writing;

bool lost() {
  file::add(file::shared->lost_records);
  return false;
}

}  // namespace

bool write(RecordKind kind, uint64_t t_ns, Part head, Part middle, Part tail) {
  const size_t size = (head.size + middle.size + tail.size + 7) & ~size_t{7};
  Locked locked(writing);
  Shared& shared = *file::shared;
  uint64_t at = shared.write;
  const uint64_t behind = at - __atomic_load_n(&shared.read, __ATOMIC_ACQUIRE);
  const uint64_t to_end = kRingBytes - at % kRingBytes;
  const uint64_t need = size > to_end ? size + to_end : size;
  if (behind > kRingBytes || need > kRingBytes - behind) return lost();
  if (size > to_end) {  // kind 0 up to the end; eight bytes are always there for it
    const uint32_t rest[2] = {uint32_t(to_end), 0};
    char* place = file::ring() + at % kRingBytes;
    if (!file::reserve(place, sizeof rest)) return lost();
    memcpy(place, rest, sizeof rest);
    at += to_end;
  }
  char* place = file::ring() + at % kRingBytes;
  if (!file::reserve(place, size)) return lost();
  memset(place + size - 8, 0, 8);
  memcpy(place, head.at, head.size);
  if (middle.size) memcpy(place + head.size, middle.at, middle.size);
  if (tail.size) memcpy(place + head.size + middle.size, tail.at, tail.size);
  RecordHeader header{};
  header.size = uint32_t(size);
  header.kind = kind;
  header.t_ns = t_ns;
  memcpy(place, &header, sizeof header);
  __atomic_store_n(&shared.write, at + size, __ATOMIC_RELEASE);
  return true;
}

void forget() { writing = {}; }

}  // namespace millpond::probe::ring
