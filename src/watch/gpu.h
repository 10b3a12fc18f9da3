// gpu: what NVML, the library of NVIDIA's driver, says of GPU memory: how much of each device is used, and how much of
// that is of the watched processes. Totals only. Which line allocates would need hooks on CUDA's own allocation calls:
// their place is src/probe, beside malloc's.
//
// libnvidia-ml.so.1 is loaded where it is found, in the process that watches and never in the program. Without library,
// driver or device there is nothing, and nothing is said. For tests only: the environment variable MILLPOND_NVML names
// another library (tests/watch/fake_nvml.cc).
//
// Costs: opening takes from milliseconds to seconds (a driver may have to wake its devices), so it belongs on a thread
// of its own; a look is two calls of the driver for each device. Memory: the library's, some MiB.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace millpond::watch {

/// A device, as the last look found it.
struct Gpu {
  std::string name;
  bool answered = false;  // false: the last look got no answer, the numbers are those of an earlier one
  Bytes total, used, used_peak;
  std::optional<Bytes> by_tree, by_tree_peak;       // of the watched processes; absent: the driver does not tell
  std::vector<std::pair<Pid, Bytes>> by_process{};  // of by_tree, each that the driver tells of
};

/// True where processes of the tree may use a GPU under numbers that we do not know: in a container NVML may name them
/// as the host does, or not at all.
bool may_be_hidden(const std::vector<Pid>& tree);

class Gpus {
 public:
  /// Null when there is no GPU, or none that can be asked.
  static std::unique_ptr<Gpus> open();
  ~Gpus();
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  /// Asks every device. `hidden` is asked only while no process of the tree was ever named by NVML.
  void look(const std::vector<Pid>& tree, bool (*hidden)(const std::vector<Pid>&) = may_be_hidden);
  const std::vector<Gpu>& devices() const { return devices_; }

 private:
  struct Library;
  explicit Gpus(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
  std::vector<Gpu> devices_;
  std::vector<bool> untold_;  // by device: at some look the driver did not tell what is the tree's
  bool named_ = false;        // a process of the tree was named: the numbers of processes are ours
  bool hidden_ = false;       // none was named so far, and at some look they may have been hidden
};

}  // namespace millpond::watch
