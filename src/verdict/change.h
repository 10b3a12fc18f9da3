// A fix carried out on the text of a file: pure, bytes in, bytes out. Whoever calls it decides which file that is; a
// run file never does.
#pragma once
#include <string>
#include <string_view>

#include "verdict/verdict.h"

namespace millpond::verdict {

/// "LENGTH:CRC32" of a file's bytes, as the agent writes it (edits.py).
std::string digest(std::string_view text);

/// The text with all edits made. Throws Error where the text is not what it was when the program ran, or the change has
/// no edits.
std::string carried_out(const Change& change, std::string_view text);

/// The same as a unified diff with three lines around each edit; `name` stands in its header.
std::string unified_diff(const Change& change, std::string_view text, const std::string& name);

}  // namespace millpond::verdict
