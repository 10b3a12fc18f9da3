// terminal: a run on one screen: the answer (doctor_text); of a run of the engine also its accounts and plan; with
// `verbose` accounts, lines of code and plan of any run, with what each did over time, ▁▂▃▅▇. Pure.
#pragma once
#include <string>

#include "report/contents.h"
#include "report/doctor.h"

namespace millpond::report {

std::string terminal_text(const RunContents& run, const TextStyle& style);

}  // namespace millpond::report
