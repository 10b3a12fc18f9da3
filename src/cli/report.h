// What the program tells: JSON for --json, text for people, errors as both.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "millpond/bytes.h"
#include "millpond/error.h"
#include "millpond/memory_plan.h"

namespace millpond::cli {

using Json = nlohmann::ordered_json;

/// Where --json wants its object: nowhere, a file, or standard output ("-"), which then carries nothing else.
struct JsonTarget {
  std::string where;
  bool wanted() const { return !where.empty(); }
  bool on_stdout() const { return where == "-"; }
  /// One object and a line's end; a file appears whole or not at all. Throws Error(kFile).
  void write(const Json& object) const;
};

/// To a file, which appears whole or not at all, or to standard output ("-"). Throws Error(kFile).
void write_to(const std::string& where, std::string_view bytes);

/// The value of --json in a command line that may not be well formed.
JsonTarget json_target(int argc, char** argv);

/// "millpond: ..." on stderr, the object {"error": ...} where --json wants it. Returns the exit code: 2 for a mistake
/// in the command line, otherwise 1.
int report(const Error& error, const JsonTarget& target);

Json to_json(const MemoryPlan::Layer& layer);

}  // namespace millpond::cli
