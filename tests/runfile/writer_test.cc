#include "runfile/writer.h"

#include <signal.h>
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
  CHECK(meta.at("schema_minor") == "2");
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
  REQUIRE(r.processes().size() == 1);
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

TEST_CASE("run file: one of minor version 0, without the doctor's tables, is read") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  Database(path, Database::Mode::kWrite)
      .run("UPDATE meta SET value = '0' WHERE key = 'schema_minor'; DROP TABLE site_states; DROP TABLE marks; DROP TABLE sites; DROP TABLE frames; "
           "DROP TABLE notes; DROP TABLE tree_series; DROP TABLE processes");
  read_all(Reader(path));
  CHECK(Reader(path).marks().empty());
}

TEST_CASE("run file: one of minor version 1, without GPUs, is read") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  Database(path, Database::Mode::kWrite).run("UPDATE meta SET value = '1' WHERE key = 'schema_minor'; DROP TABLE gpu_series; DROP TABLE gpus");
  read_all(Reader(path));
  CHECK(Reader(path).marks().size() == 2);
  CHECK(Reader(path).gpus().empty());
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
  { Writer w(path, {{"program", "x"}}, {.force = true}); }
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
