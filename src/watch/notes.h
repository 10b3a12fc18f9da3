// notes: what is stored of the agent's notes (python/millpond/inject/NOTES.md). The agent runs inside a stranger's
// program, which may say anything in its place: a note is parsed, and what a run file must not hold is taken out before
// it is written.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runfile/rows.h"
#include "watch/shared_view.h"
#include "watch/symbols.h"

namespace millpond::watch {

struct NoteRules {
  bool source = true;     // lines of the source (the key `text`) are stored
  bool arguments = true;  // the program's arguments are
};

struct ToldLine {
  std::string file, function;
  int line = 0;
};

struct ToldProcess {
  runfile::How how = runfile::How::kUnknown;
  std::string label;
};

struct ReadNote {
  std::string text;                          // to store; empty: nothing
  std::vector<ToldLine> lines;               // of the source, that it tells of
  std::optional<runfile::SourceRow> source;  // a note of the kind `source`: it is stored as such and not as a note
  std::optional<ToldProcess> process;        // what the process says of itself
  std::vector<runfile::PoolRow> pools;       // of a note of the kind `gpu`, without time and process: stored as such
};

/// Nothing when it is no note: no JSON object, or nested beyond reason.
std::optional<ReadNote> read_note(const std::string& text, const NoteRules& rules);

/// The note `scan`: who points to native blocks, with names. `sites`: rows of the run file, by stack.
std::string scan_note(const RawScan& scan, const std::map<uint32_t, runfile::RowId>& sites,
                      const std::function<NativeName(uint64_t)>& variable);

}  // namespace millpond::watch
