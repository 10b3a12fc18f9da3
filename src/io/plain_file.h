// A file to read from: a plain one, never a pipe or a device that could hold us up.
#pragma once
#include <cstdint>
#include <string>

namespace millpond::io {

struct PlainFile {
  int fd = -1;  // the caller's to close
  int64_t size = 0;
};
/// Throws Error(kFile).
PlainFile open_plain_file(const std::string& file);

}  // namespace millpond::io
