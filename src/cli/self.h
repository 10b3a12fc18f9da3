// This process, seen by itself: when it began, what is resident, and how often it asked for memory. Nothing here
// allocates, so that looking at the end of an epoch changes neither number.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "millpond/bytes.h"

namespace millpond::cli {

/// To be called first in main: finds out when the process began, and what malloc had given out by then. The kernel
/// tells the time in hundredths of a second; the processor time used until now narrows it.
void note_start();
/// Where standard input, output or error is closed, opens nothing in its place, so that no file of ours gets its number and
/// is written into by whoever prints. It is closed again in programs that we start, as it was for us.
void fill_standard_streams();
/// What malloc had given out before main: by the loader, the C++ library's reserve for exceptions, static objects.
Bytes heap_at_start();
/// Since the process began.
double seconds_since_start();

/// Resident bytes counted page by page (smaps_rollup); where that may not be read, the kernel's running counter.
Bytes resident_now();
/// The most that ever was resident, by the kernel's counter (VmHWM).
Bytes resident_peak();

/// Makes resident beforehand what would otherwise become so at some later step and look like growth: the code of the C
/// and mathematics libraries (about 2 MiB; a branch may be first taken in step 6,000), and 64 KiB of each thread's
/// stack.
void settle(int threads);

struct Counted {
  uint64_t allocations = 0;  // calls that take memory
  uint64_t taken = 0, given = 0;
};
/// Absent unless the counting library is loaded.
std::optional<Counted> counted_now();

/// Of what comes with the program: libmillpond_probe.so, libmillpond_count.so, inject (the agent). All lie in one
/// folder, where the probe is: the program's own in a Python package, ../lib/millpond as seen from the program in a
/// build folder and in an installation.
std::string installed(const std::string& name);

/// Starts this program again, with the same arguments and the counting library in front. Returns at once when it is
/// already loaded; throws Error(kFile) when it is not to be found.
void restart_counting(char** argv);

}  // namespace millpond::cli
