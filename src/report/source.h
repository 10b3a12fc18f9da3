// stored_source: the lines of the user's source that a run file holds. No file is opened: a run file may be a
// stranger's, and what it names is not to be shown.
#pragma once
#include <vector>

#include "report/lines.h"
#include "runfile/rows.h"

namespace millpond::report {

enum class Indent { kStripped, kKept };

/// Lines beyond what is stored are empty.
SourceLine stored_source(const std::vector<runfile::SourceRow>& sources, Indent indent = Indent::kStripped);

}  // namespace millpond::report
