// The growth account as the page has it, and how names of strangers enter the document.
#pragma once
#include <string>

#include "report/page.h"

namespace millpond::report {

/// A name out of a run file. Very long ones are cut in the middle: both ends tell most.
std::string cut(const std::string& text, size_t most = 4000);

/// `growth` of a RUN (page.h): whole bytes, and the parts of each account add up to its growth.
PageJson page_growth(const RunContents& run);

}  // namespace millpond::report
