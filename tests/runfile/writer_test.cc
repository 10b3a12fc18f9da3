#include "runfile/writer.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "runfile/sqlite.h"
#include "runfile/support.h"

using namespace millpond;
using namespace millpond::runfile;
using namespace millpond::runfile::testing;
namespace fs = std::filesystem;

TEST_CASE("run file: what was written is what is read") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  const Reader r(path);
  const Meta meta = r.meta();
  CHECK(meta.at("program") == "millpond train");
  CHECK(meta.at("seconds") == "4.250");
  CHECK(meta.at("status") == "ended");
  CHECK(meta.at("schema_minor") == "3");
  CHECK(r.accounts() ==
        std::vector<std::string>{"activations/dense", "metrics/loss", "weights/dense", "pipeline/prefetch"});

  const std::vector<Phase> phases = r.phases();
  REQUIRE(phases.size() == 4);
  CHECK(phases[0].kind == "fit");
  CHECK(phases[0].parent == RowId{});
  CHECK(*phases[0].end == 4);
  CHECK(phases[3].index == 3);
  CHECK(phases[3].parent == phases[0].id);
  CHECK(*phases[3].end == doctest::Approx(3.9));

  const std::vector<OsRow> os = r.os_series();
  REQUIRE(os.size() == 3);
  CHECK(*os[2].rss == 22_MiB);
  CHECK_FALSE(os[2].pss.has_value());
  CHECK(*os[0].explained == 19_MiB);
  CHECK(os[1].phase == phases[2].id);

  const std::vector<Program> programs = r.programs();
  REQUIRE(programs.size() == 1);
  CHECK(programs[0].method == "size, best fit");
  CHECK(programs[0].planned == 320_B);
  const std::vector<PlanBuffer> buffers = r.plan_buffers(programs[0].id);
  REQUIRE(buffers.size() == 2);
  CHECK(buffers[0].account == "activations/dense");
  CHECK(buffers[1].offset == 256_B);
  CHECK(buffers[0].last == 3);
  const std::vector<PlanCall> calls = r.plan_calls(programs[0].id);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].op == "matmul");
  CHECK(calls[0].workspace == 128_B);
  CHECK(r.plan_buffers(RowId{9}).empty());
}

TEST_CASE("run file: what the doctor saw is what is read, and a forgotten mark takes its states along") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  const Reader r(path);
  REQUIRE(r.processes().size() == 2);
  CHECK(r.processes()[0].pid == 4711);
  REQUIRE(r.frames().size() == 3);  // the shared one once
  const std::vector<SiteRow> sites = r.sites();
  REQUIRE(sites.size() == 2);
  CHECK(sites[0].frames == std::vector<RowId>{{1}, {2}});
  CHECK(sites[1].frames == std::vector<RowId>{{3}, {2}});
  CHECK(sites[1].total == 9_MiB);
  CHECK(sites[1].freed == 6_MiB);
  const std::vector<MarkRow> marks = r.marks();
  REQUIRE(marks.size() == 2);
  CHECK(marks[1].units == std::vector<int64_t>{200, 2});
  CHECK(marks[1].period);
  CHECK(*marks[1].python_arenas == 3_MiB);
  CHECK_FALSE(marks[1].heap_free.has_value());
  const std::vector<SiteStateRow> states = r.site_states();
  REQUIRE(states.size() == 4);
  CHECK(states[3].mark == marks[1].id);
  CHECK(states[3].ages == std::vector<Bytes>{1_MiB, 0_B, 2_MiB});
  CHECK(r.tree_series()[0].processes == 3);
  CHECK(r.notes()[0].text == R"({"note": "start"})");
  const std::vector<GpuRow> gpus = r.gpus();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].name == "NVIDIA H200");
  CHECK(gpus[0].used_peak == 30_MiB);
  CHECK(gpus[0].by_tree_peak == 12_MiB);
  CHECK_FALSE(gpus[1].by_tree_peak.has_value());
  const std::vector<GpuPointRow> points = r.gpu_series();
  REQUIRE(points.size() == 2);
  CHECK(points[0].by_tree == 12_MiB);
  CHECK(points[1].device == 1);
  CHECK_FALSE(points[1].by_tree.has_value());
}

