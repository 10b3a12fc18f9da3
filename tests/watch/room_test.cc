#include "watch/room.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "probe/shared.h"
#include "watch/binary.h"

using namespace millpond;
using namespace millpond::watch;
namespace fs = std::filesystem;

namespace {

::Room limits(const watch::Room& room) {
  ::Room r{};
  std::ifstream(room.path() + "/room", std::ios::binary).read(reinterpret_cast<char*>(&r), sizeof r);
  return r;
}

}  // namespace

TEST_CASE("sweep: what a watcher that is gone left is removed, what is locked, alive, young or of another kind stays") {
  char name[] = "/tmp/millpond_sweep_XXXXXX";
  REQUIRE(mkdtemp(name));
  const std::string place = name;
  const auto make = [&](const std::string& folder) {
    fs::create_directory(place + "/" + folder);
    std::ofstream(place + "/" + folder + "/1.probe") << "x";
    return place + "/" + folder;
  };
  const std::string gone = make("millpond-999999999-5-aaaaaa"), locked = make("millpond-999999999-5-bbbbbb"),
                    other = make("millpond-somebody"), young = make(".millpond-cccccc"),
                    self = make(format("millpond-{}-1-dddddd", getpid()));
  const int fd = open(locked.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(flock(fd, LOCK_EX) == 0);
  fs::create_directory_symlink(other, place + "/millpond-999999999-5-eeeeee");
  CHECK(sweep(place) == 2);  // and the one whose number is ours, but whose start is another process's
  CHECK_FALSE(fs::exists(gone));
  CHECK_FALSE(fs::exists(self));
  for (const std::string& stays : {locked, other, young}) CHECK(fs::exists(stays + "/1.probe"));
  close(fd);
  CHECK(sweep(place) == 1);
  fs::remove_all(place);
}

TEST_CASE("Room: never more than a quarter of what is free, and what ended processes gave back can be taken again") {
  watch::Room room;
  CHECK(fs::exists(room.path()));
  CHECK(sweep(fs::path(room.path()).parent_path().string()) >= 0);
  CHECK(fs::exists(room.path()));  // its watcher lives
  const ::Room before = limits(room);
  CHECK(before.limit + before.pool_limit <=
        uint64_t(fs::space(room.path()).available) / 4 + (1 << 20));  // together: nobody may look between two that take
  CHECK(before.pool_limit <= kPool);
  CHECK(4096 + before.pool_limit + 8 * kPromised <= 8 << 20);
  room.gave_back(3 << 14);
  room.look(Bytes{});
  const ::Room after = limits(room);
  CHECK(after.pool_limit == before.pool_limit + (3 << 14));
  CHECK(after.limit > before.limit);
  CHECK(room.unseen().all() == 0);
}

TEST_CASE("read_binary: a dynamic program, a script and nothing at all are none that must come first") {
  CHECK_FALSE(read_binary("/bin/sh").is_static);
  CHECK(read_binary("/bin/sh").sanitizer.empty());
  CHECK_FALSE(read_binary("/no/such/file").is_static);
  char name[] = "/tmp/millpond_binary_XXXXXX";
  const int fd = mkstemp(name);
  REQUIRE(write(fd, "#!/bin/sh\n", 10) == 10);
  close(fd);
  CHECK_FALSE(read_binary(name).is_static);
  unlink(name);
}

TEST_CASE("preloaded_sanitizer: by its name wherever it lies, and no library that is not one") {
  CHECK(preloaded_sanitizer("", "").empty());
  CHECK(
      preloaded_sanitizer("libm.so.6:/no/such/library.so /lib/x86_64-linux-gnu/libc.so.6", "/no/such/folder").empty());
  CHECK(preloaded_sanitizer("libm.so.6 /opt/gcc/lib64/libasan.so.8", "") == "address sanitizer");
  CHECK(preloaded_sanitizer("libclang_rt.tsan-x86_64.so", "") == "thread sanitizer");
}
