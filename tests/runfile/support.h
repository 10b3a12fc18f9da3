// A folder of one's own, a small recorded run, and a way to look at refusals.
#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/format.h"
#include "millpond/error.h"
#include "runfile/reader.h"
#include "runfile/writer.h"

namespace millpond::runfile::testing {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/millpond_runfile_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const char* name) const { return path + "/" + name; }
};

template <class F>
std::string refusal(F f, Code code) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "not refused";
}

inline bool holds(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return true;
  MESSAGE("\"" << text << "\" does not hold \"" << part << "\"");
  return false;
}

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// Everything a reader can be asked.
inline void read_all(const Reader& r) {
  r.meta(), r.accounts(), r.phases(), r.series(), r.os_series();
  for (const Program& p : r.programs()) r.plan_buffers(p.id), r.plan_calls(p.id);
  r.processes(), r.frames(), r.sites(), r.marks(), r.site_states(), r.tree_series(), r.notes(), r.gpus(),
      r.gpu_series();
  r.process_series(), r.sources(), r.threads(), r.site_details(), r.sizes(), r.pool_series();
}

/// What a doctor adds: a process, two sites that share a frame, three marks of which one is forgotten.
inline void watched(Writer& w) {
  const RowId process = w.add(Process{{}, 4711, 1, "python3", 0.25});
  const FrameRow step{"train.py", "main", 41, false, true}, take{"libnumpy.so", "", 0, true, false},
      keep{"train.py", "keep", 12, false, true};
  const RowId first = w.add(process, std::vector{take, step}), second = w.add(process, std::vector{keep, step});
  RowId marks[3];
  for (int i = 0; i < 3; ++i)
    marks[i] =
        w.add(MarkRow{.id = {},
                      .process = process,
                      .t = double(i),
                      .kind = "epoch",
                      .name = "fit",
                      .index = i,
                      .period = true,
                      .rss = 20_MiB,
                      .heap_in_use = 1_MiB,
                      .heap_free = std::nullopt,
                      .heap_mapped = 2_MiB,
                      .python_arenas = 3_MiB,
                      .private_dirty = 19_MiB,
                      .pss = std::nullopt,
                      .processes = 2,
                      .units = {100 * i, i}},
              std::vector<SiteStateRow>{{{}, first, 1_MiB, 2.5, {}}, {{}, second, 3_MiB, 7, {1_MiB, 0_B, 2_MiB}}});
  w.remove_mark(marks[1]);
  w.set_totals(second, 9_MiB, 21, 6_MiB);
  w.add(TreeRow{1.5, 3, 40_MiB, 30_MiB, std::nullopt});
  w.put(GpuRow{0, "NVIDIA H200", 100_MiB, 20_MiB, 10_MiB});
  w.put(GpuRow{1, "NVIDIA H200", 100_MiB, 5_MiB, std::nullopt});
  w.put(GpuRow{0, "NVIDIA H200", 100_MiB, 30_MiB, 12_MiB});
  w.add(GpuPointRow{1.5, 0, 30_MiB, 12_MiB});
  w.add(GpuPointRow{1.5, 1, 5_MiB, std::nullopt});
  w.add(NoteRow{1.75, process, R"({"note": "start"})"});
  Process worker{{}, 4712, 4711, "python3", 0.5, {}, "python3 train.py --fold 2", Seen::kOutside};
  worker.id = w.add(worker);
  worker.end = 3.5;
  w.put(worker);
  w.add(ProcessPointRow{1.5, process, kHost, 20_MiB, 12_MiB, 9_MiB});
  w.add(ProcessPointRow{1.5, process, kShared, 4_MiB, {}, {}});
  w.add(ProcessPointRow{1.5, worker.id, kHost, 15_MiB, {}, {}});
  w.add(ProcessPointRow{1.5, worker.id, gpu_space(0), 8_MiB, {}, {}});
  w.add(ProcessPointRow{1.5, {}, kHost, 2_MiB, {}, {}});
  w.add(SourceRow{"train.py", "keep", 11, "def keep(x):\n    kept.append(x)\n"});
}

inline void epoch(Writer& w, RowId fit, int64_t index, Bytes bytes) {
  const RowId phase = w.begin_phase("epoch", "", index, fit, double(index));
  const AccountBytes accounts[] = {{"weights/dense", 4_KiB, 4_KiB}, {"pipeline/prefetch", bytes, bytes + 1_KiB}};
  w.add(double(index) + 0.5, phase, accounts);
  w.add({.t = double(index) + 0.5,
         .phase = phase,
         .rss = 20_MiB + bytes,
         .peak_rss = 30_MiB,
         .pss = std::nullopt,
         .private_dirty = 10_MiB,
         .swap = 0_B,
         .heap_in_use = 1_MiB,
         .heap_free = 2_MiB,
         .explained = 19_MiB});
  w.end_phase(phase, double(index) + 0.9);
  w.commit();
}

/// Three epochs, the third with more in its pipeline, and one program of two calls.
inline void small_run(const std::string& path) {
  Writer w(path, {{"program", "millpond train"}, {"started", "2025-01-01T00:00:00Z"}});
  const PlanBuffer buffers[] = {{"dense/y", "activations/dense", "dense", 0_B, 256_B, 0, 3},
                                {"loss", "metrics/loss", "", 256_B, 8_B, 3, 3}};
  const PlanCall calls[] = {{"matmul", "dense", "dense/matmul", 128_B}, {"mean", "", "loss", 0_B}};
  w.add({.id = {},
         .name = "train",
         .calls = 2,
         .planned = 320_B,
         .lower_bound = 320_B,
         .plan_seconds = 0.001,
         .method = "size, best fit"},
        buffers, calls);
  const RowId fit = w.begin_phase("fit", "", 0, {}, 0);
  for (int i = 1; i <= 3; ++i) epoch(w, fit, i, i < 3 ? 1_MiB : 2_MiB);
  w.end_phase(fit, 4);
  watched(w);
  w.finish(4.25, "ended");
}

}  // namespace millpond::runfile::testing
