#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::io {

namespace {
std::string folder_of(const std::string& file) {
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
}
}  // namespace

AtomicFile::AtomicFile(const std::string& target) : target_(target) {
  // Through a link to the file that is meant: renaming over the link would leave the old file where it is.
  char real[PATH_MAX];
  if (realpath(target.c_str(), real)) target_ = real;
  struct stat s{};
  const bool exists = stat(target_.c_str(), &s) == 0;
  if (exists && !S_ISREG(s.st_mode))
    throw Error(Code::kFile, format("{} is not a plain file and will not be replaced", target_))
        .hint("give the name of a file");
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; fd_ < 0; ++attempt) {
    path_ = format("{}.{}.{}.tmp", target_, getpid(), counter.fetch_add(1));
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && (errno != EEXIST || attempt == 100)) {
      const int why = errno;
      throw Error(Code::kFile, format("{} cannot be written: {}", target_, std::strerror(why)))
          .hint(format("does the folder {} exist, and may you write there?", folder_of(target_)));
    }
  }
  if (exists) (void)!fchmod(fd_, s.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(path_.c_str());
}

void AtomicFile::fail(const char* what) const {
  const int why = errno;
  Error e(Code::kFile, format("{} could not be written: {} failed: {}", target_, what, std::strerror(why)));
  e.hint(why == ENOSPC || why == EDQUOT ? "make room on the disk" : "the old file, if there was one, is untouched");
  throw e;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    bytes = bytes.subspan(size_t(n));
  }
}

void AtomicFile::commit() {
  if (fsync(fd_) != 0) fail("fsync");
  if (rename(path_.c_str(), target_.c_str()) != 0) fail("rename");
  close(fd_);
  fd_ = -1;
  // The rename itself is on disk once its folder is; a file system that cannot do that still has the file whole.
  const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  (void)!fsync(folder);
  close(folder);
}

}  // namespace millpond::io
