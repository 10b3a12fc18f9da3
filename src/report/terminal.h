// terminal: a run on one screen: the answer (doctor_text), then its accounts, lines of code and plan with what each did over time, ▁▂▃▅▇. Pure.
#pragma once
#include <string>

#include "report/contents.h"
#include "report/doctor.h"

namespace millpond::report {

std::string terminal_text(const RunContents& run, const TextStyle& style);

}  // namespace millpond::report