TEST_CASE(
    "run file: threads, what lived for a moment and blocks by size are what was written; a file of version 2.0 has "
    "none of them") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  {
    Writer w(path, {});
    const RowId process = w.add(Process{{}, 7, 1, "python3", 0});
    const RowId one = w.add(process, std::vector<FrameRow>{{"train.py", "f", 1, false, true}}),
                two = w.add(process, std::vector<FrameRow>{{"train.py", "g", 2, false, true}});
    const RowId thread = w.add(ThreadRow{{}, process, 9, "loader"});
    w.add(SiteDetailRow{one, thread, 3_MiB});
    w.add(SiteDetailRow{two, {}, Bytes{}});
    w.add(SizeRow{process, Bytes{32}, 1.5, 4_MiB, 3_MiB, 2_MiB});
    w.commit();
    const Reader r(path);
    REQUIRE(r.threads().size() == 1);
    CHECK(r.threads()[0].name == "loader");
    CHECK(r.threads()[0].tid == 9);
    REQUIRE(r.site_details().size() == 2);
    CHECK(r.site_details()[0].thread == thread);
    CHECK(r.site_details()[0].temporary == 3_MiB);
    CHECK(r.site_details()[1].thread == RowId{});
    REQUIRE(r.sizes().size() == 1);
    CHECK(r.sizes()[0].from == Bytes{32});
    CHECK(r.sizes()[0].blocks == 1.5);
    CHECK(r.sizes()[0].temporary == 2_MiB);
  }
  Database(path, Database::Mode::kWrite)
      .run(
          "DROP TABLE threads; DROP TABLE site_details; DROP TABLE sizes; UPDATE meta SET value = '0' WHERE key = "
          "'schema_minor'");
  const Reader older(path);
  CHECK(older.threads().empty());
  CHECK(older.site_details().empty());
  CHECK(older.sizes().empty());
}

TEST_CASE(
    "run file: how a process began, its pages and its mappings are what was written; a file of version 2.1 has none of "
    "them") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  {
    Writer w(path, {});
    const RowId one = w.add(Process{{}, 7, 1, "python3", 0}), two = w.add(Process{{}, 8, 7, "python3", 1});
    w.put(ProcessDetailRow{two, How::kFork, {}, 40_MiB});
    w.put(ProcessDetailRow{two, How::kFork, "ForkPoolWorker-1", 40_MiB});  // more of it
    w.add(ProcessMemoryRow{1, one, 9_MiB, {}, {}, 5_MiB, {}});
    for (int i = 0; i < 4; ++i) w.add(ProcessMemoryRow{2.0 + i, two, 9_MiB, 3_MiB, 4_MiB, 5_MiB, 1_MiB});
    w.add(MappingRow{2, two, "shared_memory", 8_MiB, 6_MiB, 1_MiB, 3_MiB});
    w.add(MappingRow{2, {}, "tmpfs", 8_MiB, 6_MiB, 2_MiB, {}});
    CHECK(w.thin_process_memory() == 3);  // of each process
    CHECK(w.thin_mapping_series() == 2);
    w.commit();
    const Reader r(path);
    REQUIRE(r.process_details().size() == 1);
    CHECK(r.process_details()[0].how == How::kFork);
    CHECK(r.process_details()[0].label == "ForkPoolWorker-1");
    CHECK(r.process_details()[0].inherited == 40_MiB);
    REQUIRE(r.process_memory().size() == 3);
    CHECK_FALSE(r.process_memory()[0].private_.has_value());
    CHECK(r.process_memory()[1].process == two);
    CHECK(r.process_memory()[1].private_ == 3_MiB);
    CHECK(r.process_memory()[1].alive == 1_MiB);
    REQUIRE(r.mapping_series().size() == 2);
    CHECK(r.mapping_series()[0].kind == "shared_memory");
    CHECK(r.mapping_series()[0].pss == 3_MiB);
    CHECK(r.mapping_series()[1].process == RowId{});
  }
  Database db(path, Database::Mode::kWrite);
  db.run("UPDATE mapping_series SET kind = 'other'");
  CHECK_THROWS_AS(Reader(path).mapping_series(), Error);
  db.run("UPDATE process_details SET how = 'magic'");
  CHECK_THROWS_AS(Reader(path).process_details(), Error);
  db.run(
      "DROP TABLE process_details; DROP TABLE process_memory; DROP TABLE mapping_series; UPDATE meta SET value = '1' "
      "WHERE key = 'schema_minor'");
  const Reader older(path);
  CHECK(older.process_details().empty());
  CHECK(older.process_memory().empty());
  CHECK(older.mapping_series().empty());
}

