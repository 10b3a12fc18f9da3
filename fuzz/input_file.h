// InputFile: the bytes of one fuzzing input as a file with a name, in memory (/dev/shm: HDF5 asks for the real path,
// which a memfd has not).
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace millpond::fuzz {

/// Inputs that were good files. A target which never gets here tests nothing.
inline long accepted = 0;

class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size) : path_("/dev/shm/millpond-fuzz-" + std::to_string(getpid())) {
    const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != ssize_t(size)) std::abort();
    close(fd);
  }
  ~InputFile() {
    for (const char* part : {"", "-journal", "-wal", "-shm"}) unlink((path_ + part).c_str());  // of SQLite
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace millpond::fuzz
