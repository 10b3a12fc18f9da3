// A made-up run: ten epochs of a program that keeps a list, with a model that stays and temporaries that go.
#pragma once
#include "verdict/evidence.h"
#include "verdict/verdict.h"

namespace millpond::report {

constexpr int64_t kMiB = 1 << 20;

inline verdict::Frame user(const char* function, int line, const char* file = "project/a/train.py") {
  return {file, function, line, false, true};
}
inline verdict::Frame library(const char* function, int line) {
  return {"/usr/lib/python3/dist-packages/keras/src/trainer.py", function, line, false, false};
}

/// `kept`: MiB that the list gains each epoch.
inline verdict::Evidence made_up(int64_t kept = 8) {
  verdict::Evidence e;
  e.command = "python train.py";
  e.seconds = 11;
  e.exit_code = 0;
  e.sampling_interval = 512 << 10;
  e.sites.push_back({{user("<listcomp>", 12), user("Keeper.on_epoch_end", 12), library("on_epoch_end", 90),
                      library("fit", 70), user("<module>", 40)},
                     Bytes{kept * 10 * kMiB},
                     80,
                     Bytes{}});
  e.sites.push_back({{library("add_weight", 33), library("build", 20), user("make_model", 5), user("<module>", 38)},
                     Bytes{100 * kMiB},
                     20,
                     Bytes{}});
  e.sites.push_back(
      {{{"/usr/lib/libtensorflow.so", "Allocate", 0, true, false}}, Bytes{900 * kMiB}, 9000, Bytes{870 * kMiB}});
  for (int i = 1; i <= 10; ++i) {
    verdict::Mark m;
    m.t = i, m.kind = "epoch", m.name = "fit", m.index = i, m.period = true;
    m.rss = Bytes{(200 + kept * i) * kMiB};
    m.heap_in_use = Bytes{(150 + kept * i) * kMiB};
    m.heap_mapped = m.python_arenas = Bytes{0};
    m.heap_free = Bytes{10 * kMiB};
    m.units[size_t(verdict::Unit::kEpoch)] = uint64_t(i);
    if (kept > 0) m.sites.push_back({0, Bytes{kept * i * kMiB}, 8.0 * i, {}});
    m.sites.push_back({1, Bytes{100 * kMiB}, 20, {}});
    m.sites.push_back({2, Bytes{30 * kMiB}, 300, {}});
    e.marks.push_back(m);
    e.os.push_back({double(i), m.rss, {}, {}, {}, 1});
  }
  e.baseline_rss = Bytes{200 * kMiB};
  e.peak_rss = *e.marks.back().rss;
  return e;
}

inline verdict::Verdict verdict_of(verdict::Kind kind, double per_epoch = 0) {
  verdict::Verdict v;
  v.kind = kind;
  v.sentence = "Told by a test.";
  if (per_epoch > 0) {
    verdict::Finding f;
    f.kind = kind, f.cause = "C14", f.title = "a list grows", f.unit = verdict::Unit::kEpoch,
    f.bytes_per_unit = per_epoch, f.units_seen = 8;
    f.bytes_per_unit_range = {0.9 * per_epoch, 1.1 * per_epoch}, f.total = Bytes{int64_t(8 * per_epoch)},
    f.blame = verdict::Place{"project/a/train.py", "Keeper.on_epoch_end", "self.kept.append(x)", 12};
    v.findings.push_back(f);
  }
  return v;
}

}  // namespace millpond::report