TEST_CASE(
    "run file: what a framework's pool had of a device is what was written; a file of version 2.2 has none of it") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  {
    Writer w(path, {});
    const RowId one = w.add(Process{{}, 7, 1, "python3", 0});
    w.add(PoolRow{1, one, "gpu:1", "torch", 3_MiB, 20_MiB, 5_MiB, 2_MiB, 1_MiB, 4, 1, 80_MiB});
    w.add(PoolRow{2, one, "gpu:1", "tensorflow", 3_MiB, {}, {}, {}, {}, 0, 0, {}});
    for (int i = 0; i < 3; ++i) w.add(PoolRow{2.0 + i, one, "gpu:0", "torch", 4_MiB, {}, {}, {}, {}, 0, 0, {}});
    CHECK(w.thin_pool_series() == 4);  // of each space and pool
    w.commit();
    const std::vector<PoolRow> rows = Reader(path).pool_series();
    REQUIRE(rows.size() == 4);
    CHECK(rows[0].space == "gpu:1");
    CHECK(rows[0].pool == "torch");
    CHECK(rows[0].reserved == 20_MiB);
    CHECK(rows[0].inactive_split == 2_MiB);
    CHECK(rows[0].largest_free == 1_MiB);
    CHECK(rows[0].retries == 4);
    CHECK(rows[0].limit == 80_MiB);
    CHECK_FALSE(rows[1].reserved.has_value());
  }
  Database db(path, Database::Mode::kWrite);
  db.run("UPDATE pool_series SET in_use = -1");
  CHECK_THROWS_AS(Reader(path).pool_series(), Error);
  db.run("DROP TABLE pool_series; UPDATE meta SET value = '2' WHERE key = 'schema_minor'");
  CHECK(Reader(path).pool_series().empty());
}

TEST_CASE("run file: thinning the points of GPUs leaves every device its half") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  Writer w(path, {});
  for (int i = 0; i < 10; ++i)
    for (int device = 0; device < 2; ++device) w.add(GpuPointRow{double(i), device, Bytes{i}, {}});
  CHECK(w.thin_gpu_series() == 10);
  w.commit();
  int of_first = 0;
  for (const GpuPointRow& p : Reader(path).gpu_series()) {
    CHECK(p.used.value % 2 == 0);
    of_first += p.device == 0;
  }
  CHECK(of_first == 5);
}

TEST_CASE("run file: a note beyond the limit of one value is not written, and the writer says so") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  Writer w(path, {});
  CHECK(w.add(NoteRow{0, {}, std::string(kMostText, 'x')}));
  CHECK_FALSE(w.add(NoteRow{0, {}, std::string(kMostText + 1, 'x')}));
}

