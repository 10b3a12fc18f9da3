// The probe in a program of known allocations: what its file says, against what the program did. The program is
// probe_patient.cc; each scenario there has its test here.
#include <dirent.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmath>
#include <map>

#include "probe/chance.h"
#include "probe/live.h"
#include "probe_file.h"

namespace {

std::string built(const std::string& path) {
  const char* folder = getenv("MILLPOND_BUILD_DIR");
  return std::string(folder ? folder : "build") + path;
}

// A folder for the files of one run; it goes with all that is in it.
class Folder {
 public:
  Folder() {
    char name[] = "/dev/shm/millpond-test-XXXXXX";
    REQUIRE(mkdtemp(name));
    path = name;
  }
  ~Folder() {
    for (const std::string& file : files()) unlink((path + "/" + file).c_str());
    rmdir(path.c_str());
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    DIR* folder = opendir(path.c_str());
    while (const dirent* entry = folder ? readdir(folder) : nullptr)
      if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    if (folder) closedir(folder);
    return names;
  }
  std::string path;
};

using Settings = std::map<std::string, std::string>;

// A patient that has done what its scenario is and waits.
class Patient {
 public:
  Patient(const Folder& folder, std::vector<std::string> words, Settings settings = {},
          const std::string& allocator = "") {
    settings.emplace("MILLPOND_WATCH", folder.path);
    settings.emplace("MILLPOND_SEED", "5");
    settings.emplace("MILLPOND_INTERVAL", "65536");
    settings["LD_PRELOAD"] = built("/lib/millpond/libmillpond_probe.so") + (allocator.empty() ? "" : ":" + allocator);
    words.insert(words.begin(), built("/tests/probe_patient"));
    std::vector<std::string> environment;
    for (const auto& [name, value] : settings)
      if (!value.empty()) environment.push_back(name + "=" + value);
    int in[2], out[2];
    REQUIRE(pipe2(in, O_CLOEXEC) == 0);
    REQUIRE(pipe2(out, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      std::vector<char*> argv, env;
      for (auto& word : words) argv.push_back(word.data());
      for (auto& line : environment) env.push_back(line.data());
      argv.push_back(nullptr);
      env.push_back(nullptr);
      execve(argv[0], argv.data(), env.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    for (char c; read(out[0], &c, 1) == 1 && c != '\n';) said += c;
    close(out[0]);
  }
  ~Patient() { end(); }
  int end(int by_signal = 0) {
    if (pid > 0) {
      if (by_signal) kill(pid, by_signal);
      close(in_);
      int status = 0;
      waitpid(pid, &status, 0);
      exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      pid = 0;
    }
    return exit_;
  }
  std::string file(const Folder& folder) const { return folder.path + "/" + std::to_string(pid) + ".probe"; }
  // The number that follows `name` in what it said.
  double number(const std::string& name) const {
    const size_t at = (" " + said).find(" " + name + " ");
    REQUIRE_MESSAGE(at != std::string::npos, "it said: " << said);
    return atof(said.c_str() + at + name.size() + 1);
  }
  pid_t pid = 0;
  std::string said;

 private:
  int in_ = -1, exit_ = -1;
};

const char* const kAllocators[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"};

void check_estimate(const Patient& patient) {
  INFO(patient.said);
  CHECK(patient.number("inside") >= 95);  // of 100, within three standard deviations as the weights imply them
  CHECK(std::abs(patient.number("mean_off")) < 3);
  CHECK(std::abs(patient.number("blocks_off")) < 3);
}

const char* const kReallocs = "malloc 1 1.00; grown 1 3.00; failed 1 3.00; shrunk 1 2.00; ended 0 0.00; ";
const char* const kKinds = "alive 7 8.00; freed 0 0.00; ";
const char* const kNews = "alive 8 8.00; freed 0 0.00; ";
const char* const kMappings =
    "mapped 1 8.00; head 1 7.00; tail 1 6.00; hole 2 5.00; over 3 5.00; grown 3 19.00; shrunk 3 7.00; others 5 13.00; "
    "now 13.00; ended 0 0.00; now 0.00";

}  // namespace

TEST_CASE("probe: ln and 1 - exp agree with libm") {
  for (double x : {1e-300, 1e-18, 1e-9, 0.1, 0.25, 0.5, 0.7071067811865475, 0.70710678118654757, 0.75, 0.999999, 1.0})
    CHECK(millpond::probe::natural_log(x) == doctest::Approx(std::log(x)).epsilon(1e-14));
  for (double x : {0.0, 1e-12, 1e-6, 0.01, 0.24, 0.25, 0.26, 0.5, 1.0, 3.0, 4.0, 10.0, 39.0, 41.0, 1e9})
    CHECK(millpond::probe::hit_probability(x) == doctest::Approx(-std::expm1(-x)).epsilon(1e-14));
}

TEST_CASE("probe: estimates are unbiased, for many small blocks and for mixed ones") {
  for (const char* pattern : {"small", "mixed"})
    for (const char* seed : {"1", "2", "3"}) {
      const Folder folder;
      check_estimate(Patient(folder, {"estimate", pattern}, {{"MILLPOND_SEED", seed}}));
    }
}

TEST_CASE(
    "probe: large blocks are recorded exactly through realloc, every function of the family, operator new and "
    "mappings") {
  const Folder folder;
  CHECK(Patient(folder, {"reallocs"}).said == kReallocs);
  CHECK(Patient(folder, {"kinds"}).said == kKinds);
  CHECK(Patient(folder, {"news"}).said == kNews);
  CHECK(Patient(folder, {"mappings"}).said == kMappings);
}

TEST_CASE("probe: under jemalloc, tcmalloc and mimalloc the same holds, and their own mappings are not the program's") {
  for (const std::string name : kAllocators) {
    const std::string path = "/usr/lib/x86_64-linux-gnu/" + name;
    if (access(path.c_str(), R_OK) != 0) {
      MESSAGE(name << " is not installed: left out");
      continue;
    }
    CAPTURE(name);
    const Folder folder;
    check_estimate(Patient(folder, {"estimate", "mixed"}, {}, path));
    CHECK(Patient(folder, {"reallocs"}, {}, path).said == kReallocs);
    CHECK(Patient(folder, {"kinds"}, {}, path).said == kKinds);
    CHECK(Patient(folder, {"news"}, {}, path).said == kNews);
    if (name != "libmimalloc.so.2")
      CHECK(Patient(folder, {"throws"}, {}, path).number("thrown") == 1);  // it aborts, also without us
    CHECK(Patient(folder, {"mappings"}, {}, path).said == kMappings);
    Patient patient(folder, {"threads"}, {}, path);
    CHECK(patient.number("largest") < 1000);
    CHECK(ProbeFile(patient.file(folder)).header().mapped_now == 0);
    Patient marks(folder, {"marks"}, {}, path);
    CHECK(marks.number("trim") == -1);
  }
}

TEST_CASE("probe: 64 threads that free each other's blocks leave nothing behind") {
  const Folder folder;
  Patient patient(folder, {"threads"});
  INFO(patient.said);
  CHECK(patient.number("samples") == 1);
  CHECK(patient.number("left") <= 5);
  CHECK(patient.number("largest") < 1000);
  CHECK(patient.number("lost") == 0);
  CHECK(patient.end() == 0);
}

TEST_CASE("probe: a hundred children of a busy parent each have a file of their own, and the parent's stays as it is") {
  const Folder folder;
  Patient patient(folder, {"forks"});
  const pid_t parent = patient.pid;
  CHECK(patient.said == "good 100 mine 1");
  CHECK(patient.end() == 0);
  const auto files = folder.files();
  CHECK(files.size() == 101 + 25);
  int whole = 0;
  for (const auto& name : files) {
    const ProbeFile file(folder.path + "/" + name);
    REQUIRE(file.is_there());
    if (file.header().pid == parent) continue;
    const auto large = file.sum([](const Live& l) { return l.size >= 2 << 20; });
    whole += file.header().parent == parent && file.header().ended_ns != 0 && large.entries == 1;
  }
  CHECK(whole == 100);
}

TEST_CASE("probe: with MILLPOND_FOLLOW=0 children are left alone") {
  const Folder folder;
  Patient patient(folder, {"forks"}, {{"MILLPOND_FOLLOW", "0"}});
  CHECK(patient.said == "good 100 mine 1");
  CHECK(folder.files().size() == 1);
}

TEST_CASE("probe: a process that finds no room, or no folder any more, lives on without a file") {
  const Folder folder;
  {
    Room room{};
    room.limit = 3 * uint64_t{kPromised};  // the patient and two children
    const int fd = open((folder.path + "/room").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(ftruncate(fd, 4096) == 0);
    REQUIRE(write(fd, &room, sizeof room) == sizeof room);
    close(fd);
  }
  Patient patient(folder, {"forks"});
  CHECK(patient.said == "good 100 mine 1");
  Room room{};
  const int fd = open((folder.path + "/room").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(pread(fd, &room, sizeof room, 0) == sizeof room);
  close(fd);
  CHECK(room.taken == 3 * uint64_t{kPromised});
  CHECK(room.refused >= 98);
  CHECK(folder.files().size() == 4);  // three, and the room
}

TEST_CASE("probe: what a short process takes of shared memory is a few pages, and it never takes more than it may") {
  const Folder folder;
  Patient patient(folder, {"nothing"});
  struct stat facts{};
  REQUIRE(stat(patient.file(folder).c_str(), &facts) == 0);
  CHECK(facts.st_blocks * 512 < 256 << 10);
}

TEST_CASE("probe: spawned programs are watched, and exec begins another file") {
  const Folder folder;
  Patient patient(folder, {"spawns", built("/tests/probe_patient")});
  CHECK(patient.number("status") == 0);
  CHECK(ProbeFile(folder.path + "/" + std::to_string(int(patient.number("spawned"))) + ".probe").is_there());
  const Folder second;
  Patient replaced(second, {"replaced", built("/tests/probe_patient")});
  const std::string name = std::to_string(replaced.pid);
  CHECK(replaced.end() == 0);
  CHECK(ProbeFile(second.path + "/" + name + ".probe").sum([](const Live& l) { return l.size == 1 << 20; }).entries ==
        1);
  CHECK(ProbeFile(second.path + "/" + name + ".1.probe").header().ended_ns != 0);
}

TEST_CASE("probe: libraries may come and go while blocks are sampled") {
  const Folder folder;
  Patient patient(folder, {"libraries"});
  CHECK(patient.said == "opened 1");
  bool found = false;
  for (const auto& record : ProbeFile(patient.file(folder)).records())
    if (record.header.kind == kRecordModule) {
      const auto& module = record.as<ModuleRecord>();
      const std::string path(record.bytes.data() + sizeof module, module.path_size);
      CHECK(module.begin < module.end);
      found |= path.find("libsqlite3.so") != std::string::npos && module.build_id[0] + module.build_id[1] != 0;
    }
  CHECK(found);
  CHECK(patient.end() == 0);
}

TEST_CASE("probe: after SIGKILL in the middle of its work the file is whole") {
  for (int i = 0; i < 5; ++i) {
    const Folder folder;
    Patient patient(folder, {"killed"});
    CHECK(patient.said == "busy");
    const std::string path = patient.file(folder);
    usleep(20000);
    CHECK(patient.end(SIGKILL) == -SIGKILL);
    const ProbeFile file(path);
    REQUIRE(file.is_there());
    CHECK(file.header().ended_ns == 0);
    CHECK(file.sum([](const Live& l) { return l.size >= 1 << 20 && l.size < (1 << 20) + 100; }).entries == 100);
    for (const Live& entry : file.live()) {
      CHECK(file.stack(entry.stack).hash != 0);
      CHECK(file.stack(entry.stack).frames > 0);
    }
  }
}

TEST_CASE("probe: a mark carries counters, and its snapshot adds up to what is alive") {
  const Folder folder;
  Patient patient(folder, {"marks"});
  INFO(patient.said);
  CHECK(patient.number("note") == 0);
  CHECK(patient.number("version") == kProbeVersion);
  CHECK(patient.number("quiet") == 0);
  CHECK(patient.number("loud") == 1);
  const ProbeFile file(patient.file(folder));
  int marks = 0, notes = 0;
  for (const auto& record : file.records()) {
    if (record.header.kind == kRecordNote) {
      const auto& note = record.as<NoteRecord>();
      CHECK(std::string(record.bytes.data() + sizeof note, note.text_size) == "{\"note\":\"start\"}");
      ++notes;
    }
    if (record.header.kind != kRecordMark) continue;
    const auto& mark = record.as<MarkRecord>();
    ++marks;
    const auto* sites = reinterpret_cast<const SiteBytes*>(record.bytes.data() + sizeof mark);
    const std::string name(reinterpret_cast<const char*>(sites + mark.sites), mark.name_size);
    CHECK(std::string(mark.kind) == "epoch");
    CHECK(mark.index == marks);
    CHECK(mark.units[kUnitEpoch] == 3);
    CHECK(mark.rss > 1 << 20);
    CHECK(mark.heap_mapped >= 20 << 20);
    CHECK(name == (marks == 1 ? "first" : "second"));
    if (marks == 1) {
      CHECK(mark.sites == 0);
      continue;
    }
    uint64_t bytes = 0, young = 0, old = 0;
    for (uint32_t i = 0; i < mark.sites; ++i) {
      bytes += sites[i].bytes;
      if (i) CHECK(sites[i].bytes <= sites[i - 1].bytes);
      old += sites[i].age_kib[0];
      for (int bin = 5; bin < kAgeBins; ++bin) young += sites[i].age_kib[bin];
    }
    CHECK(double(bytes) == patient.number("bytes"));
    CHECK(young == 20 << 10);  // the ten blocks made after four fifths of the time
    CHECK(old >= 20 << 10);    // the twenty from before the first period
  }
  CHECK(marks == 2);
  CHECK(notes == 1);
}

TEST_CASE(
    "probe: blocks are counted by size, those that were freed at once apart, and whether one thread made them or "
    "several") {
  const Folder folder;
  Patient patient(folder, {"temporary"});
  const ProbeFile file(patient.file(folder));
  const auto class_of = [&](uint64_t mib) { return file.header().sizes[millpond::probe::live::size_class(mib << 20)]; };
  const uint64_t kMiB = 1 << 20;
  const SizeTotals kept = class_of(5);  // 4 to 8 MiB, where nothing else is
  CHECK(kept.bytes == 5 * kMiB);
  CHECK(kept.freed_bytes == 0);
  const SizeTotals two_and_three = class_of(2);
  CHECK(two_and_three.blocks == 204);
  CHECK(two_and_three.bytes == (400 + 12) * kMiB);
  CHECK(two_and_three.freed_bytes == (400 + 12) * kMiB);
  CHECK(two_and_three.soon_bytes <= 400 * kMiB);  // what stayed for 50 ms is no part of it
  CHECK(two_and_three.soon_bytes >= 200 * kMiB);
  bool found = false;
  for (uint32_t i = 0; i < kStacks; ++i) {
    const Stack stack = file.stack(i);
    if (stack.hash == 0 || stack.total_bytes != 400 * kMiB) continue;
    found = true;
    CHECK((stack.flags & kStackShared) != 0);
    CHECK((uint64_t{stack.soon_kib} << 10) == two_and_three.soon_bytes);
  }
  CHECK(found);
  for (const Live& entry : file.live())
    if (entry.size == 5 * kMiB) CHECK((file.stack(entry.stack).flags & kStackShared) == 0);
}

TEST_CASE(
    "probe: what the agent keeps lies apart: a large block below it is given back, and its blocks are malloc's as "
    "others") {
  const Folder folder;
  Patient patient(folder, {"apart"});
  INFO(patient.said);
  CHECK(patient.number("held") < 8);
  CHECK(patient.number("right") == 1);
  CHECK(patient.number("child") == 0);
}

TEST_CASE("probe: a full ring loses records and says how many; with a reader it turns without end") {
  const Folder folder;
  Patient patient(folder, {"full_ring"});
  INFO(patient.said);
  CHECK(patient.number("written") == 20);
  CHECK(patient.number("lost") == 1);
  CHECK(patient.number("all_read") == 1);
}

TEST_CASE("probe: without a folder, or with one that is not there, nothing happens") {
  const Folder folder;
  CHECK(Patient(folder, {"harmless"}, {{"MILLPOND_WATCH", ""}}).said == "note 1");
  CHECK(Patient(folder, {"harmless"}, {{"MILLPOND_WATCH", "/dev/shm/millpond-is-not-there"}}).said == "note 1");
  CHECK(folder.files().empty());
}
