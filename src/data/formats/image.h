// JPEG (libjpeg-turbo) and PNG (libpng) into the caller's uint8 buffer, height x width x channels.
//
// As TensorFlow's decode_jpeg and decode_png: the accurate integer transform and smooth upsampling; greyscale becomes
// RGB where 3 channels are wanted, CMYK and YCCK too; alpha is dropped, 16 bits are cut to 8, palettes and 1, 2, 4 bits
// are widened. No colour profile or gamma is applied, and no orientation of EXIF.
//
// Memory: the decoder keeps its libjpeg state. While one image is decoded the libraries take (and give back) their own:
// a few rows, and for a progressive JPEG or an interlaced PNG at most 8 bytes a pixel. Nothing is taken before the
// header's size has been held against ImageOptions::max_pixels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "millpond/bytes.h"
#include "millpond/error.h"

namespace millpond::data {

enum class ImageKind : uint8_t { kJpeg, kPng };

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
  constexpr bool operator==(const ImageSize&) const = default;
  int64_t values() const { return height * width * channels; }
};

struct ImageOptions {
  int channels = 3;  // 1 or 3; 0: as the file has them (1 or 3)
  /// Where both are given, a JPEG is decoded at 1/2, 1/4 or 1/8 of its size while neither side falls below these:
  /// several times faster before a resize. A PNG is always decoded whole.
  int64_t at_least_height = 0, at_least_width = 0;
  int64_t max_pixels = int64_t{1} << 26;  // of the file, before scaling
  bool tolerate_warnings = false;         // damaged bytes that the library can guess over: an Error, or counted
};

/// From the first bytes alone: kind, height, width, and 1 or 3 channels of colour. Throws Error(kFormat).
struct ImageHeader {
  ImageKind kind = ImageKind::kJpeg;
  ImageSize size;
};
ImageHeader image_header(std::span<const std::byte> file, std::string_view name);
inline ImageSize image_size(std::span<const std::byte> file, std::string_view name) {
  return image_header(file, name).size;
}
/// What decode() will write with these options. Throws Error(kFormat) beyond max_pixels.
ImageSize decoded_size(const ImageHeader& header, const ImageOptions& options, std::string_view name);

/// One for each thread.
class ImageDecoder {
 public:
  ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;
  ~ImageDecoder();

  /// `out` holds decoded_size() values; rows lie `row_stride` bytes apart (0: close together). Throws Error(kFormat)
  /// with name and the library's own words; `out` then holds anything.
  ImageSize decode(std::span<const std::byte> file, std::span<uint8_t> out, const ImageOptions& options,
                   std::string_view name, int64_t row_stride = 0);
  /// Images that had warnings, with tolerate_warnings.
  int64_t warned() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millpond::data
