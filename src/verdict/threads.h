// Public threads in which others met a cause: which of them are about a program like this one, and where they are.
#pragma once
#include <string>
#include <vector>

#include "verdict/notes.h"

namespace millpond::verdict {

/// At most two: first those of a framework that the program uses, then those of none. A thread about a framework that
/// the program does not use is left out.
std::vector<std::string> fitting_threads(const std::vector<std::string>& threads, const Notes& notes);

/// "tensorflow#24726" -> "https://github.com/tensorflow/tensorflow/issues/24726"; empty when its project is not known.
std::string thread_address(const std::string& thread);

}  // namespace millpond::verdict
