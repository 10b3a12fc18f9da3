// A program that nothing could look into: only its resident memory was seen. That alone proves neither a leak nor its
// absence.
#pragma once
#include "verdict/verdict.h"

namespace millpond::verdict {

/// Where `evidence.blind` says so and nothing else was found: memory that rises makes the verdict *unsure*, and the
/// sentence says what was not seen.
void answer_from_outside(const Evidence& evidence, Verdict& verdict);

}  // namespace millpond::verdict
