// sources: lines of the user's own source files, for reports that show them. Run files are not trusted: only plain files of a sane size are read.
#pragma once
#include "report/lines.h"

namespace millpond::cli {

enum class Indent { kStripped, kKept };

/// Reads each file once, when it is first asked for. Relative names are looked for where the program ran, then here.
report::SourceLine source_reader(const verdict::Evidence& evidence, Indent indent = Indent::kStripped);

}  // namespace millpond::cli
