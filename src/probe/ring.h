// The ring of rare records in shared.h. Writers take turns under a lock; no hook writes here.
#pragma once
#include <stddef.h>

#include "probe/shared.h"

namespace millpond::probe::ring {

struct Part {
  const void* at;
  size_t size;
};

// Writes a record made of up to three parts, the first of which begins with its RecordHeader: size and time are filled
// in here. False: the ring is full, and the record is counted as lost.
bool write(RecordKind kind, uint64_t t_ns, Part head, Part middle = {}, Part tail = {});

void forget();  // in a child

}  // namespace millpond::probe::ring
