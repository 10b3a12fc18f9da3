// Files in shared memory (tmpfs) that grow: they take memory of the machine, and no process has it.
#pragma once
#include "verdict/verdict.h"

namespace millpond::verdict {

/// Into the verdict of the main process: a finding in the space "shared", which sets the verdict unless a leak does
/// already.
void add_files(const Evidence& evidence, Verdict& verdict);

}  // namespace millpond::verdict
