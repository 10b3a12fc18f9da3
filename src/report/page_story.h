// The story of one process as the page tells it: its rounds, its accounts, its lines, its blocks by size. Of the main
// process these are parts of the RUN (page.h), of every other one that was looked into parts of its entry.
#pragma once
#include "report/page_column.h"

namespace millpond::report {

struct StoryLimits {
  size_t marks = 4000, moments = 1500, cells = 400'000;
};

/// The evidence of a process by its row of the run file; the main one where none is named. Null: it was not looked
/// into.
const verdict::Evidence* evidence_of(const RunContents& run, int64_t process);

/// Of what lived for a moment only, at a site.
int64_t temporary_of(const RunContents& run, const verdict::Site& site);

PageJson page_accounts(const RunContents& run, const verdict::Evidence& evidence, const StoryLimits& limits = {});
PageJson page_marks(const verdict::Evidence& evidence, PageStrings& strings, const StoryLimits& limits = {});
PageJson page_periods(const verdict::Evidence& evidence);
PageJson page_probes(const verdict::Evidence& evidence);
PageJson page_lines(const RunContents& run, const verdict::Evidence& evidence, PageStrings& strings);
/// Of one process; without one, of all together.
PageJson page_sizes(const RunContents& run, std::optional<int64_t> process = {});

/// `story` of a process that is not the main one; null where it was not looked into.
PageJson page_story(const RunContents& run, int64_t process, PageStrings& strings);

/// What frameworks' pools had of GPUs, of every process that was looked into, with the rounds that the verdict on them
/// compared.
PageJson page_pools(const RunContents& run);

}  // namespace millpond::report
