// Permutation: the numbers 0 to n - 1 in an order that a key decides, each computed when it is wanted. No index array:
// 80 bytes for any n. A Feistel network over the bits of n; a result that is not below n is put in again (cycle
// walking, fewer than two rounds on average).
#pragma once
#include <bit>
#include <cstdint>

#include "base/random.h"

namespace millpond::data {

class Permutation {
 public:
  Permutation() = default;
  Permutation(uint64_t n, uint64_t key) : n_(n) {
    const int bits = n > 4 ? 64 - std::countl_zero(n - 1) : 2;
    right_bits_ = bits / 2;
    left_mask_ = (uint64_t{1} << (bits - right_bits_)) - 1;
    right_mask_ = (uint64_t{1} << right_bits_) - 1;
    for (int i = 0; i < kRounds; ++i) keys_[i] = random_key(key, uint64_t(i));
  }
  uint64_t operator()(uint64_t i) const {
    do {
      uint64_t left = i >> right_bits_, right = i & right_mask_;
      for (int r = 0; r < kRounds; r += 2) {
        left ^= round(right, keys_[r]) & left_mask_;
        right ^= round(left, keys_[r + 1]) & right_mask_;
      }
      i = left << right_bits_ | right;
    } while (i >= n_);
    return i;
  }

 private:
  static constexpr int kRounds = 6;
  static uint64_t round(uint64_t x, uint64_t key) {
    x = (x ^ key) * 0xd6e8feb86659fd93ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
  }
  uint64_t n_ = 0, left_mask_ = 0, right_mask_ = 0;
  int right_bits_ = 1;
  uint64_t keys_[kRounds] = {};
};

}  // namespace millpond::data
