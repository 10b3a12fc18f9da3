// Segment: a range of address space of its own, from mmap. Reserved, not touched: it costs no memory until it is
// written, then page by page, never more than its size; destroying it gives every page back to the operating system.
//
//    data()                                      data() + size()
//    |  whole 2 MiB pages: huge pages | the rest: 4 KiB pages |  guard page (only with MILLPOND_CHECKS)
//
// Huge pages only where a whole one fits: one that reached past the end would be resident and belong to nobody.
// A segment of 2 MiB or more begins on a 2 MiB boundary. Memory is zero until written.
//
// Holding: the record of who has what. Every segment, and every small tensor, has one for as long as it lives, so the
// sum over each_holding is what is taken now; nothing has to be given back by hand. Costs the account's name and 64
// bytes.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "millpond/bytes.h"

namespace millpond {

inline constexpr Bytes kPage{4096};
inline constexpr Bytes kHugePage{2 << 20};

class Holding {
 public:
  Holding() = default;
  /// `begin`: where the bytes lie, if they are one range; only its address is used.
  Holding(std::string account, Bytes bytes, const void* begin = nullptr);
  ~Holding();
  Holding(Holding&& o) noexcept;
  Holding& operator=(Holding&& o) noexcept;

  const std::string& account() const { return account_; }
  Bytes bytes() const { return Bytes{bytes_.load(std::memory_order_relaxed)}; }
  /// For one who takes and gives back all the time: no lock. Threads may call it at once.
  void add(Bytes change) { bytes_.fetch_add(change.value, std::memory_order_relaxed); }

 private:
  friend void each_holding_at(const std::function<void(const std::string&, const void*, Bytes)>&);
  void link();
  bool unlink();  // was it in the list?
  std::string account_;
  std::atomic<int64_t> bytes_{0};
  const void* begin_ = nullptr;
  Holding* before_ = nullptr;  // neighbours in the list of all, under its lock; null while not in it
  Holding* after_ = nullptr;
};

/// Calls f(account, bytes) for each holding of this process, in no order. `f` must not make or drop a holding.
void each_holding(const std::function<void(const std::string& account, Bytes bytes)>& f);
/// The same with where it lies; null: not one range.
void each_holding_at(const std::function<void(const std::string& account, const void* begin, Bytes bytes)>& f);

class Segment {
 public:
  Segment() = default;
  /// Reserves `size`, rounded up to pages, for `account`. A size of 0 reserves nothing and data() is null.
  /// Throws Error(kMemory) with the asked and the free sizes when the system refuses.
  Segment(Bytes size, std::string account);
  ~Segment();
  Segment(Segment&& o) noexcept;
  Segment& operator=(Segment&& o) noexcept;

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }  // whole pages
  const std::string& account() const { return holding_.account(); }

  /// Bytes of it that are resident now (mincore). Costs no memory; about 1 ms for each GiB of size.
  Bytes touched() const;
  /// Gives the pages of [from, from + size) back, keeping the addresses; they read as zero again. Whole pages inside
  /// only.
  void forget(Bytes from, Bytes size);
  void forget() { forget(Bytes{0}, size_); }

 private:
  std::byte* data_ = nullptr;
  Bytes size_;
  Holding holding_;
};

}  // namespace millpond
