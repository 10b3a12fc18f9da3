// What lies where in the memory of the process, for a look at all of its words: for any word, address or not, whether a
// region or a block of ours lies near it is told by two loads. Memory is cut into pieces of 64 KiB; each one that a
// region or a block touches has a number, under which stands where a search in the sorted lists of both begins, and a
// bit for each place where a block of the C library may begin.
//
//   word ──▶ top (one entry a GiB) ──▶ leaf (one entry a piece) ──▶ number of the piece, 0: nothing there
//
// Costs 64 KiB for each GiB of addresses that is used, and half a KiB for each piece that was pointed to.
#pragma once
#include <algorithm>

#include "probe/pages.h"

namespace millpond::probe {

class Pieces {
 public:
  static constexpr uint32_t kNothing = 0;
  struct Piece {
    uint32_t region, block;  // where a search begins: the last one that begins before the piece or at its begin and
                             // reaches into it, otherwise the first in it
    bool has_region, has_block;
  };

  // How many pieces a range touches.
  static size_t touched(uint64_t begin, uint64_t end) {
    return end > begin ? ((end - 1) >> kPieceBits) - (begin >> kPieceBits) + 1 : 0;
  }

  // most: pieces at most. False: there is no memory for it.
  bool start(size_t most) {
    return top_.take(kTops) && leaves_.take(kLeaves * kInLeaf) && pieces_.take(most + 1) &&
           seen_.take((most + 1) * kWordsSeen);
  }

  void add_region(uint64_t begin, uint64_t end, uint32_t number) {
    each(begin, end, [&](Piece& piece, bool first_here) {
      if (first_here || !piece.has_region) piece.region = number;
      piece.has_region = true;
    });
  }
  void add_block(uint64_t begin, uint64_t end, uint32_t number) {
    each(begin, end, [&](Piece& piece, bool first_here) {
      if (first_here || !piece.has_block) piece.block = number;
      piece.has_block = true;
    });
  }

  // The number of the piece that an address lies in.
  uint32_t of(uint64_t address) const {
    if (address >> kAddressBits) return kNothing;
    const uint32_t leaf = top_[address >> kLeafBits];
    return leaf ? leaves_[(leaf - 1) * kInLeaf + (address >> kPieceBits) % kInLeaf] : kNothing;
  }
  const Piece& operator[](uint32_t number) const { return pieces_[number]; }

  // Whether this is the first time that the address, a multiple of 16, is asked for.
  bool is_new(uint32_t number, uint64_t address) {
    const uint64_t place = address % kPieceSize / 16;
    uint64_t& word = seen_[number * kWordsSeen + place / 64];
    const uint64_t bit = uint64_t{1} << place % 64;
    if (word & bit) return false;
    word |= bit;
    return true;
  }
  // There were more pieces than room for them: what was not added would look as if nothing pointed to it.
  bool is_full() const { return full_; }

 private:
  static constexpr int kAddressBits = 47, kLeafBits = 30, kPieceBits = 16;
  static constexpr uint64_t kPieceSize = uint64_t{1} << kPieceBits;
  static constexpr size_t kTops = size_t{1} << (kAddressBits - kLeafBits),
                          kInLeaf = size_t{1} << (kLeafBits - kPieceBits), kLeaves = 1024;
  static constexpr size_t kWordsSeen = kPieceSize / 16 / 64;

  template <class Add>
  void each(uint64_t begin, uint64_t end, Add add) {
    end = std::min(end, uint64_t{1} << kAddressBits);
    for (uint64_t at = begin & ~(kPieceSize - 1); at < end; at += kPieceSize) {
      const uint32_t number = make(at);
      if (number == kNothing) return;
      // Of several that begin in one piece, the first stands there; what begins before the piece or at its begin takes
      // its place.
      add(pieces_[number], begin <= at);
    }
  }
  uint32_t make(uint64_t address) {
    uint32_t& leaf = top_[address >> kLeafBits];
    if (!leaf) {
      if (leaf_count_ == kLeaves) return full_ = true, kNothing;
      leaf = uint32_t(++leaf_count_);
    }
    uint32_t& number = leaves_[(leaf - 1) * kInLeaf + (address >> kPieceBits) % kInLeaf];
    if (number == kNothing) {
      if (count_ + 1 >= pieces_.count) return full_ = true, kNothing;
      number = uint32_t(++count_);
    }
    return number;
  }

  Pages<uint32_t> top_, leaves_;
  Pages<Piece> pieces_;
  Pages<uint64_t> seen_;
  size_t leaf_count_ = 0, count_ = 0;
  bool full_ = false;
};

}  // namespace millpond::probe
