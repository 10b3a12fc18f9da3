// page: a run as one JSON document, all that the report page shows; and the page itself with the document in it. Pure: values in, bytes out.
//
// The shape (web/src/types.ts says the same to the compiler of the page; both say `format` 2):
//
//   { format, version, live, runs: [RUN, ...], compare: null | { sentence, before, after, places } }
//
//   RUN {
//     name, source "watch"|"engine", title, verdict, sentence, would_settle
//     early      true: it goes on and nothing is said yet
//     facts      { key: text or number }: command, model, started, seconds, ended, exit_code, signal, peak, baseline, end, last_round { name, rss }, planned, host.*
//     strings    [ text ]: every name is told once; places below are indices into it
//     resident   { t, rss, swap }                               columns: the operating system, by time
//     tree       { t, processes, rss, private_dirty, pss }      columns: with children; null: none
//     pools      [ { process, name, pid, space, pool, peak, retries, t, in_use, reserved, in_use_peak, periods } ]  columns: what a framework's pool had of a GPU
//     gpu        [ { device, name, total, used_peak, by_program_peak, t, used, by_program } ]  columns; null: the driver did not tell
//     accounts   { t, resident, list: [ { name, group, kind "use"|"retained"|"reserved"|"rest", bytes } ] }
//     marks      { t, kind, name, index, period, rss }          columns; kind and name are strings
//     phases     { kind, name, index, start, end }              columns
//     periods    { unit, kind, warm, seconds, t, x, index, rss, live }  the rounds that the verdict compared; null: none recur
//     probes     [ { t, period, rss, after_gc, after_trim, collected } ]
//     limits     [ { name, bytes } ]
//     findings   [ { kind, cause, title, unit, each, seen_over, rate, rate_range, units_seen, total, confidence, blame, holder, chain, evidence, fix, threads,
//                    forecast, sets_verdict, process, processes, space, cohorts: { bytes [8], of "line"|"all" } | null } ]
//                  process: as in `processes`; null: the main one. Its rounds are those of the RUN, of the story of its process, or of the pool in its space
//     growth     [ { tree, pid, process, main, space, level, growth, range, rounds, unit, from, to, parts: [ { kind, name, chain, born, bytes, range } ] } ]
//                  where growth went, by process and space (verdict/account.h); bytes of the parts add up to growth; a range holds 95 %
//     advice     [ { what, text, place } ]
//     sites      { frames: { file, function, line, flags }, stacks: [ [frame, ...] innermost first ], snapshots: { t, kind, index, rss, sum, other },
//                  bytes: [ column over snapshots ], blocks: [ at the last snapshot ], allocated, freed: [ in the whole run ],
//                  temporary: [ of freed, what lived for a moment ], thread: [ into threads, -1: several ], doubt: [ 95 % of bytes b lie within sqrt(b * doubt) ] }; null: no snapshot was taken
//     threads    [ name ]
//     processes  [ { process, pid, parent, name, command, start, end, seen, main, peak, t, resident, private, sites, sizes, story } ]  the main one first; columns
//                  story { peak, accounts, marks, periods, probes, lines } of one that is not the main one, as those of the RUN; null: it was not looked into
//     sources    [ { file, function, first, lines: [ text ] } ]  of the user's own, as the run file holds them
//     lines      { file, line, allocated, freed, kept, temporary, kept_error, allocated_error, t }  columns: the user's lines; kept: alive at t
//     sizes      { from, blocks, bytes, freed, temporary, error }  blocks by size, all processes together: from[i] to from[i + 1]; null: not recorded
//     programs   [ { name, calls, planned, lower_bound, plan_seconds, method, buffers: { name, account, layer, offset, size, first, last },
//                    ops: { op, layer, workspace }, left_out } ]
//     measured   { how sure all this is: samples, interval, dropped, explained, overhead, remarks }
//     counters   [ { name, t, value } ]
//   }
//
// A column is an array of integers, each the difference to the one before (null: not measured, and the next counts from the last that was). Times
// are whole milliseconds. Bytes are exact: the same integers as in the run file. Bounds: 6,000 points of resident memory (of more, the least and the
// most of each stretch stay), 1,500 moments, 4,000 accounts and 400,000 of both together, 4,000 marks and phases, 160 snapshots of at most 1,500 stacks (the rest in `other`),
// 64 processes, of 8 of them 8 snapshots of 200 stacks, 2,000 lines, 400 sources,
// 12 programs of 8,000 buffers. A page of the largest run is below 2 MB.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "report/contents.h"
#include "report/lines.h"
#include "report/page_template.h"

namespace millpond::report {

using PageJson = nlohmann::ordered_json;

/// One run. `source` gives the lines around a blamed one, with their indent; it may be empty.
PageJson page_run(const RunContents& run, const SourceLine& source);

struct PageOptions {
  bool live = false;  // the page asks its server for news
};
PageJson page_document(const RunContents& run, const SourceLine& source, const PageOptions& options = {});
/// Two runs, before and after.
PageJson page_document(const RunContents& before, const SourceLine& source_before, const RunContents& after,
                       const SourceLine& source_after);

/// The document as the page carries it: JSON, compressed (zlib). Text that is no UTF-8 is replaced.
std::string packed(const PageJson& document);

/// The whole file: the built page (web/) with the document in it as base64, and the answer as plain text for readers
/// without scripts.
std::string page_html(const PageJson& document, const std::string& plain_text);

}  // namespace millpond::report
