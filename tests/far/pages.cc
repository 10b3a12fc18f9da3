#include "far/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#include "base/assert.h"
#include "base/format.h"
#include "base/segment.h"
#include "millpond/error.h"

namespace millpond::test {
namespace {
constexpr int64_t kAll = int64_t{64} << 30;  // addresses; pages come when they are written
}

Pages::Pages() : file_(memfd_create("far", MFD_CLOEXEC)) {
  MP_ASSERT(file_ >= 0 && ftruncate(file_, kAll) == 0);
  const auto map = [&](int protection) {
    void* p = mmap(nullptr, size_t(kAll), protection, MAP_SHARED | MAP_NORESERVE, file_, 0);
    MP_ASSERT(p != MAP_FAILED);
    return static_cast<std::byte*>(p);
  };
  far_ = map(PROT_NONE);
  near_ = map(PROT_READ | PROT_WRITE);
  free_[0] = kAll;
}

std::byte* Pages::take(Bytes size, const std::string& account) {
  const int64_t n = round_up(size, kPage).value;
  const std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [at, bytes] = *it;
    if (bytes < n) continue;
    free_.erase(it);
    if (bytes > n) free_[at + n] = bytes - n;
    return far_ + at;
  }
  throw Error(Code::kMemory, format("{} asked for {}, and the far backend has no room", size, account));
}

void Pages::give_back(std::byte* at, Bytes size) {
  int64_t from = at - far_, n = round_up(size, kPage).value;
  const std::lock_guard lock(mutex_);
  MP_ASSERT(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, n) == 0);  // zeros again
  auto after = free_.lower_bound(from);
  if (after != free_.end() && after->first == from + n) {
    n += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin())
    if (const auto before = std::prev(after); before->first + before->second == from) {
      before->second += n;
      return;
    }
  free_[from] = n;
}

std::byte* Pages::reach(std::byte* far) const {
  MP_ASSERT(far >= far_ && far <= far_ + kAll);
  return near_ + (far - far_);
}

}  // namespace millpond::test
