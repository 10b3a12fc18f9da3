// The answer in plain words.
#pragma once
#include <string>

#include "verdict/case.h"
#include "verdict/numbers.h"
#include "verdict/verdict.h"

namespace millpond::verdict {

std::string sentence(const Case& c, const Verdict& verdict);

/// What evidence is of: "gpu:0 (NVIDIA H200)" of a device, nothing of the host.
std::string device_name(const Evidence& evidence);

std::string each(const Finding& finding);       // "every epoch", "each time line 5 runs"
std::string seen_over(const Finding& finding);  // "8 epochs", "90 times"

/// "At this rate the limit of 8.00 GiB (--limit) is reached in epoch 740, in about 2.4 h (2.1 h to 2.6 h)."; empty
/// without a forecast. The sentence of a leak ends with it.
std::string forecast_words(const Finding& finding);
/// Of that: "epoch 740"; empty where rounds have no numbers.
std::string forecast_round(const Forecast& forecast);

}  // namespace millpond::verdict
