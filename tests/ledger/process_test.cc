#include "base/process.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/format.h"

using namespace millpond;
namespace fs = std::filesystem;

namespace {

// A folder that stands for / and goes when the test ends.
struct FakeRoot {
  std::string path;
  FakeRoot() {
    char name[] = "/tmp/millpond_root_XXXXXX";
    path = mkdtemp(name);
    file("/proc/meminfo", "MemTotal:       32000000 kB\nMemFree:         1000000 kB\nMemAvailable:   16777216 kB\n");
  }
  ~FakeRoot() { fs::remove_all(path); }
  void file(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path + name).parent_path());
    std::ofstream(path + name) << text;
  }
};

Bytes sum(const std::vector<Mapping>& list) {
  Bytes total;
  for (const Mapping& m : list) total += m.resident;
  return total;
}

Bytes of_kind(const std::vector<Mapping>& list, MappingKind kind) {
  Bytes total;
  for (const Mapping& m : list)
    if (m.kind == kind) total += m.resident;
  return total;
}

}  // namespace

TEST_CASE("parse_mappings: tells files, heap, stacks, JIT code and anonymous memory apart") {
  const std::string smaps =
      "5628f14f3000-5628f14f6000 r-xp 00000000 fe:00 247741                     /usr/bin/my program\n"
      "Size:                 12 kB\nRss:                  8 kB\nPss:                  4 kB\nPrivate_Dirty:         0 "
      "kB\nSwap:   0 kB\n"
      "VmFlags: rd mr mw me \n"
      "5628f2000000-5628f2021000 rw-p 00000000 00:00 0                          [heap]\nRss:                 100 "
      "kB\nPrivate_Dirty:   96 kB\n"
      "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \nRss:                   4 kB\n"
      "7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \nRss:                   4 kB\nSwap:    8 kB\n"
      "7f0000004000-7f0000005000 rw-s 00000000 00:01 77                         /memfd:ring (deleted)\nRss:  4 kB\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\nRss:                  16 kB\n"
      "7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                          [vdso]\nRss:                   4 kB\n";
  const std::vector<Mapping> list = parse_mappings(smaps);
  REQUIRE(list.size() == 7);
  CHECK(list[0].name == "/usr/bin/my program");
  CHECK(list[0].kind == MappingKind::kFile);
  CHECK(list[0].resident == 8_KiB);
  CHECK(list[0].pss == 4_KiB);
  CHECK(list[0].end - list[0].begin == 0x3000);
  CHECK(list[1].kind == MappingKind::kHeap);
  CHECK(list[1].private_dirty == 96_KiB);
  CHECK(list[2].kind == MappingKind::kCode);
  CHECK(list[3].kind == MappingKind::kAnonymous);
  CHECK(list[3].swap == 8_KiB);
  CHECK(list[4].kind == MappingKind::kFile);
  CHECK(list[5].kind == MappingKind::kStack);
  CHECK(list[6].kind == MappingKind::kKernel);
  const std::vector<MappingGroup> groups = grouped(list);
  CHECK(groups[0].name == "heap");
  CHECK(groups[1].name == "stack");
}

TEST_CASE("parse_mappings: text that is no smaps gives no mapping, and does not fail") {
  CHECK(parse_mappings("").empty());
  CHECK(parse_mappings("Rss: 4 kB\n\nhello\n-\n12-\nzz-yy rw-p\n").empty());
}

TEST_CASE("parse_totals: reads status and the rollup, and leaves absent what is not there") {
  const MemoryTotals t = parse_totals("VmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nRssAnon:\t 512 kB\nThreads:\t3\n",
                                      "Rss: 1024 kB\nPss:  700 kB\n");
  CHECK(t.peak == 2_MiB);
  CHECK(t.resident == 1_MiB);
  CHECK(t.anonymous == 512_KiB);
  CHECK(t.threads == 3);
  CHECK(*t.pss == 700_KiB);
  CHECK_FALSE(t.private_dirty.has_value());
}

TEST_CASE("mappings: their sum is the resident size, within what changes while reading") {
  const Bytes total = sum(mappings());
  REQUIRE(resident().has_value());
  CHECK(std::abs(total.mib() - resident()->mib()) < 1.0);
  REQUIRE(totals().has_value());
  CHECK(totals()->peak >= 1_MiB);
  CHECK(totals()->pss.value_or(1_B) > 0_B);
  CHECK(of_kind(mappings(), MappingKind::kFile) > 500_KiB);
  CHECK(of_kind(mappings(), MappingKind::kStack) > 0_B);
}

