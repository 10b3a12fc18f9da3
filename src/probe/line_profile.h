/* libmillpond_lines.so: what each line of a profiled Python function takes and gives back. Plain C;
 * python/millpond/_lines.py loads it by ctypes and calls all of it with the GIL held. It needs nothing of the probe and
 * no collector.
 *
 *   bytes   counted exactly, for the calling thread alone, in hooks of the malloc family (relocations.h) and around
 * pymalloc. A block counts with the bytes that its allocator gives it, so that what is taken and given back balances.
 * Nothing is sampled, no page is looked at lines   Python 3.12 and newer: functions for sys.monitoring, which calls
 * them for the profiled code alone; before that a trace function in C
 *
 * Costs, measured by bench/line_profile.py: some 0.1 us for each line that runs, 5 to 10 ns for each block taken or
 * given back, nothing in the lines of functions that are called (before 3.12: some 20 ns each). Memory: 512 KiB of
 * address space for each thread that is in a profiled function, and 72 bytes for each line of it, from the system and
 * not from malloc. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kLinesVersion = 1, kLinesMostCodes = 4096, kLinesMostDepth = 4096 };

/* Of one line, over all times it ran. Amounts are bytes beyond what was there when the outermost call began. */
struct LineOfCode {
  int64_t hits;
  int64_t before; /* when it began for the first time */
  int64_t after;  /* when it ended for the last time */
  int64_t change; /* sum of after - before over all times; what it calls is part of it */
  int64_t peak;   /* the highest that was reached while it ran */
  int64_t taken, given;
  int64_t blocks; /* taken */
};

/* Of the outermost call. */
struct LinesTotals {
  int64_t taken, given, blocks, peak, kept;
  int64_t resident_begin, resident_end, resident_peak; /* bytes; looked at when the call begins and ends, and at most
                                                          about every 4 ms in between; -1: not known */
  int64_t nanoseconds;
  int64_t too_deep;      /* calls deeper than kLinesMostDepth: counted in the lines above them */
  int64_t frees_unknown; /* 1: small objects are not counted, because Python's allocator is none that is known */
};

enum {
  kLinesStarted,
  kLinesNoPython, /* the interpreter's functions are not to be found in this process */
  kLinesNoMalloc  /* no malloc was found in any module */
};
/* The hooks come in, or out. python: a handle for dlsym; below: the probe's handle where its hooks are in the tables
 * now, else null. */
int millpond_lines_start(void* python, void* below, int version /* 311: 3.11 */);
void millpond_lines_stop(void);
/* Whether the small objects of Python are counted. */
int millpond_lines_small(void);

/* Lines first..first+count-1 of this code are counted. The caller keeps the code alive. 0: done. */
int millpond_lines_add(void* code, int first, int count);

/* Functions for Python: a new reference to a builtin. */
enum { kLinesEnter, kLinesLeave, kLinesOnLine, kLinesOnBegin, kLinesOnEnd, kLinesFunctions };
void* millpond_lines_function(int which);

/* enter() returns the number of calls, or 0 where this is the outermost one of its thread: then open begins it, 0:
 * done. with_trace: this thread gets the trace function of Python before 3.12; untrace takes it away. leave() returns
 * the number of calls that are left, -1 where there was none. */
int millpond_lines_open(int with_trace);
void millpond_lines_untrace(void);
/* What open began in this thread. A generator may end in another thread than the one it began in: leave_in does there
 * what leave() does. */
void* millpond_lines_here(void);
int millpond_lines_leave_in(void* here);
/* Of the outermost call, once leave() has returned 0; release() forgets it. take: 1 when the code ran. */
int millpond_lines_take(void* here, void* code, struct LineOfCode* out, int count);
void millpond_lines_totals(void* here, struct LinesTotals* out);
void millpond_lines_release(void* here);

#ifdef __cplusplus
}
#endif
