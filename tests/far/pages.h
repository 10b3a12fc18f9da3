// Pages: the memory of the far backend: one memfd, mapped twice, given out in whole pages.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "millpond/bytes.h"

namespace millpond::test {

class Pages {
 public:
  Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// An address that nobody may follow; its bytes are zero. Throws Error(kMemory).
  std::byte* take(Bytes size, const std::string& account);
  void give_back(std::byte* at, Bytes size);
  /// The same byte where it can be read and written.
  std::byte* reach(std::byte* far) const;
  const std::byte* reach(const std::byte* far) const { return reach(const_cast<std::byte*>(far)); }

 private:
  int file_ = -1;
  std::byte* far_ = nullptr;
  std::byte* near_ = nullptr;
  std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // where, how many bytes
};

}  // namespace millpond::test
