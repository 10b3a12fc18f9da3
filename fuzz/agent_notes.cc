// Any lines as what the agent said during a run that leaks: made fit to store, judged and told, whatever they hold.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "fuzz/run_tables.h"
#include "fuzz/whole_way.h"
#include "watch/notes.h"

using namespace millpond;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMiB = 1 << 20;
  enum { kMeta = 0, kProcesses = 8, kFrames, kSites, kMarks, kStates, kNotes = 14 };
  using fuzz::real, fuzz::text, fuzz::whole, fuzz::Cell;
  fuzz::RunTables tables(true);
  const auto add = [&](size_t table, std::vector<Cell> cells) { tables.add(table, cells); };
  add(kMeta, {text("schema_minor"), text(std::to_string(fuzz::kMinor))});
  add(kMeta, {text("limit.bytes"), text("8000000000")});
  add(kProcesses, {whole(1), whole(7), whole(1), text("python3"), {}, real(0), {}, text("inside")});
  add(kFrames, {whole(1), text("train.py"), text("keep"), whole(2), whole(0), whole(1)});
  add(kSites, {whole(1), whole(1), text("1"), whole(400 * kMiB), real(900), whole(0)});
  for (int64_t i = 1; i <= 12; ++i) {
    const Cell rss = whole((300 + 20 * i) * kMiB);
    add(kMarks, {whole(i),
                 whole(1),
                 real(double(i)),
                 text("epoch"),
                 text("fit"),
                 whole(i),
                 whole(1),
                 rss,
                 rss,
                 whole(kMiB),
                 whole(0),
                 whole(0),
                 {},
                 {},
                 whole(1),
                 text(format("{0} {0} {0} {0} {0} {0} {0} {0}", i))});
    add(kStates, {whole(i), whole(1), whole(20 * i * kMiB), real(double(i)), text("999 999 999 999 999 999 999 999")});
  }
  std::string_view said(reinterpret_cast<const char*>(data), size);
  for (double t = 0.5; !said.empty() && t < 500; t += 0.5) {
    const size_t end = std::min(said.find('\n'), said.size());
    const std::string line(said.substr(0, end));
    // What the collector would store of it is a note again.
    if (const std::optional<watch::ReadNote> note = watch::read_note(line, {.source = t < 250, .arguments = false});
        note && !note->text.empty())
      if (!watch::read_note(note->text, {})) std::abort();
    add(kNotes, {real(t), whole(1), text(line)});
    said.remove_prefix(std::min(said.size(), end + 1));
  }
  fuzz::take_whole_way(tables.save());
  return 0;
}
