// formats_tool: the readers of src/data/formats as a program, for tests that run beside TensorFlow, Pillow and NumPy.
//   formats_tool records FILE COMPRESSION          each record in hexadecimal, a line each
//   formats_tool write-records FILE COMPRESSION    the lines of standard input, in hexadecimal, as records
//   formats_tool examples FILE COMPRESSION         each example: its features, sorted by name, a line each
//   formats_tool copy-examples FILE OUT COMPRESSION  parses and encodes again, both compressed alike
//   formats_tool csv FILE [option=value ...]       types, then rows
//   formats_tool image FILE OUT CHANNELS [H W]     decodes to raw bytes; prints the size; H W: at least
//   formats_tool resize FILE OUT H W C TYPE METHOD OH OW   raw bytes; TYPE u8 or f32 in; f32 out (u8 for u8 nearest)
//   formats_tool folder DIR                        class names, then files with labels
//   formats_tool npz FILE NAME OUT                 the values as raw bytes, read in order; prints type and shape
//   formats_tool text FILE                         number of lines, and their CRC
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/format.h"
#include "data/formats/augment.h"
#include "data/formats/csv.h"
#include "data/formats/example.h"
#include "data/formats/image.h"
#include "data/formats/image_folder.h"
#include "data/formats/npz.h"
#include "data/formats/text.h"
#include "data/formats/tfrecord.h"

using namespace millpond;
using namespace millpond::data;

