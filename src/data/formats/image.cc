#include "data/formats/image.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
// jpeglib.h wants stdio's types first.
#include <jerror.h>
#include <jpeglib.h>

#include "base/format.h"
#include "data/formats/source.h"

namespace millpond::data {

namespace {
constexpr int kMostScans = 100;  // of a progressive JPEG; cameras and programs write about ten

Error wrong(std::string_view name, int64_t byte, const std::string& expected, const std::string& found) {
  return Error(Code::kFormat, format("{}: at byte {} expected {}, found {}", name, byte, expected, found))
      .with("file", std::string(name))
      .with("where", format("byte {}", byte))
      .with("expected", expected)
      .with("found", found);
}

uint32_t big16(std::span<const std::byte> b, size_t at) { return uint32_t(b[at]) << 8 | uint32_t(b[at + 1]); }
uint32_t big32(std::span<const std::byte> b, size_t at) { return big16(b, at) << 16 | big16(b, at + 2); }
bool starts_with(std::span<const std::byte> b, std::string_view what) {
  return b.size() >= what.size() && std::memcmp(b.data(), what.data(), what.size()) == 0;
}
constexpr std::string_view kPngMagic("\x89PNG\r\n\x1a\n", 8);

// Segments up to the frame header (SOFn), which has the size.
ImageHeader jpeg_header(std::span<const std::byte> b, std::string_view name) {
  size_t at = 2;
  const auto need = [&](size_t n, const char* what) {
    if (b.size() - at < n) throw wrong(name, int64_t(at), what, "the end of the file");
  };
  for (;;) {
    need(2, "a JPEG marker");
    if (b[at] != std::byte{0xff}) throw wrong(name, int64_t(at), "a JPEG marker", format("{:#04x}", uint8_t(b[at])));
    while (at + 1 < b.size() && b[at + 1] == std::byte{0xff}) ++at;  // fill bytes
    need(2, "a JPEG marker");
    const auto marker = uint8_t(b[at + 1]);
    at += 2;
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) continue;  // these stand alone
    if (marker == 0xd9 || marker == 0xda || marker == 0x00 || marker == 0xd8)
      throw wrong(name, int64_t(at) - 2, "a JPEG frame header", format("marker {:#04x}", marker));
    need(2, "a segment's length");
    const size_t length = big16(b, at);
    if (length < 2) throw wrong(name, int64_t(at), "a segment's length of at least 2", format("{}", length));
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame) {
      if (length < 8) throw wrong(name, int64_t(at), "a frame header of at least 8 bytes", format("{}", length));
      need(8, "a JPEG frame header");
      const int64_t height = big16(b, at + 3), width = big16(b, at + 5), components = int64_t(b[at + 7]);
      if (height == 0 || width == 0)
        throw wrong(name, int64_t(at) + 3, "a size above 0", format("{} x {}", height, width));
      if (components != 1 && components != 3 && components != 4)
        throw wrong(name, int64_t(at) + 7, "1, 3 or 4 components", format("{}", components));
      return {ImageKind::kJpeg, {height, width, components == 1 ? 1 : 3}};
    }
    need(length, "the rest of a segment");
    at += length;
  }
}

ImageHeader png_header(std::span<const std::byte> b, std::string_view name) {
  if (b.size() < 29) throw wrong(name, int64_t(b.size()), "a PNG header of 29 bytes", "the end of the file");
  if (big32(b, 8) != 13 || std::memcmp(b.data() + 12, "IHDR", 4) != 0)
    throw wrong(name, 8, "the chunk IHDR", "something else");
  const uint32_t width = big32(b, 16), height = big32(b, 20), colour = uint32_t(b[25]);
  if (width == 0 || height == 0 || width > 0x7fffffff || height > 0x7fffffff)
    throw wrong(name, 16, "a width and a height from 1 to 2147483647", format("{} x {}", width, height));
  if (colour > 6 || colour == 1 || colour == 5)
    throw wrong(name, 25, "colour type 0, 2, 3, 4 or 6", format("{}", colour));
  return {ImageKind::kPng, {height, width, colour == 0 || colour == 4 ? 1 : 3}};
}

// What the functions below need: they are left by longjmp, so nothing in them may have a destructor.
struct Task {
  const unsigned char* file;
  size_t file_size;
  uint8_t* out;
  int64_t height, width, channels, stride;  // as decoded
  int64_t file_height, file_width;
  int shrink;  // 1, 2, 4, 8
  bool strict;
};
struct Outcome {
  char message[JMSG_LENGTH_MAX > 200 ? JMSG_LENGTH_MAX : 200] = {};
  size_t at = 0;  // about where in the file
  int64_t warnings = 0;
};

// ---- JPEG ----

struct Jpeg {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  Outcome* outcome = nullptr;
  bool strict = true;

