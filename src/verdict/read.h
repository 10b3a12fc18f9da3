// read_evidence: what a run file says of one process, as evidence. Unless another is asked for, that is the one with
// most periods; without any, the one that was started.
#pragma once
#include "runfile/reader.h"
#include "verdict/evidence.h"

namespace millpond::verdict {

Evidence read_evidence(const runfile::Reader& file, std::optional<runfile::RowId> process = {});

}  // namespace millpond::verdict
