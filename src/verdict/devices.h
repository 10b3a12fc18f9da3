// Devices: the pool of a framework on a GPU, judged as the memory of the host is. What the pool has in use at each mark
// stands in the place of resident memory, and the holders that walks found for its blocks in the place of the host's;
// so growth, holders, causes, rates and forecasts are found by the same rules.
#pragma once
#include "verdict/notes.h"
#include "verdict/verdict.h"

namespace millpond::verdict {

/// What is known of one pool, as evidence of a memory space of its own.
Evidence of_device(const Evidence& host, const Pool& pool);

/// Containers of such evidence: those that walks found to hold blocks of the device, with what they gained there.
void weigh_by_walk(Notes& notes);

/// Judges each pool, and joins that with what was found of the host: the worse of both is the verdict.
void add_devices(const Evidence& host, Verdict& verdict);

}  // namespace millpond::verdict
