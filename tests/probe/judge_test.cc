// memory_judge on programs whose memory is known.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {
constexpr int64_t kMiB = 1 << 20;

std::string built(const char* path) {
  const char* folder = getenv("MILLPOND_BUILD_DIR");
  return std::string(folder ? folder : "build") + path;
}

struct Judged {
  int exit = 0;
  nlohmann::json json;
};
Judged judge(const std::string& options, const std::string& command) {
  char file[] = "/tmp/millpond-judge-XXXXXX";
  close(mkstemp(file));
  const int status = std::system(
      (built("/bin/memory_judge") + " --json " + file + " " + options + " -- " + command + " > /dev/null").c_str());
  Judged j;
  j.exit = WEXITSTATUS(status);
  std::ifstream in(file);
  j.json = nlohmann::json::parse(in, nullptr, false);
  unlink(file);
  return j;
}
std::string patient(const char* scenario) { return built("/tests/count_patient ") + scenario; }
}  // namespace

TEST_CASE(
    "judge: 32 MiB taken after the start are 32 MiB of anonymous growth, to a few pages, and exactly 32 MiB mapped") {
  const Judged j = judge("--series", patient("grow 32"));
  CHECK(j.exit == 5);
  CHECK(j.json["exit"] == 5);
  CHECK(j.json["seen_at_exit"] == true);
  const auto& g = j.json["growth"];
  CHECK(g["mapped_live"] == 32 * kMiB);
  CHECK(g["allocations"] == 8);
  CHECK(g["heap_live"] == 0);
  const int64_t anonymous = g["anonymous"], rss = g["rss"], file = g["file"], before = j.json["start"]["rss"],
                peak = j.json["peak"]["rss"];
  CHECK(anonymous >= 32 * kMiB);
  CHECK(anonymous <= 32 * kMiB + 64 * 1024);
  CHECK(rss == anonymous + file);
  CHECK(peak >= before + 32 * kMiB);
  CHECK(peak <= before + 34 * kMiB);
  CHECK(g["by_mapping"]["[anonymous]"] >= 32 * kMiB);
  CHECK(j.json["samples"] >= 10);
  CHECK(j.json["series"].size() >= 10);
  int64_t last = 0;
  for (const auto& q : j.json["quarters"]) {
    CHECK(q["anonymous"] >= last);
    last = q["anonymous"];
  }
  CHECK(j.json["counts"]["calls"]["mmap"]["calls"] == 8);
}

TEST_CASE("judge: a peak that is over long before the end is still seen") {
  const Judged j = judge("--every 50", patient("spike"));
  CHECK(j.exit == 0);
  const int64_t peak = j.json["peak"]["rss"], end = j.json["end"]["rss"];
  CHECK(peak >= 64 * kMiB);
  CHECK(end < 16 * kMiB);
  CHECK(j.json["growth"]["mapped_live"] == 0);
}

TEST_CASE("judge: what comes after the end text is no growth of the training, but still of the peak") {
  const Judged j = judge("--end finished", patient("grow 8 more"));
  CHECK(j.json["growth"]["mapped_live"] == 8 * kMiB);
  CHECK(j.json["growth"]["allocations"] == 8);
  const int64_t anonymous = j.json["growth"]["anonymous"], end = j.json["end"]["rss"], peak = j.json["peak"]["rss"];
  CHECK(anonymous >= 8 * kMiB);
  CHECK(anonymous < 9 * kMiB);
  CHECK(peak >= end + 16 * kMiB);
  CHECK(j.json["counts"]["mapped_live"] == 24 * kMiB);
}

TEST_CASE("judge: a program that crashes is judged up to its last moment") {
  const Judged j = judge("", patient("crash"));
  CHECK(j.exit == 128 + 6);
  CHECK(j.json["exit"].is_null());
  CHECK(j.json["signal"] == 6);
  CHECK(j.json["growth"]["mapped_live"] == 4 * kMiB);
}

TEST_CASE("judge: without counting the counts are null, not zero, and resident memory is judged all the same") {
  const Judged j = judge("--no-count", patient("grow 8"));
  CHECK(j.json["counts"].is_null());
  CHECK(!j.json["growth"].contains("allocations"));
  CHECK(j.json["growth"]["anonymous"] >= 8 * kMiB);
}

TEST_CASE("judge: when the start text never comes, start and growth are null and the peak is still there") {
  const Judged j = judge("--start nowhere", patient("grow 8"));
  CHECK(j.json["start"].is_null());
  CHECK(j.json["growth"].is_null());
  CHECK(j.json["peak"]["rss"] >= 8 * kMiB);
}

TEST_CASE("judge: a command that cannot be started and wrong arguments end with 125") {
  CHECK(judge("", "/no/such/program").exit == 125);
  CHECK(judge("--every 0", "true").exit == 125);
  CHECK(judge("--what", "true").exit == 125);
  CHECK(judge("", "").exit == 125);
}
