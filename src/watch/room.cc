#include "watch/room.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/format.h"
#include "millpond/error.h"
#include "probe/shared.h"

namespace millpond::watch {
namespace {

namespace fs = std::filesystem;
constexpr const char* kBegin = "millpond-";
constexpr const char* kUnlocked = ".millpond-";  // made, and not locked yet
constexpr time_t kUnlockedLongest = 60;          // seconds between the two
constexpr uint64_t kOwnPage = 4096;              // of the file "room"

// When a process began, in ticks since the machine did: with its number it names a process for good. 0: there is none.
uint64_t start_of(int pid) {
  FILE* file = std::fopen(format("/proc/{}/stat", pid).c_str(), "re");
  if (!file) return 0;
  char line[1024];
  const size_t got = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  line[got] = 0;
  const char* at = std::strrchr(line, ')');  // the name before it may hold anything
  for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at + 1, nullptr, 10) : 0;
}

// The watcher's number and start out of the name of its folder.
bool parse(const std::string& name, int& pid, uint64_t& start) {
  unsigned long long started = 0;
  char rest = 0;
  if (std::sscanf(name.c_str(), "millpond-%d-%llu-%c", &pid, &started, &rest) != 3 || pid <= 0) return false;
  start = started;
  return true;
}

bool is_left(const std::string& name, const struct stat& facts) {
  if (name.starts_with(kUnlocked)) return time(nullptr) - facts.st_mtime > kUnlockedLongest;
  int pid = 0;
  uint64_t start = 0;
  return parse(name, pid, start) && start_of(pid) != start;
}

// Only plain files that are ours go, and nothing is followed: the folder is in a place where others write too.
void remove_folder(int place, const std::string& name, int folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(format("/proc/self/fd/{}", folder), error))
    unlinkat(folder, entry.path().filename().c_str(), 0);
  unlinkat(place, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

int sweep(const std::string& place) {
  const int at = open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return 0;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kBegin) || name.starts_with(kUnlocked)) names.push_back(name);
  }
  int removed = 0;
  for (const std::string& name : names) {
    const int folder = openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) continue;
    struct stat facts{};
    // The lock falls with its watcher, whatever ended it, and holds in other containers too, where its number says
    // nothing.
    if (fstat(folder, &facts) == 0 && facts.st_uid == geteuid() && is_left(name, facts) &&
        flock(folder, LOCK_EX | LOCK_NB) == 0)
      remove_folder(at, name, folder), ++removed;
    close(folder);
  }
  close(at);
  return removed;
}

Bytes held_in(const std::string& folder) {
  int64_t blocks = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct stat facts{};
    if (lstat(entry.path().c_str(), &facts) == 0) blocks += facts.st_blocks;
  }
  return Bytes{blocks * 512};
}

Room::Room() {
  const char* asked = getenv("TMPDIR");
  const std::vector<std::string> places = {"/dev/shm", asked && *asked ? asked : "/tmp"};
  for (const std::string& place : places) {
    sweep(place);
    std::string first = place + "/" + kUnlocked + "XXXXXX";
    if (!mkdtemp(first.data())) continue;
    folder_ = open(first.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    path_ = format("{}/{}{}-{}-{}", place, kBegin, getpid(), start_of(getpid()), first.substr(first.size() - 6));
    if (folder_ >= 0 && flock(folder_, LOCK_EX | LOCK_NB) == 0 && rename(first.c_str(), path_.c_str()) == 0) break;
    if (folder_ >= 0) close(folder_);
    folder_ = -1;
    rmdir(first.c_str());
  }
  if (folder_ < 0)
    throw Error(Code::kFile, format("watch: the folder for temporary files ({}) cannot be written", places.back()))
        .hint("set TMPDIR to a folder that can");
  file_ = openat(folder_, "room", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  // A full file system: then the file stays empty, and nobody who finds no room in it for one page would find it for
  // another.
  if (file_ >= 0 && posix_fallocate(file_, 0, kOwnPage) == 0)
    look(Bytes{});
  else if (file_ >= 0)
    close(file_), file_ = -1;
}

Room::~Room() {
  if (file_ >= 0) close(file_);
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  close(folder_);
}

void Room::look(Bytes held) {
  struct statfs facts{};
  ::Room now{};
  if (file_ < 0 || fstatfs(file_, &facts) != 0 || pread(file_, &now, sizeof now, 0) != sizeof now) return;
  const uint64_t free = uint64_t(facts.f_bavail) * uint64_t(facts.f_bsize) + uint64_t(std::max<int64_t>(held.value, 0));
  const uint64_t most = free / 4 > kOwnPage ? free / 4 - kOwnPage : 0;
  // Each of the two has its part of it, as both may be taken up before anybody looks again.
  const uint64_t part = std::min<uint64_t>(kPool, most / 4);
  const auto in_use = [](uint64_t taken, uint64_t gave_back) { return taken > gave_back ? taken - gave_back : 0; };
  const uint64_t promised = in_use(now.taken, gave_back_), pool = in_use(now.pool_taken, pool_gave_back_);
  const uint64_t limit = gave_back_ + (most > pool ? most - std::max(part, pool) : 0);
  const uint64_t pool_limit = pool_gave_back_ + std::min<uint64_t>(part, most > promised ? most - promised : 0);
  (void)!pwrite(file_, &limit, sizeof limit, offsetof(::Room, limit));
  (void)!pwrite(file_, &pool_limit, sizeof pool_limit, offsetof(::Room, pool_limit));
}

void Room::gave_back(uint64_t from_pool) {
  gave_back_ += kPromised;
  pool_gave_back_ += std::min<uint64_t>(from_pool, kPool);
}

Room::Unseen Room::unseen() const {
  ::Room now{};
  if (file_ < 0) return {.no_room = 1};  // not even for ours
  if (pread(file_, &now, sizeof now, 0) != sizeof now) return {};
  return {now.refused, now.without_descriptor, now.unopened, now.sanitized, int(now.unopened_error)};
}

}  // namespace millpond::watch