TEST_CASE(
    "run file: process and memory space are keys of every series, and a process has a row from its start to its end") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  {
    Writer w(folder / "keys.pond", {});
    const RowId one = w.add(Process{{}, 10, 1, "a", 0}), two = w.add(Process{{}, 11, 10, "b", 0});
    // The same account of two processes and of two spaces: four series, and none keeps a value of another from being
    // written.
    for (const RowId process : {one, two})
      for (const std::string& space : {kHost, gpu_space(1)})
        w.add(1, {}, std::vector<AccountBytes>{{"tensors", 5_MiB, 6_MiB, process, space}});
    w.add(OsRow{.t = 1,
                .phase = {},
                .rss = 1_MiB,
                .peak_rss = {},
                .pss = {},
                .private_dirty = {},
                .swap = {},
                .heap_in_use = {},
                .heap_free = {},
                .explained = {},
                .process = two});
    w.finish(2, "ended");
    const Reader r(folder / "keys.pond");
    CHECK(r.version() == 2);
    std::vector<std::pair<int64_t, std::string>> keys;
    for (const SeriesRow& row : r.series())
      if (row.kind == SeriesKind::kCurrent) keys.emplace_back(row.process.value, row.space);
    CHECK(keys == std::vector<std::pair<int64_t, std::string>>{{1, "host"}, {1, "gpu:1"}, {2, "host"}, {2, "gpu:1"}});
    CHECK(r.os_series()[0].process == two);
    CHECK(r.os_series()[0].space == "host");
  }
  const Reader r(path);
  const std::vector<Process> processes = r.processes();
  CHECK(processes[0].seen == Seen::kInside);
  CHECK(processes[0].command.empty());
  CHECK_FALSE(processes[0].end.has_value());
  CHECK(processes[1].seen == Seen::kOutside);
  CHECK(processes[1].parent == 4711);
  CHECK(processes[1].end == 3.5);
  CHECK(processes[1].command == "python3 train.py --fold 2");
  const std::vector<ProcessPointRow> points = r.process_series();
  REQUIRE(points.size() == 5);
  CHECK(points[0].resident == 20_MiB);
  CHECK(points[0].private_ == 12_MiB);
  CHECK(points[0].in_use == 9_MiB);
  CHECK(points[1].space == "shared");
  CHECK_FALSE(points[1].in_use.has_value());
  CHECK(points[3].process == processes[1].id);
  CHECK(points[3].space == "gpu:0");
  CHECK(points[4].process == RowId{});
  CHECK(r.gpu_series()[1].space == "gpu:1");
}

TEST_CASE("run file: thinning leaves every process and space its half") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  Writer w(path, {});
  const RowId one = w.add(Process{{}, 10, 1, "a", 0});
  for (int i = 0; i < 8; ++i)
    w.add(ProcessPointRow{double(i), one, kHost, Bytes{i}, {}, {}}),
        w.add(ProcessPointRow{double(i), {}, kShared, Bytes{i}, {}, {}});
  CHECK(w.thin_process_series() == 8);
  w.commit();
  for (const ProcessPointRow& p : Reader(path).process_series()) CHECK(p.resident->value % 2 == 0);
}

TEST_CASE("run file: sources are kept whole, at most 64 KiB of a run, and what does not fit is refused") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  Writer w(path, {});
  CHECK(w.add(SourceRow{"a.py", "f", 7, std::string(60000, 'x')}));
  CHECK_FALSE(w.add(SourceRow{"a.py", "g", 9, std::string(6000, 'y')}));
  CHECK(w.add(SourceRow{"a.py", "h", 1000, "def h(): pass\n"}));
  w.commit();
  const std::vector<SourceRow> sources = Reader(path).sources();
  REQUIRE(sources.size() == 2);
  CHECK(sources[0].text.size() == 60000);
  CHECK(sources[0].first == 7);
  CHECK(sources[1].function == "h");
}

TEST_CASE("run file: a long note is written whole") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  Writer w(path, {});
  w.add(NoteRow{0, {}, std::string(20000, 'x')});
  w.commit();
  CHECK(Reader(path).notes()[0].text.size() == 20000);
}

