// read_evidence: what a run file says, as evidence. The process judged is the one with most periods; without any, the one that was started.
#pragma once
#include "runfile/reader.h"
#include "verdict/evidence.h"

namespace millpond::verdict {

Evidence read_evidence(const runfile::Reader& file);

}  // namespace millpond::verdict