TEST_CASE("mappings: the stack of a waiting thread is known for what it is") {
  std::mutex m;
  std::condition_variable wake;
  bool deep = false, done = false;
  std::thread thread([&] {
    char block[512 * 1024];
    std::memset(block, 1, sizeof block);
    asm volatile("" : : "r"(block) : "memory");
    std::unique_lock guard(m);
    deep = true;
    wake.notify_all();
    wake.wait(guard, [&] { return done; });
  });
  {
    std::unique_lock guard(m);
    wake.wait(guard, [&] { return deep; });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(of_kind(mappings(), MappingKind::kThreadStack) >= 512_KiB);
  {
    const std::lock_guard guard(m);
    done = true;
  }
  wake.notify_all();
  thread.join();
}

TEST_CASE("resident, totals and mappings: another process can be read too, and one that is gone is absent") {
  int ready[2], stop[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(stop) == 0);
  const pid_t child = fork();
  if (child == 0) {
    void* block = mmap(nullptr, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(block, 1, 32 << 20);
    char c = 'r';
    _exit(write(ready[1], &c, 1) == 1 && read(stop[0], &c, 1) == 1 ? 0 : 1);
  }
  char c = 0;
  REQUIRE(read(ready[0], &c, 1) == 1);
  const Pid pid{child};
  CHECK(resident(pid).value_or(0_B) > 32_MiB);
  CHECK(totals(pid).value_or(MemoryTotals{}).private_dirty.value_or(0_B) >= 32_MiB);
  CHECK(of_kind(mappings(pid), MappingKind::kAnonymous) >= 32_MiB);
  REQUIRE(write(stop[1], &c, 1) == 1);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_FALSE(resident(pid).has_value());
  CHECK_FALSE(totals(pid).has_value());
  CHECK(mappings(pid).empty());
  for (int fd : {ready[0], ready[1], stop[0], stop[1]}) close(fd);
}

TEST_CASE("resident_in: counts the pages that were touched, and parts of pages as parts") {
  auto* block = static_cast<char*>(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(block, 1 << 20, MADV_NOHUGEPAGE);
  CHECK(resident_in(block, 1_MiB) == 0_B);
  block[4096 * 3] = 1;
  block[4096 * 10] = 1;
  CHECK(resident_in(block, 1_MiB) == 8_KiB);
  CHECK(resident_in(block + 4096 * 3 + 100, 8_KiB) == Bytes{4096 - 100});
  CHECK(resident_in(block, 0_B) == 0_B);
  munmap(block, 1 << 20);
}

TEST_CASE("heap_state: free bytes grow when a block is given back, and are no more than was taken") {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 200; ++i)
    blocks.push_back(std::make_unique<char[]>(50'000)), std::memset(blocks.back().get(), 1, 50'000);
  const HeapState before = heap_state();
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  const HeapState after = heap_state();
  CHECK(after.free_resident <= after.free);
  CHECK(after.in_use + after.free == after.taken);
  if (after.taken == 0_B) return;  // a sanitizer's allocator, which does not tell
  CHECK(after.free - before.free >= 4'900'000_B);
}

TEST_CASE("memory_free_now: without control groups the machine decides") {
  const FakeRoot root;
  const FreeMemory f = memory_free_now(root.path);
  CHECK(f.bytes == 16_GiB);
  CHECK(f.limited_by == "machine");
  CHECK_FALSE(f.cgroup.has_value());
}

TEST_CASE("memory_free_now: in version 2 the tightest of a group and its parents decides; file pages count as free") {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/user/job\n");
  root.file("/sys/fs/cgroup/user/memory.max", "4294967296\n");
  root.file("/sys/fs/cgroup/user/memory.current", "3221225472\n");
  root.file("/sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file 536870912\n");
  root.file("/sys/fs/cgroup/user/job/memory.max", "max\n");
  root.file("/sys/fs/cgroup/user/job/memory.current", "1073741824\n");
  const FreeMemory f = memory_free_now(root.path);
  CHECK(f.bytes == 1_GiB + 512_MiB);
  CHECK(f.limited_by == "cgroup /user");
}

TEST_CASE("memory_free_now: version 1 is read too, and its 'no limit' is none") {
  FakeRoot root;
  root.file("/proc/self/cgroup", "5:devices:/\n4:cpu,memory:/job\n0::/\n");
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  CHECK(memory_free_now(root.path).limited_by == "machine");
  root.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  root.file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
  const FreeMemory f = memory_free_now(root.path);
  CHECK(f.bytes == 0_B);
  CHECK(f.limited_by == "cgroup /job");
}

TEST_CASE("memory_free_now: in a container that sees the host's path, the limit at the mount counts") {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/docker/0123\n");
  root.file("/sys/fs/cgroup/memory.max", "2147483648\n");
  root.file("/sys/fs/cgroup/memory.current", "1073741824\n");
  CHECK(memory_free_now(root.path).bytes == 1_GiB);
}

TEST_CASE("memory_free_now: says something about this machine") {
  const FreeMemory f = memory_free_now();
  CHECK(f.bytes > 0_B);
  CHECK_FALSE(f.limited_by.empty());
}