  static Jpeg& of(j_common_ptr info) { return *static_cast<Jpeg*>(info->client_data); }
  [[noreturn]] static void on_error(j_common_ptr info) {
    Jpeg& j = of(info);
    info->err->format_message(info, j.outcome->message);
    std::longjmp(j.jump, 1);
  }
  static void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;  // a trace
    Jpeg& j = of(info);
    ++j.outcome->warnings;
    if (j.strict) on_error(info);
  }
  static void on_progress(j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
    Jpeg& j = of(info);
    std::snprintf(j.outcome->message, sizeof j.outcome->message, "more than %d scans", kMostScans);
    std::longjmp(j.jump, 1);
  }

  Jpeg() {
    info.err = jpeg_std_error(&errors);
    errors.error_exit = on_error;
    errors.emit_message = on_message;
    errors.output_message = [](j_common_ptr) {};
    Outcome first;
    outcome = &first;
    info.client_data = this;
    if (setjmp(jump)) throw Error(Code::kMemory, "libjpeg cannot get the memory for a decoder");
    jpeg_create_decompress(&info);
    info.client_data = this;
    progress.progress_monitor = on_progress;
    info.progress = &progress;
  }
  ~Jpeg() { jpeg_destroy_decompress(&info); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  bool fail(const char* why) {
    std::snprintf(outcome->message, sizeof outcome->message, "%s", why);
    note_place();
    jpeg_abort_decompress(&info);
    return false;
  }
  void note_place() {
    outcome->at = info.src && info.src->bytes_in_buffer <= size_ ? size_ - info.src->bytes_in_buffer : size_;
  }
  size_t size_ = 0;

  bool decode(const Task& task, Outcome& out) {
    outcome = &out;
    strict = task.strict;
    size_ = task.file_size;
    if (setjmp(jump)) {
      note_place();
      jpeg_abort_decompress(&info);
      return false;
    }
    jpeg_mem_src(&info, task.file, static_cast<unsigned long>(task.file_size));
    jpeg_read_header(&info, TRUE);
    if (int64_t(info.image_width) != task.file_width || int64_t(info.image_height) != task.file_height)
      return fail("two frame headers of different sizes");
    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : task.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    info.scale_num = 1;
    info.scale_denom = unsigned(task.shrink);
    jpeg_start_decompress(&info);
    if (int64_t(info.output_width) != task.width || int64_t(info.output_height) != task.height ||
        info.output_components != (cmyk ? 4 : int(task.channels)))
      return fail("an image of another size than its header says");
    if (cmyk) {
      JSAMPARRAY ink =
          info.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info), JPOOL_IMAGE, info.output_width * 4, 1);
      while (info.output_scanline < info.output_height) {
        uint8_t* row = task.out + int64_t(info.output_scanline) * task.stride;
        if (jpeg_read_scanlines(&info, ink, 1) != 1) return fail("rows missing");
        from_ink(ink[0], row, task);
      }
    } else {
      JSAMPROW rows[16];
      while (info.output_scanline < info.output_height) {
        unsigned n = std::min<unsigned>(16, info.output_height - info.output_scanline);
        for (unsigned i = 0; i < n; ++i) rows[i] = task.out + int64_t(info.output_scanline + i) * task.stride;
        if (jpeg_read_scanlines(&info, rows, n) == 0) return fail("rows missing");
      }
    }
    jpeg_finish_decompress(&info);
    return true;
  }

  // As TensorFlow does; Adobe's programs store the inks inverted.
  void from_ink(const uint8_t* ink, uint8_t* row, const Task& task) const {
    for (int64_t x = 0; x < task.width; ++x, ink += 4) {
      int rgb[3];
      for (int c = 0; c < 3; ++c)
        rgb[c] = info.saw_Adobe_marker ? ink[3] * ink[c] / 255 : (255 - ink[3]) * (255 - ink[c]) / 255;
      if (task.channels == 1)
        *row++ = uint8_t((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
      else
        for (int c = 0; c < 3; ++c) *row++ = uint8_t(rgb[c]);
    }
  }
};

// ---- PNG ----

struct Png {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump{};
  Outcome* outcome = nullptr;
  const Task* task = nullptr;
  size_t at = 0;

  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    Png& p = *static_cast<Png*>(png_get_error_ptr(png));
    std::snprintf(p.outcome->message, sizeof p.outcome->message, "%s", message);
    std::longjmp(p.jump, 1);
  }
  static void on_warning(png_structp png, png_const_charp message) {
    Png& p = *static_cast<Png*>(png_get_error_ptr(png));
    ++p.outcome->warnings;
    if (p.task->strict) on_error(png, message);
  }
  static void on_read(png_structp png, png_bytep to, size_t n) {
    Png& p = *static_cast<Png*>(png_get_io_ptr(png));
    if (n > p.task->file_size - p.at) {
      p.at = p.task->file_size;
      on_error(png, "the file ends too early");
    }
    std::memcpy(to, p.task->file + p.at, n);
    p.at += n;
  }

  bool decode(const Task& t, Outcome& out) {
    outcome = &out;
    task = &t;
    at = 0;
    if (setjmp(jump)) {
      out.at = at;
      png_destroy_read_struct(&png, &info, nullptr);
      return false;
    }
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (!png) {
      std::snprintf(out.message, sizeof out.message, "libpng cannot begin");
      return false;
    }
    info = png_create_info_struct(png);
    if (!info) png_error(png, "no memory");
    png_set_read_fn(png, this, on_read);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);  // the size has been held against max_pixels
    png_set_chunk_malloc_max(png, 8 << 20);
    // All but IHDR, PLTE, tRNS, IDAT and IEND is passed over: no profile, gamma or text is wanted.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png, info);
    if (int64_t(png_get_image_width(png, info)) != t.file_width ||
        int64_t(png_get_image_height(png, info)) != t.file_height)
      png_error(png, "two headers of different sizes");
    const int colour = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    if (depth == 16) png_set_strip_16(png);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (colour & PNG_COLOR_MASK_ALPHA || png_get_valid(png, info, PNG_INFO_tRNS)) png_set_strip_alpha(png);
    const bool grey = !(colour & PNG_COLOR_MASK_COLOR);
    if (grey && t.channels == 3) png_set_gray_to_rgb(png);
    if (!grey && t.channels == 1) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (int64_t(png_get_rowbytes(png, info)) != t.width * t.channels)
      png_error(png, "rows of another length than the header says");
    for (int pass = 0; pass < passes; ++pass)
      for (int64_t y = 0; y < t.height; ++y) png_read_row(png, t.out + y * t.stride, nullptr);
    png_read_end(png, nullptr);
    png_destroy_read_struct(&png, &info, nullptr);
    return true;
  }
};
}  // namespace

