// A folder of our own beside no one else's, which goes with its owner.
#pragma once
#include <string>

namespace millpond {

class TemporaryFolder {
 public:
  enum class In { kMemory, kFiles };  // in /dev/shm where that can be written, otherwise (or at once) in TMPDIR or /tmp
  /// `who` begins the error message: "watch", "--live". Throws Error(kFile).
  explicit TemporaryFolder(const char* who, In in = In::kMemory);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace millpond