namespace {
/// A run file of version 1, as that version's schema was; `minor` 0 had nothing of the doctor's, 1 no GPUs.
void old_run(const std::string& path, int minor) {
  std::string sql = format(
      "PRAGMA application_id = {}; PRAGMA user_version = 1;"
      "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID; INSERT INTO meta VALUES "
      "('schema_minor', '{}'), ('command', 'python3 train.py');"
      "CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE); INSERT INTO accounts VALUES (1, "
      "'weights/dense');"
      "CREATE TABLE phases (id INTEGER PRIMARY KEY, kind TEXT, name TEXT, \"index\" INTEGER, parent INTEGER, t_start "
      "REAL, t_end REAL);"
      "CREATE TABLE series (t REAL, phase INTEGER, account INTEGER, kind TEXT, bytes INTEGER); INSERT INTO series "
      "VALUES (1.0, NULL, 1, 'current', 4096);"
      "CREATE TABLE os_series (t REAL, phase INTEGER, rss INTEGER, peak_rss INTEGER, pss INTEGER, private_dirty "
      "INTEGER, swap INTEGER, heap_in_use INTEGER,"
      " heap_free INTEGER, explained INTEGER); INSERT INTO os_series VALUES (1.0, NULL, 20, NULL, NULL, NULL, 3, NULL, "
      "NULL, NULL);"
      "CREATE TABLE programs (id INTEGER PRIMARY KEY, name TEXT, calls INTEGER, planned_bytes INTEGER, "
      "lower_bound_bytes INTEGER, plan_seconds REAL, method TEXT);"
      "CREATE TABLE plan_buffers (program INTEGER, name TEXT, account INTEGER, layer TEXT, \"offset\" INTEGER, size "
      "INTEGER, first INTEGER, last INTEGER);"
      "CREATE TABLE plan_calls (program INTEGER, \"index\" INTEGER, op TEXT, layer TEXT, name TEXT, workspace "
      "INTEGER);",
      kApplicationId, minor);
  if (minor >= 1)
    sql +=
        "CREATE TABLE processes (id INTEGER PRIMARY KEY, pid INTEGER, parent INTEGER, name TEXT, t_start REAL); INSERT "
        "INTO processes VALUES (1, 4711, 1, 'python3', 0.5);"
        "CREATE TABLE frames (id INTEGER PRIMARY KEY, file TEXT, function TEXT, line INTEGER, native INTEGER, user "
        "INTEGER); INSERT INTO frames VALUES (1, 't.py', 'f', 3, 0, 1);"
        "CREATE TABLE sites (id INTEGER PRIMARY KEY, process INTEGER, frames TEXT, total_bytes INTEGER, total_blocks "
        "REAL, freed_bytes INTEGER);"
        "CREATE TABLE marks (id INTEGER PRIMARY KEY, process INTEGER, t REAL, kind TEXT, name TEXT, \"index\" INTEGER, "
        "period INTEGER, rss INTEGER, heap_in_use INTEGER,"
        " heap_free INTEGER, heap_mapped INTEGER, python_arenas INTEGER, private_dirty INTEGER, pss INTEGER, processes "
        "INTEGER, units TEXT);"
        "INSERT INTO marks VALUES (1, 1, 1.0, 'epoch', 'epoch #', 1, 1, 20, 1, 1, 1, 1, NULL, NULL, 1, '1 1');"
        "CREATE TABLE site_states (mark INTEGER, site INTEGER, bytes INTEGER, blocks REAL, ages TEXT);"
        "CREATE TABLE tree_series (t REAL, processes INTEGER, rss INTEGER, private_dirty INTEGER, pss INTEGER); INSERT "
        "INTO tree_series VALUES (1.0, 2, 40, NULL, NULL);"
        "CREATE TABLE notes (t REAL, process INTEGER, text TEXT);";
  if (minor >= 2)
    sql +=
        "CREATE TABLE gpus (device INTEGER PRIMARY KEY, name TEXT, total INTEGER, used_peak INTEGER, by_tree_peak "
        "INTEGER); INSERT INTO gpus VALUES (3, 'H200', 9, 9, NULL);"
        "CREATE TABLE gpu_series (t REAL, device INTEGER, used INTEGER, by_tree INTEGER); INSERT INTO gpu_series "
        "VALUES (1.0, 3, 9, NULL);";
  Database(path, Database::Mode::kCreate).run(sql);
}
}  // namespace