namespace {
std::string hex(std::string_view s) {
  std::string out;
  for (unsigned char c : s) out += format("{:02x}", c);
  return out;
}
std::string_view text_of(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
void save(const std::string& file, const void* data, size_t n) {
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(data), std::streamsize(n));
}
std::string load(const std::string& file) {
  std::string s;
  read_file(file, s, Bytes{int64_t{1} << 30});
  return s;
}

void records(const std::string& file, Compression how) {
  RecordReader r(file, {.compression = how});
  std::span<const std::byte> record;
  while (r.next(record)) std::puts(hex(text_of(record)).c_str());
}
void write_records(const std::string& file, Compression how) {
  RecordWriter w(file, how);
  for (std::string line; std::getline(std::cin, line);) {
    std::string record;
    for (size_t i = 0; i + 1 < line.size(); i += 2) record += char(std::stoi(line.substr(i, 2), nullptr, 16));
    w.write(record);
  }
  w.close();
}
void examples(const std::string& file, Compression how, const std::string* copy) {
  RecordReader r(file, {.compression = how});
  std::span<const std::byte> record;
  Example e;
  ExampleWriter out;
  std::unique_ptr<RecordWriter> w;
  if (copy) w = std::make_unique<RecordWriter>(*copy, how);
  while (r.next(record)) {
    e.parse(record, file, r.position().record - 1);
    std::vector<Feature> sorted(e.features().begin(), e.features().end());
    std::sort(sorted.begin(), sorted.end(), [](const Feature& a, const Feature& b) { return a.name < b.name; });
    out.clear();
    for (const Feature& f : sorted) {
      if (copy) {
        if (f.kind == FeatureKind::kBytes) out.add(f.name, e.bytes(f));
        if (f.kind == FeatureKind::kFloat) out.add(f.name, e.floats(f));
        if (f.kind == FeatureKind::kInt64) out.add(f.name, e.ints(f));
        continue;
      }
      std::string line = format("{} {}", f.name, to_string(f.kind));
      for (std::string_view v : e.bytes(f)) line += " " + hex(v);
      for (float v : e.floats(f)) line += format(" {:.9g}", v);
      for (int64_t v : e.ints(f)) line += format(" {}", v);
      std::puts(line.c_str());
    }
    if (copy) w->write(out.finish());
    if (!copy) std::puts("--");
  }
  if (copy) w->close();
}

void csv(const std::string& file, int argc, char** argv) {
  CsvOptions o;
  for (int i = 0; i < argc; ++i) {
    const std::string a = argv[i], key = a.substr(0, a.find('=')), value = a.substr(a.find('=') + 1);
    if (key == "header") o.header = value == "1";
    if (key == "delimiter") o.delimiter = value[0];
    if (key == "label") o.label = value;
    if (key == "floats") o.floats = value == "float64" ? CsvType::kFloat64 : CsvType::kFloat32;
    if (key == "compression") o.compression = parse_compression(value);
  }
  CsvReader r(file, o);
  std::string line;
  std::vector<std::vector<std::byte>> room;
  std::vector<CsvSlot> slots;
  for (const CsvColumn& c : r.columns()) {
    line += format("{}{}:{}", line.empty() ? "" : "\t", c.name, to_string(c.type));
    room.emplace_back(16);
    slots.push_back({room.back().data(), 0});
  }
  std::puts(line.c_str());
  while (r.read(1, slots)) {
    line.clear();
    for (size_t c = 0; c < room.size(); ++c) {
      const auto get = [&](auto v) { return std::memcpy(&v, room[c].data(), sizeof v), v; };
      if (c) line += '\t';
      switch (r.columns()[c].type) {
        case CsvType::kBool:
          line += get(false) ? "True" : "False";
          break;
        case CsvType::kInt64:
          line += format("{}", get(int64_t{}));
          break;
        case CsvType::kFloat32:
          line += format("{:.9g}", get(float{}));
          break;
        case CsvType::kFloat64:
          line += format("{:.17g}", get(double{}));
          break;
        default:
          line += hex(get(std::string_view()));
      }
    }
    std::puts(line.c_str());
  }
}

void image(const std::string& file, const std::string& out, int argc, char** argv) {
  const std::string bytes = load(file);
  const auto all = std::as_bytes(std::span(bytes.data(), bytes.size()));
  ImageOptions o{.channels = std::atoi(argv[0])};
  if (argc > 2) o.at_least_height = std::atoi(argv[1]), o.at_least_width = std::atoi(argv[2]);
  const ImageSize size = decoded_size(image_header(all, file), o, file);
  std::vector<uint8_t> values(size_t(size.values()));
  ImageDecoder().decode(all, values, o, file);
  save(out, values.data(), values.size());
  std::printf("%ld %ld %ld\n", long(size.height), long(size.width), long(size.channels));
}

void resize(const std::string& file, const std::string& out, char** a) {
  const int64_t h = std::atoi(a[0]), w = std::atoi(a[1]), c = std::atoi(a[2]), oh = std::atoi(a[5]),
                ow = std::atoi(a[6]);
  const bool u8 = std::string(a[3]) == "u8";
  const Sampling how = std::string(a[4]) == "nearest" ? Sampling::kNearest : Sampling::kBilinear;
  std::string bytes = load(file);
  if (bytes.size() != size_t(h * w * c) * (u8 ? 1 : 4)) throw Error(Code::kUsage, "the file has another size");
  Resizer r;
  if (u8 && how == Sampling::kNearest) {
    std::vector<uint8_t> to(size_t(oh * ow * c));
    r.resize({reinterpret_cast<uint8_t*>(bytes.data()), h, w, c}, Image<uint8_t>{to.data(), oh, ow, c}, how);
    return save(out, to.data(), to.size());
  }
  std::vector<float> to(size_t(oh * ow * c));
  const Image<float> result{to.data(), oh, ow, c};
  if (u8)
    r.resize(Image<const uint8_t>{reinterpret_cast<const uint8_t*>(bytes.data()), h, w, c}, result, how);
  else
    r.resize(Image<const float>{reinterpret_cast<const float*>(bytes.data()), h, w, c}, result, how);
  save(out, to.data(), to.size() * 4);
}

int run(const std::string& command, int argc, char** argv) {
  const auto arg = [&](int i) {
    return i < argc ? std::string(argv[i]) : throw Error(Code::kUsage, "an argument is missing");
  };
  if (command == "records") return records(arg(0), parse_compression(arg(1))), 0;
  if (command == "write-records") return write_records(arg(0), parse_compression(arg(1))), 0;
  if (command == "examples") return examples(arg(0), parse_compression(arg(1)), nullptr), 0;
  if (command == "copy-examples") {
    const std::string out = arg(1);
    return examples(arg(0), parse_compression(arg(2)), &out), 0;
  }
  if (command == "csv") return csv(arg(0), argc - 1, argv + 1), 0;
  if (command == "image" && argc >= 3) return image(arg(0), arg(1), argc - 2, argv + 2), 0;
  if (command == "resize" && argc == 9) return resize(arg(0), arg(1), argv + 2), 0;
  if (command == "folder") {
    const ImageFolder f(arg(0));
    for (const std::string& name : f.class_names()) std::printf("%s\n", name.c_str());
    std::puts("--");
    for (int64_t i = 0; i < f.size(); ++i) std::printf("%s %d\n", f.path(i).c_str(), f.label(i));
    return 0;
  }
  if (command == "npz") {
    const NpzFile f(arg(0));
    NpzStream s(f, arg(1));
    std::string values(size_t(s.member().rows() * s.member().row_bytes().value), '\0');
    const auto room = std::as_writable_bytes(std::span(values.data(), values.size()));
    for (int64_t at = 0; const int64_t n = s.read(3, room.subspan(size_t(at * s.member().row_bytes().value)));) at += n;
    save(arg(2), values.data(), values.size());
    std::printf("%s %s %s\n", std::string(to_string(s.member().dtype)).c_str(), to_string(s.member().shape).c_str(),
                s.member().stored ? "stored" : "deflated");
    return 0;
  }
  if (command == "text") {
    LineReader r(arg(0));
    std::string_view line;
    uint32_t crc = 0;
    long n = 0;
    for (; r.next(line); ++n) {
      crc = crc32c(std::as_bytes(std::span(line.data(), line.size())), crc);
      crc = crc32c(std::as_bytes(std::span("\n", 1)), crc);
    }
    std::printf("%ld %08x\n", n, crc);
    return 0;
  }
  return 2;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    return run(argv[1], argc - 2, argv + 2);
  } catch (const Error& e) {
    std::fprintf(stderr, "formats_tool: %s\n", e.what());
    return 1;
  }
}
