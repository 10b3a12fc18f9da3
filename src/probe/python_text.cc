#include "probe/python_text.h"

#include <string.h>

#include "probe/python_layout.h"

namespace millpond::probe::python {
namespace {

uint32_t encode(uint32_t c, char* out) {
  if (c >= 0xd800 && c < 0xe000) c = '?';  // a byte of a file name that was no UTF-8
  if (c < 0x80) return out[0] = char(c), 1;
  if (c < 0x800) return out[0] = char(0xc0 | c >> 6), out[1] = char(0x80 | (c & 63)), 2;
  if (c < 0x10000)
    return out[0] = char(0xe0 | c >> 12), out[1] = char(0x80 | (c >> 6 & 63)), out[2] = char(0x80 | (c & 63)), 3;
  out[0] = char(0xf0 | (c >> 18 & 7)), out[1] = char(0x80 | (c >> 12 & 63));
  out[2] = char(0x80 | (c >> 6 & 63)), out[3] = char(0x80 | (c & 63));
  return 4;
}

}  // namespace

uint32_t copy_string(const Layout& l, const void* string, char* out, uint32_t room) {
  if (!plausible(string)) return 0;
  const int64_t length = at<int64_t>(string, l.string_length);
  const uint32_t state = at<uint32_t>(string, l.string_state) >> l.string_kind_bit;
  const uint32_t width = state & 7;
  const bool compact = state >> 3 & 1, ascii = state >> 4 & 1;
  if (!compact || length < 0 || (width != 1 && width != 2 && width != 4)) return 0;
  if (ascii) {
    const uint32_t size = length < room ? uint32_t(length) : room;
    memcpy(out, static_cast<const char*>(string) + l.ascii_text, size);
    return size;
  }
  uint32_t size = 0;
  for (int64_t i = 0; i < length && size + 4 <= room; ++i) {
    const size_t place = l.compact_text + size_t(i) * width;
    size += encode(width == 1   ? at<uint8_t>(string, place)
                   : width == 2 ? at<uint16_t>(string, place)
                                : at<uint32_t>(string, place),
                   out + size);
  }
  return size;
}

}  // namespace millpond::probe::python