TEST_CASE("run file: those of version 1 are read as version 2 has it, whatever their minor version, and not written") {
  const Folder folder;
  for (int minor = 0; minor <= 2; ++minor) {
    const std::string path = folder / format("old-{}.pond", minor).c_str();
    old_run(path, minor);
    const std::string before = content(path);
    const Reader r(path);
    read_all(r);
    CHECK(r.version() == 1);
    CHECK(r.series()[0].space == "host");
    CHECK(r.series()[0].process == RowId{});
    CHECK(r.os_series()[0].swap == 3_B);
    CHECK(r.os_series()[0].space == "host");
    CHECK(r.marks().size() == size_t(minor > 0));
    CHECK(r.process_series().empty());
    CHECK(r.sources().empty());
    if (minor >= 1) {
      CHECK(r.processes()[0].seen == Seen::kInside);
      CHECK_FALSE(r.processes()[0].end.has_value());
      CHECK(r.tree_series()[0].rss == 40_B);
      CHECK(r.tree_series()[0].space == "host");
    }
    CHECK(r.gpu_series().size() == size_t(minor == 2));
    if (minor == 2) CHECK(r.gpu_series()[0].space == "gpu:3");
    CHECK(content(path) == before);
  }
}

TEST_CASE("run file: it, its journal and its draft are their owner's alone, whatever the umask") {
  const Folder folder;
  const mode_t before = umask(0);
  {
    Writer w(folder / "run.pond", {});
    w.begin_phase("epoch", std::string(3000, 'x'), 1, {}, 0);
    for (int i = 0; i < 3000; ++i)
      w.begin_phase("epoch", std::string(3000, 'x'), i, {}, 0);  // more than the cache holds: the journal is written
    int seen = 0;
    for (const auto& entry : fs::directory_iterator(folder.path)) {
      ++seen;
      CHECK((fs::status(entry).permissions() & fs::perms::mask) == (fs::perms::owner_read | fs::perms::owner_write));
    }
    CHECK(seen == 2);
  }
  umask(before);
}

TEST_CASE("run file: a value that does not change is written once") {
  const Folder folder;
  small_run(folder / "run.pond");
  const std::vector<SeriesRow> rows = Reader(folder / "run.pond").series();
  REQUIRE(rows.size() == 6);  // both accounts, current and peak, in epoch 1; prefetch again in epoch 3
  CHECK(rows[4].account == "pipeline/prefetch");
  CHECK(rows[4].kind == SeriesKind::kCurrent);
  CHECK(rows[4].bytes == 2_MiB);
  CHECK(rows[4].t == 3.5);
  CHECK(rows[5].kind == SeriesKind::kPeak);
}

TEST_CASE("run file: ten thousand flat epochs keep the writer's memory and cost about a hundred bytes each") {
  const Folder folder;
  Writer w(folder / "run.pond", {});
  for (int i = 0; i < 2000; ++i) epoch(w, {}, i, 1_MiB);
  const auto size = fs::file_size(folder / "run.pond");
  for (int i = 2000; i < 12000; ++i) epoch(w, {}, i, 1_MiB);
  CHECK(w.memory() < 1_MiB);
  CHECK((fs::file_size(folder / "run.pond") - size) / 10000 < 110);
}

