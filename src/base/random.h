// Random bits by counter: bits = hash(key, index). No state, so any lane, thread or re-run of a tile gets the same
// bits, and a mask never has to be stored. Kernels vectorise exactly this formula.
#pragma once
#include <cstdint>

namespace millpond {

/// Spreads a 64-bit number over all its bits (splitmix64's finaliser).
constexpr uint64_t mix64(uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// The key of one use of randomness in one step: different for each salt (layer) and each counter (step).
constexpr uint64_t random_key(uint64_t salt, uint64_t counter) { return mix64(mix64(salt) ^ counter); }

/// 32 bits for element `index` (of fewer than 2^32): a full avalanche of index and low half, then of the high half.
constexpr uint32_t random_bits(uint64_t key, uint32_t index) {
  uint32_t x = index ^ uint32_t(key);
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  x = (x ^ (x >> 16)) + uint32_t(key >> 32);
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// A stream for initial values, shuffles and synthetic data.
class Random {
 public:
  explicit Random(uint64_t seed) : key_(mix64(seed)) {}
  uint64_t next() { return mix64(key_ + 0x632be59bd9b4e019ull * ++count_); }
  double uniform() { return double(next() >> 11) * 0x1p-53; }  // [0, 1)
  double normal();                                             // mean 0, deviation 1 (Box-Muller)
  uint64_t below(uint64_t n) { return uint64_t((unsigned __int128)(next())*n >> 64); }

 private:
  uint64_t key_, count_ = 0;
};

}  // namespace millpond
