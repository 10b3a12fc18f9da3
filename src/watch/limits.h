// limits: where a process would be refused more memory by a limit of its own, set by itself or handed down by its shell
// (setrlimit), as /proc tells.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/process.h"

namespace millpond::watch {

struct OwnLimit {
  std::string name;  // "RLIMIT_AS": of address space; "RLIMIT_DATA": of private memory that can be written
  Bytes resident;    // so much would be resident when it is reached: what is now, and the room that is left
};

/// The nearer of the two; nothing where neither is set.
std::optional<OwnLimit> own_limit(Pid pid);
/// The same of the texts of /proc/PID/limits and /proc/PID/status.
std::optional<OwnLimit> parse_own_limit(std::string_view limits, std::string_view status);

}  // namespace millpond::watch