TEST_CASE("run file: an existing file is left alone unless forced") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  put(path, "my thesis");
  CHECK(refusal([&] { Writer w(path, {}); }, Code::kFile) ==
        format("run file {} exists already; give another path, or force to replace it", path));
  CHECK(content(path) == "my thesis");
  put(path + "-journal", "left by a program that was killed");
  {
    Writer w(path, {{"program", "x"}}, {.force = true});
  }
  CHECK(Reader(path).meta().at("program") == "x");
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);  // no draft, no journal
}

TEST_CASE("run file: a folder that is not there is named") {
  CHECK(holds(refusal([] { Writer w("/nowhere/at/all/run.pond", {}); }, Code::kFile), "/nowhere/at/all/run.pond"));
}

TEST_CASE("run file: is valid from the first moment, and can be read while it is written") {
  const Folder folder;
  Writer w(folder / "run.pond", {{"program", "x"}});
  CHECK(Reader(folder / "run.pond").phases().empty());
  epoch(w, {}, 1, 1_MiB);
  CHECK(Reader(folder / "run.pond").phases().size() == 1);
  const RowId open = w.begin_phase("epoch", "", 2, {}, 2);
  CHECK(Reader(folder / "run.pond").phases().size() == 1);  // not committed
  w.commit();
  CHECK_FALSE(Reader(folder / "run.pond").phases()[1].end.has_value());
  w.end_phase(open, 3);
}

TEST_CASE("run file: after kill -9 at any moment the file opens and holds every epoch whose commit had returned") {
  std::mt19937 random(5);
  for (int round = 0; round < 25; ++round) {
    const Folder folder;
    const std::string path = folder / "run.pond";
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    const pid_t child = fork();
    if (child == 0) {
      Writer w(path, {{"program", "x"}}, {.sync = round % 5 == 0});
      for (int64_t i = 1;; ++i) {
        const RowId phase = w.begin_phase("epoch", std::string(3000, 'x'), i, {}, double(i));
        std::vector<AccountBytes> accounts;  // enough that SQLite writes pages before the commit
        for (int k = 0; k < 300; ++k)
          accounts.push_back(
              {format("activations/layer_{}/{}", k, std::string(60, 'y')), Bytes{i + k}, Bytes{2 * i + k}});
        w.add(double(i), phase, accounts);
        w.end_phase(phase, double(i) + 1);
        w.commit();
        if (write(pipes[1], &i, sizeof i) != sizeof i) _exit(1);
      }
    }
    close(pipes[1]);
    int64_t promised = 0;
    REQUIRE(read(pipes[0], &promised, sizeof promised) == sizeof promised);
    usleep(random() % 30'000);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    while (read(pipes[0], &promised, sizeof promised) == sizeof promised) {
    }
    close(pipes[0]);
    const Reader r(path);
    read_all(r);
    const std::vector<Phase> phases = r.phases();
    CHECK(int64_t(phases.size()) >= promised);
    CHECK(int64_t(phases.size()) <= promised + 1);  // a commit may be done without having returned
    for (const Phase& p : phases) CHECK(p.end.has_value());
    CHECK(r.series().size() == phases.size() * 600);
    CHECK_FALSE(r.meta().contains("status"));
  }
}

TEST_CASE("run file: names too long to be true are cut between characters, not refused") {
  const Folder folder;
  std::string name = "a";
  for (int i = 0; i < 3000; ++i) name += "ü";
  {
    Writer w(folder / "run.pond", {});
    w.begin_phase("other", name, 0, {}, 0);
  }
  const std::string read = Reader(folder / "run.pond").phases()[0].name;
  CHECK(read.size() == 4095);
  CHECK(name.starts_with(read));
}

TEST_CASE("host_facts: tell the machine, but neither its name nor a path") {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const Meta facts = host_facts();
  CHECK(std::stoll(facts.at("host.cores")) >= 1);
  CHECK(std::stoll(facts.at("host.memory_bytes")) > 1 << 20);
  for (const auto& [key, value] : facts) {
    CHECK(value.find("/home") == std::string::npos);
    if (std::strlen(host) > 3) CHECK(value.find(host) == std::string::npos);
  }
}
