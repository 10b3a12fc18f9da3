// The two filters that chunks of a dataset may have gone through. Memory: one more chunk while a filter is undone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millpond::io::h5 {

inline constexpr uint16_t kGzip = 1, kShuffle = 2;
inline constexpr uint64_t kMostInflation = 1032;  // bytes that gzip can make of one

/// Bytes that were sorted by their place in the value go back to their values.
void unshuffle(std::vector<std::byte>& bytes, size_t element);
/// False when the bytes are not what gzip makes of exactly `size` bytes.
bool inflate(std::vector<std::byte>& bytes, uint64_t size);

}  // namespace millpond::io::h5
