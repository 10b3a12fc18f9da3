// Elsewhere: the same run for other tools. Pure: bytes out.
//
//   csv          one line for each account and moment: seconds, mark, index, account, kind, bytes
//   tensorboard  an event file: scalars by account, the verdict as text, the plan as a picture
//   perfetto     a trace for ui.perfetto.dev: a counter for each account, phases as slices
#pragma once
#include <string>

#include "events/png.h"
#include "report/contents.h"

namespace millpond::report {

std::string csv(const RunContents& run);

std::string tensorboard_events(const RunContents& run);
/// Seconds since 1970 at which the run began; 0: the file does not say.
double started(const RunContents& run);

std::string perfetto_trace(const RunContents& run);

/// The arena over the calls of a program, address upwards, one colour for each account.
events::Picture plan_picture(const PlannedProgram& program, int width, int height);

}  // namespace millpond::report
