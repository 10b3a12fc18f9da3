// A library with NVML's names whose answers stand in a file, MILLPOND_FAKE_NVML, read anew at every call. Lines:
//
//   init CODE                  what nvmlInit says (0 without the line)
//   device TOTAL USED NAME     devices, in order; USED "-": it does not answer
//   process DEVICE PID BYTES   in any order; BYTES "-": not available
//   processes CODE             what listing processes says
//   v3 CODE                    what the newest way to list them says
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalid = 2, kInsufficientSize = 7, kLost = 15;

struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct Device {
  unsigned long long total = 0, used = 0;
  bool answers = true;
  std::string name;
  std::vector<ProcessInfo> processes;
};
struct Answers {
  int init = 0, processes = 0, v3 = 0;
  std::vector<Device> devices;
};

Answers answers() {
  Answers all;
  const char* path = std::getenv("MILLPOND_FAKE_NVML");
  std::ifstream file(path ? path : "");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, amount;
    words >> kind;
    if (kind == "init") words >> all.init;
    if (kind == "processes") words >> all.processes;
    if (kind == "v3") words >> all.v3;
    if (kind == "device") {
      Device d;
      words >> d.total >> amount >> std::ws;
      d.answers = amount != "-";
      d.used = std::strtoull(amount.c_str(), nullptr, 10);
      std::getline(words, d.name);
      all.devices.push_back(d);
    }
    if (kind == "process") {
      size_t at = 0;
      unsigned pid = 0;
      words >> at >> pid >> amount;
      if (at < all.devices.size())
        all.devices[at].processes.push_back(
            {pid, amount == "-" ? ~0ull : std::strtoull(amount.c_str(), nullptr, 10), ~0u, ~0u});
    }
  }
  return all;
}

/// A handle is the number of the device and one.
const Device* find(const Answers& all, void* handle) {
  const size_t at = reinterpret_cast<size_t>(handle) - 1;
  return at < all.devices.size() ? &all.devices[at] : nullptr;
}

int list(const Answers& all, void* handle, unsigned* count, ProcessInfo* infos) {
  const Device* d = find(all, handle);
  if (!d) return kInvalid;
  if (all.processes) return all.processes;
  const bool fits = d->processes.size() <= *count;
  *count = unsigned(d->processes.size());
  if (!fits) return kInsufficientSize;
  for (size_t i = 0; i < d->processes.size(); ++i) infos[i] = d->processes[i];
  return kSuccess;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) int

FAKE nvmlInit_v2();
FAKE nvmlShutdown();
FAKE nvmlDeviceGetCount_v2(unsigned* count);
FAKE nvmlDeviceGetHandleByIndex_v2(unsigned at, void** handle);
FAKE nvmlDeviceGetName(void* handle, char* name, unsigned length);
FAKE nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* memory);
FAKE nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count, ProcessInfo* infos);
FAKE nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, ProcessInfo* infos);

int nvmlInit_v2() { return answers().init; }
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = unsigned(answers().devices.size());
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned at, void** handle) {
  *handle = reinterpret_cast<void*>(size_t{at} + 1);
  return kSuccess;
}
int nvmlDeviceGetName(void* handle, char* name, unsigned length) {
  const Answers all = answers();
  const Device* d = find(all, handle);
  if (!d) return kInvalid;
  if (d->name.size() >= length) return kInsufficientSize;
  std::memcpy(name, d->name.c_str(), d->name.size() + 1);
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* memory) {
  const Answers all = answers();
  const Device* d = find(all, handle);
  if (!d) return kInvalid;
  if (!d->answers) return kLost;
  memory[0] = d->total, memory[1] = d->total - d->used, memory[2] = d->used;
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count, ProcessInfo* infos) {
  return list(answers(), handle, count, infos);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, ProcessInfo* infos) {
  const Answers all = answers();
  return all.v3 ? all.v3 : list(all, handle, count, infos);
}
