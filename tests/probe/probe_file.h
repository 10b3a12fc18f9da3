// Reads a .probe file (probe/shared.h) for tests: what is alive, by whom, and the records of its ring. The file is only
// mapped, so what is read changes while the process runs.
#pragma once
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "probe/shared.h"

class ProbeFile {
 public:
  explicit ProbeFile(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat info{};
    if (fd >= 0 && fstat(fd, &info) == 0 && uint64_t(info.st_size) == kSharedBytes) {
      // Past the C library, so that a patient that reads its own file does not count it among its mappings.
      auto* p =
          reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L));
      if (p != MAP_FAILED) base_ = static_cast<char*>(p);
    }
    if (fd >= 0) close(fd);
  }
  ~ProbeFile() {
    if (base_) munmap(base_, kSharedBytes);
  }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;

  bool is_there() const { return base_ && header().version == kProbeVersion; }
  Shared& header() const { return *reinterpret_cast<Shared*>(base_); }

  struct Sum {
    uint64_t bytes = 0, entries = 0;
    double blocks = 0;
  };
  template <class Wanted>
  Sum sum(Wanted wanted) const {
    Sum sum;
    const auto* slots = reinterpret_cast<const Live*>(base_ + kLiveAt);
    for (int i = 0; i < kLiveSlots; ++i) {
      Live entry = slots[i];
      if (entry.address <= 1 || !wanted(entry)) continue;
      sum.bytes += entry.bytes;
      sum.blocks += double(entry.blocks);
      ++sum.entries;
    }
    return sum;
  }
  Sum sum() const {
    return sum([](const Live&) { return true; });
  }
  std::vector<Live> live() const {
    std::vector<Live> all;
    sum([&](const Live& entry) {
      all.push_back(entry);
      return false;
    });
    return all;
  }
  const Stack& stack(uint32_t id) const { return reinterpret_cast<const Stack*>(base_ + kStacksAt)[id]; }
  const Frame* frames(uint32_t id) const { return reinterpret_cast<const Frame*>(base_ + kFramesAt) + stack(id).first; }

  struct Record {
    RecordHeader header;
    std::vector<char> bytes;  // all of it
    template <class T>
    const T& as() const {
      return *reinterpret_cast<const T*>(bytes.data());
    }
  };
  // All records that are there; with `take`, their room is given back.
  std::vector<Record> records(bool take = false) const {
    std::vector<Record> all;
    uint64_t at = header().read;
    const uint64_t end = __atomic_load_n(&header().write, __ATOMIC_ACQUIRE);
    while (at < end) {
      const char* place = base_ + kRingAt + at % kRingBytes;
      Record record;
      memcpy(&record.header.size, place, 4);
      memcpy(&record.header.kind, place + 4, 4);
      if (record.header.size == 0 || record.header.size % 8) break;
      if (record.header.kind != 0) {
        memcpy(&record.header, place, sizeof record.header);
        record.bytes.assign(place, place + record.header.size);
        all.push_back(record);
      }
      at += record.header.size;
    }
    if (take) __atomic_store_n(&header().read, at, __ATOMIC_RELEASE);
    return all;
  }

 private:
  char* base_ = nullptr;
};
