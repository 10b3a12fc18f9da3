#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "runfile/support.h"
#include "train/support.h"

using namespace millpond;
using runfile::Reader;
using runfile::testing::Folder;

namespace {

constexpr int64_t kSamples = 50;

Sequential small() {
  Sequential model({Input({6}), Dense(5, relu, {.name = "hidden"}), Dense(1, {.name = "out"})}, "small");
  model.compile("adam", "mse");
  return model;
}

/// What an account held last; -1 when it was never written.
int64_t last_of(const Reader& r, const std::string& account) {
  int64_t bytes = -1;
  for (const runfile::SeriesRow& row : r.series())
    if (row.account == account && row.kind == runfile::SeriesKind::kCurrent) bytes = row.bytes.value;
  return bytes;
}

}  // namespace

TEST_CASE("run record: fit writes phases, accounts, series, programs and their plans") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  Sequential model = small();
  const Tensor x = uniform({kSamples, 6}, 1), y = uniform({kSamples, 1}, 2);
  model.fit(x, y,
            {.batch_size = 16,
             .epochs = 3,
             .verbose = 0,
             .callbacks = {RunRecord(path)},
             .validation_data = {uniform({7, 6}, 3), uniform({7, 1}, 4)},
             .threads = 1});
  const Reader r(path);

  runfile::Meta meta = r.meta();
  CHECK(meta["model"] == "small");
  CHECK(meta["optimizer"] == "adam");
  CHECK(meta["loss"] == "mse");
  CHECK(meta["batch"] == "16");
  CHECK(meta["threads"] == "1");
  CHECK(meta["status"] == "ended");

  std::vector<std::string> kinds;
  for (const runfile::Phase& p : r.phases()) {
    kinds.push_back(p.kind);
    CHECK(p.end.value_or(-1) >= p.start);
    CHECK((p.parent == runfile::RowId{}) == (p.kind == "run"));
  }
  CHECK(kinds == std::vector<std::string>{"run", "fit", "epoch", "epoch", "epoch"});

  CHECK(last_of(r, "weights/hidden/kernel") == 6 * 5 * 4);
  CHECK(last_of(r, "slots/adam.m/hidden/kernel") == 6 * 5 * 4);
  CHECK(last_of(r, "data/x0") == kSamples * 6 * 4);
  CHECK(last_of(r, "data/val_y0") == 7 * 4);
  CHECK(last_of(r, "runfile") > 0);
  REQUIRE(r.os_series().size() == 4);  // when it begins, and after each epoch
  for (const runfile::OsRow& row : r.os_series()) {
    CHECK(row.rss.value_or(Bytes{}).value > 0);
    CHECK(row.explained.value_or(Bytes{}) <= row.rss.value_or(Bytes{}));
  }

  std::vector<std::string> programs;
  Bytes arena;
  for (const runfile::Program& p : r.programs()) {
    programs.push_back(p.name);
    arena = std::max(arena, p.planned);
    Bytes top;
    for (const runfile::PlanBuffer& b : r.plan_buffers(p.id)) {
      top = std::max(top, b.offset + b.size);
      CHECK(b.last < p.calls);
    }
    CHECK(top.value > 0);
    CHECK(top <= p.planned);
    CHECK(int64_t(r.plan_calls(p.id).size()) == p.calls);
  }
  CHECK(programs == std::vector<std::string>{"train 16", "train 2", "evaluate 7"});
  CHECK(last_of(r, "arena") == arena.value);
  const auto of_kind = [&](const char* kind) {
    int64_t sum = 0;
    for (const std::string& a : r.accounts())
      if (a.starts_with(kind)) sum += std::max<int64_t>(0, last_of(r, a));
    return sum;
  };
  CHECK(std::stoll(meta["planned_bytes"]) >= of_kind("weights/") + of_kind("slots/") + arena.value);
}

TEST_CASE("run record: trainings in turn share a record, and each program is written once") {
  const Folder folder;
  RunRecord record(folder / "run.pond");
  Sequential model = small();
  const Tensor x = uniform({kSamples, 6}, 1), y = uniform({kSamples, 1}, 2);
  for (int i = 0; i < 2; ++i) model.fit(x, y, {.batch_size = 25, .verbose = 0, .callbacks = {record}});
  const Reader r(folder / "run.pond");
  CHECK(r.programs().size() == 1);
  CHECK(std::ranges::count(r.phases(), "fit", &runfile::Phase::kind) == 2);
}

TEST_CASE("run record: memory that is flat adds no series to the file") {  // but SQLite fills its cache first
  const Folder folder;
  Sequential model = small();
  const Tensor x = uniform({kSamples, 6}, 1), y = uniform({kSamples, 1}, 2);
  model.fit(x, y, {.batch_size = 25, .epochs = 60, .verbose = 0, .callbacks = {RunRecord(folder / "run.pond")}});
  const Reader r(folder / "run.pond");
  const std::vector<runfile::Phase> phases = r.phases();
  const double half = phases[phases.size() / 2].start;
  for (const runfile::SeriesRow& row : r.series())
    if (!row.account.starts_with("process/") && row.account != "runfile") CHECK_MESSAGE(row.t < half, row.account);
}

TEST_CASE("run record: a training that throws has failed, and its epochs are kept") {
  struct Trip : Callback {
    void on_epoch_end(int epoch, const Logs&) override {
      if (epoch == 1) throw Error(Code::kUsage, "enough");
    }
  };
  const Folder folder;
  Sequential model = small();
  const Tensor x = uniform({kSamples, 6}, 1), y = uniform({kSamples, 1}, 2);
  CHECK(message_of([&] {
          model.fit(x, y, {.epochs = 5, .verbose = 0, .callbacks = {RunRecord(folder / "run.pond"), Trip()}});
        }) == "enough");
  const Reader r(folder / "run.pond");
  CHECK(r.meta()["status"] == "failed");
  CHECK(std::ranges::count(r.phases(), "epoch", &runfile::Phase::kind) == 2);
}

TEST_CASE("run record: a file that is there is kept unless it may be replaced") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  runfile::testing::put(path, "mine");
  CHECK(message_of([&] { RunRecord r(path); }).find("exists already") != std::string::npos);
  CHECK(runfile::testing::content(path) == "mine");
  RunRecord(path, {.force = true});
  CHECK(Reader(path).phases().empty());
}
