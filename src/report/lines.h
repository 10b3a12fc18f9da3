// The user's source, line by line, with what each line allocated, gave back and still holds: what memory_profiler's
// @profile shows, without a decorator. A line is charged with what was allocated under it down to the next line of the
// user's own; all numbers are estimates by sampling.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "report/doctor.h"

namespace millpond::report {

/// The text of a line, empty where the run file does not hold it (report/source.h): this folder opens no file.
using SourceLine = std::function<std::string(const std::string& file, int line)>;

/// Lines with at least a hundredth of all that was allocated or is held, at most `limit`, by file and line.
std::string lines_text(const verdict::Evidence& evidence, const SourceLine& source, const TextStyle& style, int limit);
nlohmann::ordered_json lines_json(const verdict::Evidence& evidence, const SourceLine& source, int limit);

}  // namespace millpond::report
