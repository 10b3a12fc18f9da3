#include "watch/gpu.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/format.h"
#include "base/temporary_folder.h"

using namespace millpond;
using namespace millpond::watch;

namespace {

const std::vector<Pid> kTree = {{4000}, {4001}};
bool hidden(const std::vector<Pid>&) { return true; }
bool plain(const std::vector<Pid>&) { return false; }

/// A driver that answers what a test says.
class Fake {
 public:
  explicit Fake(const std::string& text) {
    says(text);
    setenv("MILLPOND_NVML", FAKE_NVML, 1);
    setenv("MILLPOND_FAKE_NVML", path_.c_str(), 1);
  }
  ~Fake() {
    unsetenv("MILLPOND_NVML");
    unsetenv("MILLPOND_FAKE_NVML");
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;
  void says(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  TemporaryFolder folder_{"gpu_test", TemporaryFolder::In::kFiles};
  std::string path_ = folder_.path() + "/answers";
};

}  // namespace

TEST_CASE("gpu: without library, driver or device there is nothing") {
  setenv("MILLPOND_NVML", "/no/such/libnvidia-ml.so.1", 1);
  CHECK(Gpus::open() == nullptr);
  CHECK(Gpus::open() == nullptr);
  const Fake fake("init 9\ndevice 1000 10 NVIDIA H200\n");
  CHECK(Gpus::open() == nullptr);
  fake.says("");
  CHECK(Gpus::open() == nullptr);
  setenv("MILLPOND_NVML", "libc.so.6", 1);  // a library without the names
  CHECK(Gpus::open() == nullptr);
}

TEST_CASE("gpu: what the processes of the tree use is summed for each device, and peaks stay") {
  const Fake fake(
      "device 1000 500 NVIDIA H200\ndevice 2000 70 NVIDIA A100\nprocess 0 4000 100\nprocess 0 17 300\nprocess 0 4001 "
      "30\nprocess 1 17 50\n");
  const std::unique_ptr<Gpus> gpus = Gpus::open();
  REQUIRE(gpus);
  REQUIRE(gpus->devices().size() == 2);
  CHECK_FALSE(gpus->devices()[0].answered);
  gpus->look(kTree, plain);
  CHECK(gpus->devices()[0].name == "NVIDIA H200");
  CHECK(gpus->devices()[0].answered);
  CHECK(gpus->devices()[0].total == Bytes{1000});
  CHECK(gpus->devices()[0].used == Bytes{500});
  CHECK(gpus->devices()[0].by_tree == Bytes{130});
  CHECK(gpus->devices()[1].by_tree == Bytes{0});
  fake.says("device 1000 420 NVIDIA H200\ndevice 2000 - NVIDIA A100\nprocess 0 4000 120\n");
  gpus->look(kTree, hidden);  // not asked: the numbers are known to be ours
  CHECK(gpus->devices()[0].by_tree == Bytes{120});
  CHECK(gpus->devices()[0].by_tree_peak == Bytes{130});
  CHECK(gpus->devices()[0].used_peak == Bytes{500});
  CHECK_FALSE(gpus->devices()[1].answered);
  CHECK(gpus->devices()[1].used == Bytes{70});
}

TEST_CASE("gpu: a list longer than the place for it is asked for again, and an older driver in the older way") {
  std::string text = "v3 13\ndevice 1000 900 GPU\n";
  for (int i = 0; i < 1000; ++i) text += format("process 0 {} 1\n", 10000 + i);
  text += "process 0 4001 7\n";
  const Fake fake(text);
  const std::unique_ptr<Gpus> gpus = Gpus::open();
  REQUIRE(gpus);
  gpus->look(kTree, plain);
  CHECK(gpus->devices()[0].by_tree == Bytes{7});
}

TEST_CASE("gpu: what the driver does not tell is not known, and never 0") {
  const Fake fake("device 1000 500 GPU\nprocess 0 4000 -\nprocess 0 4001 30\n");
  const std::unique_ptr<Gpus> gpus = Gpus::open();
  REQUIRE(gpus);
  SUBCASE("not available") {
    gpus->look(kTree, plain);
    CHECK_FALSE(gpus->devices()[0].by_tree.has_value());
    CHECK_FALSE(gpus->devices()[0].by_tree_peak.has_value());
  }
  SUBCASE("not supported") {
    fake.says("processes 3\ndevice 1000 500 GPU\n");
    gpus->look(kTree, plain);
    CHECK(gpus->devices()[0].answered);
    CHECK_FALSE(gpus->devices()[0].by_tree.has_value());
  }
  SUBCASE("numbers of another namespace") {
    fake.says("device 1000 20 GPU\n");
    gpus->look(kTree, plain);  // before it came to the GPU
    CHECK(gpus->devices()[0].by_tree == Bytes{0});
    fake.says("device 1000 500 GPU\nprocess 0 123456 480\n");
    gpus->look(kTree, hidden);
    CHECK_FALSE(gpus->devices()[0].by_tree.has_value());
    CHECK_FALSE(gpus->devices()[0].by_tree_peak.has_value());
    gpus->look(kTree, plain);  // it has left the GPU again
    CHECK_FALSE(gpus->devices()[0].by_tree_peak.has_value());
  }
  SUBCASE("a process that is listed a little late") {
    fake.says("device 1000 20 GPU\ndevice 1000 20 GPU\n");
    const std::unique_ptr<Gpus> two = Gpus::open();
    two->look(kTree, hidden);
    CHECK_FALSE(two->devices()[1].by_tree.has_value());
    fake.says("device 1000 20 GPU\ndevice 1000 20 GPU\nprocess 0 4000 9\n");
    two->look(kTree, hidden);
    CHECK(two->devices()[0].by_tree_peak == Bytes{9});
    CHECK(two->devices()[1].by_tree_peak == Bytes{0});
  }
}

TEST_CASE("gpu: a program without a device of NVIDIA's open hides nothing") {
  CHECK_FALSE(may_be_hidden({Pid{getpid()}}));
}