ImageHeader image_header(std::span<const std::byte> file, std::string_view name) {
  if (starts_with(file, "\xff\xd8")) return jpeg_header(file, name);
  if (starts_with(file, kPngMagic)) return png_header(file, name);
  throw wrong(
      name, 0, "a JPEG or PNG image",
      file.empty()
          ? "an empty file"
          : format("\"{}\"", shown({reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 8)})))
      .hint("convert it, or leave it out of the folder");
}

namespace {
int shrink_of(const ImageHeader& h, const ImageOptions& o) {
  if (h.kind != ImageKind::kJpeg || o.at_least_height <= 0 || o.at_least_width <= 0) return 1;
  int shrink = 8;
  while (shrink > 1 && ((h.size.height + shrink - 1) / shrink < o.at_least_height ||
                        (h.size.width + shrink - 1) / shrink < o.at_least_width))
    shrink /= 2;
  return shrink;
}
}  // namespace

ImageSize decoded_size(const ImageHeader& header, const ImageOptions& options, std::string_view name) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3)
    throw Error(Code::kUsage, format("an image with {} channels is not offered", options.channels))
        .hint("1, 3, or 0 for as they are");
  const ImageSize& s = header.size;
  if (s.height > options.max_pixels / s.width)
    throw Error(Code::kFormat,
                format("{} has {} x {} pixels, more than the {} allowed", name, s.height, s.width, options.max_pixels))
        .with("file", std::string(name))
        .hint("leave it out, or raise max_pixels");
  const int shrink = shrink_of(header, options);
  return {(s.height + shrink - 1) / shrink, (s.width + shrink - 1) / shrink,
          options.channels ? options.channels : s.channels};
}

struct ImageDecoder::Impl {
  Jpeg jpeg;
  Png png;
  int64_t warned = 0;
};

ImageDecoder::ImageDecoder() : impl_(std::make_unique<Impl>()) {}
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;
ImageDecoder::~ImageDecoder() = default;
int64_t ImageDecoder::warned() const { return impl_->warned; }

ImageSize ImageDecoder::decode(std::span<const std::byte> file, std::span<uint8_t> out, const ImageOptions& options,
                               std::string_view name, int64_t row_stride) {
  const ImageHeader header = image_header(file, name);
  const ImageSize size = decoded_size(header, options, name);
  const int64_t row = size.width * size.channels, stride = row_stride ? row_stride : row;
  if (stride < row || (size.height - 1) > (int64_t(out.size()) - row) / stride || int64_t(out.size()) < row)
    throw Error(Code::kShape, format("{}: an image of {} x {} x {} values does not fit a buffer of {}", name,
                                     size.height, size.width, size.channels, out.size()));
  const Task task{reinterpret_cast<const unsigned char*>(file.data()),
                  file.size(),
                  out.data(),
                  size.height,
                  size.width,
                  size.channels,
                  stride,
                  header.size.height,
                  header.size.width,
                  shrink_of(header, options),
                  !options.tolerate_warnings};
  Outcome outcome;
  const bool jpeg = header.kind == ImageKind::kJpeg;
  const bool good = jpeg ? impl_->jpeg.decode(task, outcome) : impl_->png.decode(task, outcome);
  if (!good)
    throw Error(Code::kFormat, format("{} is a damaged {} image: {}, near byte {} of {}", name, jpeg ? "JPEG" : "PNG",
                                      outcome.message, outcome.at, file.size()))
        .hint(options.tolerate_warnings || outcome.warnings == 0
                  ? "replace the file, or skip bad images"
                  : "replace the file, skip bad images, or tolerate_warnings")
        .with("file", std::string(name))
        .with("where", format("near byte {}", outcome.at));
  impl_->warned += outcome.warnings > 0;
  return size;
}

}  // namespace millpond::data
