// AtomicFile: a file that appears under its name whole or not at all. It is written beside the target under another
// name; commit() brings it to disk (fsync) and renames it. Without commit the destructor removes it. Costs one
// descriptor.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace millpond::io {

class AtomicFile {
 public:
  /// Throws Error(kFile) when the folder cannot be written or the target exists and is not a plain file.
  explicit AtomicFile(const std::string& target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Where to write: the file exists, is empty, and belongs to this object.
  const std::string& path() const { return path_; }
  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string target_, path_;
  int fd_ = -1;
};

}  // namespace millpond::io
