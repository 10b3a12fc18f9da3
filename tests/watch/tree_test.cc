// Mappings by kind of memory, and files in shared memory.
#include "watch/tree.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "base/temporary_folder.h"

using namespace millpond;
using namespace millpond::watch;

namespace {

constexpr const char* kSmaps =
    "1000-3000 r-xp 00000000 fe:00 11 /usr/lib/libm.so.6\nRss: 8 kB\nPss: 2 kB\nPrivate_Dirty: 0 kB\n"
    "3000-4000 rw-p 00002000 fe:00 11 /usr/lib/libm.so.6\nRss: 4 kB\nPss: 4 kB\nPrivate_Dirty: 4 kB\n"
    "5000-9000 r--s 00000000 fe:00 12 /data/train.bin\nRss: 16 kB\nPss: 16 kB\nPrivate_Dirty: 0 kB\n"
    "a000-b000 rw-p 00000000 00:00 0 [heap]\nRss: 4 kB\nPss: 4 kB\nPrivate_Dirty: 4 kB\n"
    "c000-d000 rw-p 00000000 00:00 0 \nRss: 4 kB\nPss: 4 kB\nPrivate_Dirty: 4 kB\n"
    "e000-f000 rw-s 00000000 00:01 5 /dev/zero (deleted)\nRss: 4 kB\nPss: 2 kB\nPrivate_Dirty: 0 kB\n"
    "10000-12000 rw-s 00000000 00:1c 6 /dev/shm/psm_1\nRss: 8 kB\nPss: 4 kB\nPrivate_Dirty: 0 kB\n"
    "13000-14000 rw-s 00000000 00:1c 7 /memfd:x (deleted)\nRss: 4 kB\nPss: 4 kB\nPrivate_Dirty: 4 kB\n"
    "15000-16000 rw-s 00000000 00:1c 8 /dev/shm/millpond-1/2.probe\nRss: 4 kB\nPss: 4 kB\nPrivate_Dirty: 4 kB\n"
    "17000-27000 rw-s 00000000 00:06 9 /dev/nvidia0\nRss: 0 kB\nPss: 0 kB\nPrivate_Dirty: 0 kB\n"
    "7ff000-7ff100 rw-p 00000000 00:00 0 [stack]\nRss: 4 kB\nPss: 4 kB\nPrivate_Dirty: 4 kB\n"
    "7ff200-7ff300 r-xp 00000000 00:00 0 [vdso]\nRss: 4 kB\nPss: 0 kB\nPrivate_Dirty: 0 kB\n";

runfile::MappingRow of(const std::vector<runfile::MappingRow>& rows, const std::string& kind) {
  for (const runfile::MappingRow& row : rows)
    if (row.kind == kind) return row;
  return {};
}

}  // namespace

TEST_CASE("tree: each mapping counts with its kind of memory, and our own files with none") {
  std::set<std::string> files;
  const std::vector<runfile::MappingRow> rows = mappings_by_kind(parse_mappings(kSmaps), "/dev/shm/millpond-1", files);
  CHECK(of(rows, "library").resident == Bytes{12 << 10});
  CHECK(of(rows, "library").private_ == Bytes{4 << 10});
  CHECK(of(rows, "file").resident == Bytes{16 << 10});
  CHECK(of(rows, "anonymous").resident == Bytes{8 << 10});
  CHECK(of(rows, "shared_anonymous").pss == Bytes{2 << 10});
  CHECK(of(rows, "shared_memory").resident == Bytes{12 << 10});
  CHECK(of(rows, "device").mapped == Bytes{64 << 10});
  CHECK(of(rows, "stack").resident == Bytes{4 << 10});
  CHECK(rows.size() == 7);
  CHECK(files.contains("/dev/shm/psm_1"));
  for (const runfile::MappingRow& row : rows)
    CHECK(std::ranges::any_of(runfile::kMappingKinds, [&](const char* kind) { return row.kind == kind; }));
}

TEST_CASE(
    "tree: files that were made since count with what they hold, those that somebody has mapped apart, and ours not at "
    "all") {
  const TemporaryFolder folder("tree test", TemporaryFolder::In::kFiles);
  const auto write = [&](const std::string& name, size_t size) {
    std::ofstream(folder.path() + "/" + name) << std::string(size, 'x');
  };
  write("mapped", 100'000);
  write("written", 200'000);
  REQUIRE(mkdir((folder.path() + "/ours").c_str(), 0700) == 0);
  write("ours/probe", 400'000);
  sync();
  const time_t before = time(nullptr) - 3600;
  const runfile::MappingRow row =
      shared_files_since(folder.path(), before, folder.path() + "/ours", {folder.path() + "/mapped"});
  CHECK(row.mapped == Bytes{300'000});
  CHECK(row.resident >= Bytes{300'000});
  CHECK(row.private_ >= Bytes{200'000});
  CHECK(row.private_ < Bytes{300'000});
  CHECK(shared_files_since(folder.path(), time(nullptr) + 3600, folder.path() + "/ours", {}).resident == Bytes{});
  CHECK(shared_files_since(folder.path() + "/nowhere", before, "", {}).resident == Bytes{});
}

TEST_CASE("tree: a file in shared memory that has lost its name is found by who has it open, once") {
  const TemporaryFolder folder("tree test", TemporaryFolder::In::kFiles);
  const std::string path = folder.path() + "/gone";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(file >= 0);
  const std::string text(300'000, 'x');
  REQUIRE(write(file, text.data(), text.size()) == ssize_t(text.size()));
  const int again = dup(file);
  NamelessFiles found;
  nameless_files(Pid{getpid()}, folder.path() + "/", found);
  CHECK(found.empty());  // it has its name
  REQUIRE(unlink(path.c_str()) == 0);
  fsync(file);
  nameless_files(Pid{getpid()}, folder.path() + "/", found);
  REQUIRE(found.size() == 1);
  CHECK(found.begin()->second.size == Bytes{300'000});
  CHECK(found.begin()->second.held >= Bytes{300'000});
  close(file);
  close(again);
  found.clear();
  nameless_files(Pid{getpid()}, folder.path() + "/", found);
  CHECK(found.empty());
}
