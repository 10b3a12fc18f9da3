// Memory: a range of a backend's memory, and the only way to it for everyone above backends. Copies and parts share it;
// with the last of them it goes back to where the backend took it from.
// Its address is for kernels alone: it may lie on a device, where the host cannot read it.
#pragma once
#include <cstddef>
#include <memory>

#include "millpond/bytes.h"

namespace millpond::backend {

class Backend;

class Memory {
 public:
  Memory() = default;
  /// For backends: `keeper` gives the bytes back when it goes.
  Memory(const Backend& backend, std::byte* at, Bytes size, std::shared_ptr<void> keeper)
      : backend_(&backend), at_(at), size_(size), keeper_(std::move(keeper)) {}

  explicit operator bool() const { return at_ != nullptr; }
  std::byte* address() const { return at_; }
  Bytes size() const { return size_; }
  /// Of memory that is there.
  const Backend& backend() const { return *backend_; }
  /// [from, from + size) of it.
  Memory part(Bytes from, Bytes size) const;

  /// The bytes as the host sees them; null where it cannot.
  std::byte* host() const;
  /// What keeps host() alive.
  const std::shared_ptr<void>& keeper() const { return keeper_; }
  /// All bytes of it, from and to the host. Each returns when it is done.
  void write(const void* from) const;
  void read(void* to) const;
  void zero() const;

 private:
  const Backend* backend_ = nullptr;
  std::byte* at_ = nullptr;
  Bytes size_;
  std::shared_ptr<void> keeper_;
};

}  // namespace millpond::backend
