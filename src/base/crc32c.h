// CRC32C (Castagnoli): the checksum of TFRecord files and of TensorBoard's event files, which are TFRecord files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace millpond {

/// By the processor's instruction where it has one, three streams at once. `before` is the CRC of the bytes in front.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);
/// The same by a table of four bytes at a time; the slow twin.
uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t before = 0);
/// As these files store it: a CRC of bytes that hold CRCs would be weak.
constexpr uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace millpond
