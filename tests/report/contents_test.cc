#include <doctest/doctest.h>

#include <cstdlib>

#include "io/scratch.h"
#include "millpond/error.h"
#include "report/contents.h"
#include "report/doctor.h"
#include "runfile/writer.h"

using namespace millpond;
using namespace millpond::report;
using verdict::Kind;

namespace {

/// A run of the engine whose resident memory after each epoch is given.
RunContents engine_run(const std::vector<int64_t>& mib, const char* status = "ended") {
  const Scratch f;
  const std::string file = f.path("run.pond");
  {
    runfile::Writer w(file, {{"model", "net"}, {"planned_bytes", std::to_string(100 << 20)}});
    const runfile::RowId run = w.begin_phase("run", "net", 0, {}, 0), fit = w.begin_phase("fit", "", 0, run, 0);
    const std::vector<runfile::AccountBytes> accounts{{"weights/a", Bytes{1000}, Bytes{1000}}};
    for (size_t i = 0; i < mib.size(); ++i) {
      const runfile::RowId epoch = w.begin_phase("epoch", "", int64_t(i), fit, double(i));
      w.add(double(i) + 0.9, epoch, accounts);
      w.add(runfile::OsRow{.t = double(i) + 0.9,
                           .phase = epoch,
                           .rss = Bytes{mib[i] << 20},
                           .peak_rss = Bytes{(mib[i] + 1) << 20},
                           .pss = {},
                           .private_dirty = {},
                           .swap = {},
                           .heap_in_use = {},
                           .heap_free = {},
                           .explained = {}});
      w.end_phase(epoch, double(i) + 1);
    }
    if (status) w.finish(double(mib.size()), status);
  }
  return read_contents(runfile::Reader(file), "run.pond");
}

}  // namespace

TEST_CASE("contents: what does not grow until its file ends is unsure where the file was cut off") {
  RunContents run;
  run.verdict.kind = Kind::kFlat, run.verdict.sentence = "No leak.";
  RunContents ended = run, leak = run;
  ended.meta["status"] = "ended", leak.verdict.kind = Kind::kLeak;
  for (RunContents* one : {&run, &ended, &leak}) answer_cut_off(*one);
  CHECK(run.verdict.kind == Kind::kUnsure);
  CHECK(run.verdict.sentence.find("of what came after nothing is known") != std::string::npos);
  CHECK(ended.verdict.kind == Kind::kFlat);
  CHECK(leak.verdict.kind == Kind::kLeak);
}

TEST_CASE("contents: epochs of the engine are rounds, and two that are alike are enough to call it flat") {
  const RunContents run = engine_run({200, 200});
  CHECK(run.engine);
  REQUIRE(run.evidence.marks.size() == 2);
  CHECK(run.evidence.marks[1].index == 2);
  CHECK(run.evidence.peak_rss == Bytes{201 << 20});
  CHECK(run.verdict.kind == Kind::kFlat);
  CHECK(run.verdict.sentence ==
        "Memory is flat: 200 MiB after the first epoch, 200 MiB after the last (2 seen), with 100 MiB planned before "
        "the first batch.");
  CHECK(run.title() == "training net");
}
TEST_CASE("contents: an engine that grows is not called flat") {
  CHECK(engine_run({200, 220, 240}).verdict.kind != Kind::kFlat);
}
TEST_CASE("contents: one epoch cannot be compared, and that is said") {
  CHECK(engine_run({200}).verdict.sentence ==
        "Training runs in memory that was planned: 100 MiB planned before the first batch. One epoch has ended so far, "
        "so nothing can be compared yet.");
}
TEST_CASE("contents: of a run that has hardly begun nothing is said, of one that is over all") {
  RunContents begun = engine_run({200, 200}, nullptr);
  answer_early(begun);
  CHECK(begun.verdict.kind == Kind::kUnsure);
  CHECK(begun.verdict.sentence == "Watching… 2 s and 2 rounds of its loop so far: too early to tell.");
  RunContents over = engine_run({200, 200});
  answer_early(over);
  CHECK(over.verdict.kind == Kind::kFlat);
}

namespace {

/// A file of one process, changed by a stranger.
template <class Change>
std::string after(Change change) {
  const Scratch f;
  const std::string file = f.path("run.pond");
  runfile::Writer w(file, {});
  const runfile::RowId process = w.add(runfile::Process{{}, 7, 1, "python3", 0});
  change(w, process);
  w.finish(1, "ended");
  try {
    const RunContents run = read_contents(runfile::Reader(file), "run.pond");
    return doctor_text(run.evidence, run.verdict, run.meta, {});
  } catch (const Error& e) {
    return e.text();
  }
}

}  // namespace

TEST_CASE("contents: stacks that few bytes of a file stand for, and more places than a process has, are refused") {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  CHECK(has(after([](runfile::Writer& w, runfile::RowId process) {
              const runfile::FrameRow frame{std::string(4000, 'x'), std::string(4000, 'y'), 1, false, true};
              for (int i = 0; i < 300; ++i) w.add(process, std::vector<runfile::FrameRow>(250, frame));
            }),
            "call stacks that together take more than 512 MiB"));
  CHECK(has(after([](runfile::Writer& w, runfile::RowId process) {
              for (int i = 0; i < 16385; ++i)
                w.add(process, std::vector<runfile::FrameRow>{{"train.py", "f", 1, false, true}});
            }),
            "more places that allocate than one process can have"));
}

TEST_CASE("contents: numbers of the meta table and of notes that no run can have are left out") {
  const std::string text = after([](runfile::Writer& w, runfile::RowId process) {
    for (const auto& [key, value] : runfile::Meta{{"peak_rss", "-5"},
                                                  {"file_rss", "1e300"},
                                                  {"sampling.interval", "nan"},
                                                  {"sampling.samples", "inf"},
                                                  {"limit.bytes", "9999999999999999999"}})
      w.set_meta(key, value);
    w.add(runfile::OsRow{.t = 0.5,
                         .phase = {},
                         .rss = Bytes{1 << 20},
                         .peak_rss = {},
                         .pss = {},
                         .private_dirty = {},
                         .swap = {},
                         .heap_in_use = {},
                         .heap_free = {},
                         .explained = {}});
    w.add(runfile::NoteRow{
        0.5, process,
        R"({"note": "probe", "rss": 1e300, "after_gc": -7, "after_trim": -1e300, "period": 1e300, "collected": -1e300})"});
  });
  CHECK(text.find("nan") == text.npos);
  CHECK(text.find("inf") == text.npos);
  CHECK(text.find("-") == text.npos);
  CHECK(text.find("peak 1.00 MiB") != text.npos);
}
