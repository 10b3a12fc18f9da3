#include "io/plain_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::io {

PlainFile open_plain_file(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat s{};
  const int failed = fd < 0 || fstat(fd, &s) != 0 ? errno : 0;
  if (!failed && S_ISREG(s.st_mode)) return {fd, s.st_size};
  if (fd >= 0) close(fd);
  throw Error(Code::kFile, failed ? format("{} cannot be read: {}", file, std::strerror(failed))
                                  : format("{} is not a plain file", file))
      .with("file", file);
}

}  // namespace millpond::io
