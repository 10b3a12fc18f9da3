// Pool: where eager tensors' bytes come from and go back to. Blocks have sizes of their own (four to each doubling, so at
// most a fifth of a block is unused); small ones are cut from chunks of 64 KiB, a large one is a chunk by itself.
//
// What is idle stays for the next tensor, but at most `bound` bytes of whole chunks; a chunk that nobody has taken from
// for some thousand takings goes back to the backend, and trim() gives back all that are idle.
// Memory: the chunks, account eager/pool, and a list of free blocks for each. Any thread may call.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"

namespace millpond::eager {

class Pool {
 public:
  struct Chunk;
  /// Taken until it is given back.
  struct Block {
    std::byte* at = nullptr;
    Chunk* chunk = nullptr;
    int32_t number = 0;
  };

  Pool(const backend::Backend& backend, Bytes bound);
  ~Pool();
  /// Undefined bytes, 64-byte aligned; an address of the backend also where nothing is wanted. Throws Error(kMemory).
  Block take(Bytes size);
  void give(const Block& block);
  /// Gives every idle chunk back. Returns how many bytes that were.
  Bytes trim();
  void set_bound(Bytes bound);

  Bytes used() const;  // in blocks that are taken
  Bytes idle() const;  // the rest of all chunks
  Bytes bound() const;

 private:
  static constexpr int kClasses = 4 * 44;
  struct Class {
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::vector<Chunk*> with_room;  // the one that was given back to last stands last
  };
  static int class_of(Bytes size);
  static Bytes size_of_class(int number);
  Chunk& grow(int number);
  void drop(Chunk& chunk);
  void age();

  const backend::Backend& backend_;
  mutable std::mutex mutex_;
  std::array<Class, kClasses> classes_;
  Bytes bound_, used_, taken_, empty_;  // taken_: of all chunks; empty_: of those without a taken block
  uint64_t clock_ = 0;                  // takings so far
};

}  // namespace millpond::eager
