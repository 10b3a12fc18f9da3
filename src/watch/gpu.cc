#include "watch/gpu.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/format.h"

namespace millpond::watch {
namespace {

// ---- the little of NVML's interface that is used, by its documentation: no header of NVIDIA's is needed to build ----
constexpr int kSuccess = 0, kInsufficientSize = 7, kFunctionNotFound = 13;
using Device = void*;
struct DeviceMemory {
  unsigned long long total, free, used;
};
struct DeviceProcess {  // of _v2 and _v3; before them it was shorter
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long kNotAvailable = ~0ull;

constexpr unsigned kMostDevices = 64, kMostProcesses = 1 << 16, kFirstProcesses = 64;
// The first namespace of processes has the same number on every Linux: there, numbers of processes are the driver's
// own.
constexpr const char* kFirstNamespace = "pid:[4026531836]";

std::string target_of(const std::string& link) {
  char text[256];
  const ssize_t n = readlink(link.c_str(), text, sizeof text);
  return n > 0 ? std::string(text, size_t(n)) : std::string();
}

bool plausible(unsigned long long bytes) { return bytes >> 60 == 0; }

}  // namespace

bool may_be_hidden(const std::vector<Pid>& tree) {
  if (target_of("/proc/self/ns/pid") == kFirstNamespace) return false;
  for (const Pid pid : tree) {
    const std::string path = format("/proc/{}/fd", pid.value);
    DIR* folder = opendir(path.c_str());
    if (!folder && (errno == EACCES || errno == EPERM)) return true;
    if (!folder) continue;
    bool found = false;
    while (const dirent* entry = found ? nullptr : readdir(folder)) {
      const std::string file = target_of(path + "/" + entry->d_name);
      found = file.starts_with("/dev/nvidia") || file == "/dev/dxg";
    }
    closedir(folder);
    if (found) return true;
  }
  return false;
}

struct Gpus::Library {
  void* handle = nullptr;
  bool begun = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, DeviceMemory*) = nullptr;
  int (*processes)(Device, unsigned*, DeviceProcess*) = nullptr;         // null: the driver is too old to tell
  int (*processes_before)(Device, unsigned*, DeviceProcess*) = nullptr;  // what the same was called before
  std::vector<Device> devices;
  std::vector<DeviceProcess> list = std::vector<DeviceProcess>(kFirstProcesses);

  Library() {
    const char* other = getenv("MILLPOND_NVML");
    handle = dlopen(other && *other ? other : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    };
    find(init, "nvmlInit_v2"), find(shutdown, "nvmlShutdown"), find(count, "nvmlDeviceGetCount_v2"),
        find(device, "nvmlDeviceGetHandleByIndex_v2");
    find(name, "nvmlDeviceGetName"), find(memory, "nvmlDeviceGetMemoryInfo");
    find(processes, "nvmlDeviceGetComputeRunningProcesses_v3"),
        find(processes_before, "nvmlDeviceGetComputeRunningProcesses_v2");
    if (!processes) processes = processes_before;
    begun = init && shutdown && count && device && name && memory && init() == kSuccess;
  }
  ~Library() {
    if (begun) shutdown();
    if (handle) dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// How many of `list` are now the device's processes; absent: it does not tell.
  std::optional<size_t> ask_processes(Device d) {
    for (int tries = 0; processes && tries < 8; ++tries) {
      unsigned n = unsigned(list.size());
      const int code = processes(d, &n, list.data());
      if (code == kSuccess) return std::min(size_t(n), list.size());
      if (code == kFunctionNotFound && processes != processes_before) {
        processes = processes_before;
      } else if (code == kInsufficientSize && list.size() < kMostProcesses) {
        list.resize(std::min<size_t>(std::max<size_t>(n, list.size()) * 2, kMostProcesses));  // more may come meanwhile
      } else {
        return {};
      }
    }
    return {};
  }
};

std::unique_ptr<Gpus> Gpus::open() {
  auto library = std::make_unique<Library>();
  if (!library->begun) return nullptr;
  std::unique_ptr<Gpus> gpus(new Gpus(std::move(library)));
  return gpus->devices_.empty() ? nullptr : std::move(gpus);
}

Gpus::Gpus(std::unique_ptr<Library> library) : library_(std::move(library)) {
  unsigned n = 0;
  if (library_->count(&n) != kSuccess) return;
  for (unsigned i = 0; i < std::min(n, kMostDevices); ++i) {
    Device device = nullptr;
    char name[96] = {};
    // One that cannot be reached keeps its number and never answers.
    if (library_->device(i, &device) != kSuccess) device = nullptr;
    if (device && library_->name(device, name, sizeof name - 1) != kSuccess) name[0] = 0;
    library_->devices.push_back(device);
    devices_.push_back({.name = *name ? name : "GPU",
                        .answered = false,
                        .total = {},
                        .used = {},
                        .used_peak = {},
                        .by_tree = {},
                        .by_tree_peak = {}});
  }
  untold_.resize(devices_.size());
}
Gpus::~Gpus() = default;

void Gpus::look(const std::vector<Pid>& tree, bool (*hidden)(const std::vector<Pid>&)) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    Gpu& gpu = devices_[i];
    DeviceMemory memory{};
    const Device device = library_->devices[i];
    gpu.answered =
        device && library_->memory(device, &memory) == kSuccess && plausible(memory.total) && plausible(memory.used);
    if (!gpu.answered) continue;
    gpu.total = Bytes{int64_t(memory.total)};
    gpu.used = Bytes{int64_t(memory.used)};
    gpu.used_peak = std::max(gpu.used_peak, gpu.used);
    gpu.by_tree.reset();
    gpu.by_process.clear();
    const std::optional<size_t> n = library_->ask_processes(device);
    if (!n) continue;
    gpu.by_tree = Bytes{};
    for (size_t k = 0; k < *n; ++k) {
      const DeviceProcess& p = library_->list[k];
      if (std::ranges::find(tree, int(p.pid), &Pid::value) == tree.end()) continue;
      named_ = true;
      if (p.used == kNotAvailable || !plausible(p.used))
        gpu.by_tree.reset();
      else if (gpu.by_tree)
        *gpu.by_tree += Bytes{int64_t(p.used)}, gpu.by_process.emplace_back(Pid{int(p.pid)}, Bytes{int64_t(p.used)});
      if (!gpu.by_tree) break;
    }
  }
  // Nobody of the tree is named anywhere: nothing is used, or it is not told whose it is.
  const bool untold = !named_ && hidden(tree);
  hidden_ = (hidden_ || untold) && !named_;
  for (size_t i = 0; i < devices_.size(); ++i) {
    Gpu& gpu = devices_[i];
    if (!gpu.answered) continue;
    if (!gpu.by_tree) untold_[i] = true;
    if (untold) gpu.by_tree.reset();
    if (gpu.by_tree) gpu.by_tree_peak = std::max(gpu.by_tree_peak.value_or(Bytes{}), *gpu.by_tree);
    // 0 before the program came to the GPU says nothing of what it took there afterwards.
    if ((untold_[i] || hidden_) && gpu.by_tree_peak == Bytes{}) gpu.by_tree_peak.reset();
  }
}

}  // namespace millpond::watch
