// CRC-32C (Castagnoli), as event files want it: a table of 1 KiB, one byte at a time; files of ours are some hundred
// kB.
#pragma once
#include <cstdint>
#include <string_view>

namespace millpond::events {

uint32_t crc32c(std::string_view bytes);
/// Turned and shifted, so that a checksum of data that holds checksums is no special case.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace millpond::events
