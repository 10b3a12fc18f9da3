// Any bytes as a JPEG or PNG image: pixels, or an Error; never a byte outside the buffer, which ends where a sanitizer
// sees.
#include "data/formats/image.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fuzz/input_file.h"

using namespace millpond;
using namespace millpond::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static ImageDecoder decoder;
  const uint8_t how = data[0];
  const auto file = std::as_bytes(std::span(data + 1, size - 1));
  ImageOptions o{.channels = how % 3 == 0 ? 3 : how % 3 == 1 ? 1 : 0};
  if (how & 64) o.at_least_height = 5, o.at_least_width = 5;
  o.max_pixels = 1 << 16;
  bool strict = true;
  for (bool tolerate : {false, true}) {
    o.tolerate_warnings = tolerate;
    try {
      const ImageSize wanted = decoded_size(image_header(file, "fuzz"), o, "fuzz");
      if (wanted.height * wanted.width > o.max_pixels) std::abort();
      std::vector<uint8_t> out(size_t(wanted.values()));
      if (decoder.decode(file, out, o, "fuzz") != wanted) std::abort();
      if (tolerate && !strict) continue;
      ++fuzz::accepted;
    } catch (const Error&) {
      if (tolerate && strict) std::abort();  // less is refused, not more
      strict = false;
    }
  }
  return 0;
}
