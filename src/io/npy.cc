#include "io/npy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "io/atomic_file.h"
#include "io/plain_file.h"
#include "millpond/error.h"

namespace millpond {
namespace io {

namespace {
constexpr size_t kHeaderRoom = 64 << 10;
constexpr std::string_view kMagic = "\x93NUMPY";

// What a stranger's file says, made fit for a terminal: short, and without control characters.
std::string shown(std::string_view text) {
  std::string out;
  for (unsigned char c : text.substr(0, 40))
    out += c >= 0x20 && c < 0x7f ? std::string(1, char(c)) : format("\\x{:02x}", c);
  return out + (text.size() > 40 ? "..." : "");
}

Error wrong(const std::string& name, size_t position, const std::string& expected, const std::string& found) {
  return Error(Code::kFormat, format("{} is not a .npy file we can read: at byte {} expected {}, found {}", name,
                                     position, expected, found))
      .with("file", name)
      .with("where", format("byte {}", position))
      .with("expected", expected)
      .with("found", found);
}

// Reads the dictionary that NumPy wrote with repr(): strings, True, False, and a tuple of whole numbers.
class Dictionary {
 public:
  Dictionary(std::string_view text, size_t offset, const std::string& name)
      : text_(text), offset_(offset), name_(name) {}

  [[noreturn]] void fail(const std::string& expected) const {
    throw wrong(name_, offset_ + at_, expected,
                at_ < text_.size() ? format("\"{}\"", shown(text_.substr(at_))) : "the end of the header");
  }
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(format("'{}'", c));
  }
  bool take_word(std::string_view w) {
    blanks();
    if (!text_.substr(at_).starts_with(w)) return false;
    at_ += w.size();
    return true;
  }
  std::string_view string() {
    blanks();
    const char quote = at_ < text_.size() ? text_[at_] : 0;
    if (quote != '\'' && quote != '"') fail("a quoted string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string that ends");
    const std::string_view s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }
  Shape shape() {
    std::array<int64_t, Shape::kMaxRank> dims{};
    size_t rank = 0;
    need('(');
    while (!take(')')) {
      if (rank == dims.size()) fail(format("at most {} dimensions", dims.size()));
      dims[rank++] = number();
      if (take(',')) continue;
      need(')');
      break;
    }
    return Shape(std::span<const int64_t>(dims.data(), rank));
  }
  void end() {
    blanks();
    if (at_ != text_.size()) fail("blanks up to the end of the header");
  }
  size_t position() const { return offset_ + at_; }

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  int64_t number() {
    blanks();
    const size_t start = at_;
    int64_t n = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text_[at_] - '0', &n)) {
        at_ = start;
        fail("a dimension below 2^63");
      }
    if (at_ == start) fail("a whole number that is not negative");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
    return n;
  }
  std::string_view text_;
  size_t at_ = 0, offset_;
  const std::string& name_;
};

DType dtype_of_descr(std::string_view descr, size_t position, const std::string& name) {
  struct Known {
    std::string_view kind;
    DType dtype;
  };
  static constexpr Known kKnown[] = {{"f4", DType::kFloat32}, {"f8", DType::kFloat64}, {"f2", DType::kFloat16},
                                     {"i1", DType::kInt8},    {"i2", DType::kInt16},   {"i4", DType::kInt32},
                                     {"i8", DType::kInt64},   {"u1", DType::kUInt8},   {"u2", DType::kUInt16},
                                     {"u4", DType::kUInt32},  {"u8", DType::kUInt64},  {"b1", DType::kBool},
                                     {"V2", DType::kBFloat16}};  // so NumPy writes ml_dtypes.bfloat16
  const bool ordered = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
  const std::string_view kind = ordered ? descr.substr(1) : descr;
  for (const Known& k : kKnown) {
    if (k.kind != kind) continue;
    if (ordered && descr[0] == '>' && size_of(k.dtype) > Bytes{1})
      throw Error(Code::kUnsupported, format("{}: its values are big endian ({})", name, descr))
          .hint(format("in Python: np.save(file, x.astype(\"<{}\"))", kind));
    return k.dtype;
  }
  // A name that NumPy would have written is a type we lack; anything else is a damaged file.
  const bool plausible = kind.size() >= 1 && kind.size() <= 16 &&
                         std::string_view("iufcbSUVmMO").find(kind[0]) != std::string_view::npos &&
                         kind.find_first_not_of("0123456789[]nsumhDWMY", 1) == std::string_view::npos;
  if (!plausible) throw wrong(name, position, "a type such as '<f4'", format("\"{}\"", shown(descr)));
  throw Error(Code::kUnsupported, format("{}: values of type {} are not supported", name, shown(descr)))
      .hint(
          "in Python: np.save(file, x.astype(\"float32\")); known: f2, f4, f8, i1 to i8, u1 to u8, b1, and V2 as "
          "bfloat16");
}

class File {
 public:
  explicit File(const std::string& name) : name_(name) {
    const PlainFile file = open_plain_file(name);
    fd_ = file.fd;
    size_ = Bytes{file.size};
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  Bytes size() const { return size_; }
  void read(std::byte* to, Bytes size, Bytes from) const {
    for (int64_t done = 0; done < size.value;) {
      const ssize_t n = pread(fd_, to + done, size_t(size.value - done), from.value + done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw Error(Code::kFile, format("{} cannot be read: {}", name_, std::strerror(errno)));
      if (n == 0)
        throw wrong(name_, size_t(from.value + done), format("{} more bytes", size.value - done),
                    "the end: the file became shorter while it was read");
      done += n;
    }
  }

 private:
  std::string name_;
  int fd_;
  Bytes size_;
};

NpyHeader header_of(const File& f, const std::string& name) {
  std::vector<std::byte> start(size_t(std::min<int64_t>(f.size().value, kHeaderRoom)));
  f.read(start.data(), Bytes{int64_t(start.size())}, Bytes{0});
  return parse_npy_header(start, f.size(), name);
}

bool aligned(const NpyHeader& h) { return h.data_at.value % size_of(h.dtype).value == 0; }

// A bool that is neither 0 nor 1 is undefined behaviour in whoever reads it.
void check_bools(const Tensor& t, const NpyHeader& h, const std::string& name) {
  if (t.dtype() != DType::kBool) return;
  const auto* v = reinterpret_cast<const uint8_t*>(t.data());
  for (int64_t i = 0; i < t.size(); ++i)
    if (v[i] > 1) throw wrong(name, size_t(h.data_at.value + i), "a bool, 0 or 1", format("{}", v[i]));
}

Tensor read_values(const File& f, const NpyHeader& h, const std::string& name, std::string account) {
  Tensor t(h.dtype, h.shape, std::move(account));
  f.read(t.data(), t.bytes(), h.data_at);
  check_bools(t, h, name);
  return t;
}
}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> start, Bytes file_size, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (!text.starts_with(kMagic))
    throw wrong(name, 0, "\"\\x93NUMPY\"", text.empty() ? "an empty file" : format("\"{}\"", shown(text.substr(0, 6))));
  if (text.size() < 10)
    throw wrong(name, 6, "a version and a header length", format("the end of the file, after {} bytes", text.size()));
  const auto byte = [&](size_t i) { return size_t(uint8_t(text[i])); };
  const size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0)
    throw wrong(name, 6, "version 1.0, 2.0 or 3.0", format("{}.{}", major, minor));
  const size_t fixed = major == 1 ? 10 : 12;
  if (text.size() < fixed) throw wrong(name, 8, "a header length of 4 bytes", "the end of the file");
  const size_t length = major == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > kHeaderRoom - fixed)
    throw wrong(name, 8, format("a header of at most {} bytes", kHeaderRoom - fixed), format("{}", length));
  if (fixed + length > text.size())
    throw wrong(name, 8, format("a header that fits into the file's {} bytes", file_size.value),
                format("a length of {}", length));

  Dictionary d(text.substr(fixed, length), fixed, name);
  NpyHeader h;
  h.data_at = Bytes{int64_t(fixed + length)};
  bool descr = false, order = false, shape = false, fortran = false;
  d.need('{');
  while (!d.take('}')) {
    const size_t position = d.position();
    const std::string_view key = d.string();
    d.need(':');
    const auto once = [&](bool& seen) {
      if (seen) throw wrong(name, position, "each key once", format("\"{}\" again", key));
      seen = true;
    };
    if (key == "descr") {
      once(descr);
      if (d.take('['))
        throw Error(Code::kUnsupported, format("{}: its values are records of several fields", name))
            .hint("save each field to a file of its own: np.save(file, x[\"field\"])");
      const size_t value_at = d.position();
      h.dtype = dtype_of_descr(d.string(), value_at, name);
    } else if (key == "fortran_order") {
      once(order);
      if (d.take_word("True"))
        fortran = true;
      else if (!d.take_word("False"))
        d.fail("True or False");
    } else if (key == "shape") {
      once(shape);
      h.shape = d.shape();
    } else
      throw wrong(name, position, "'descr', 'fortran_order' or 'shape'", format("\"{}\"", shown(key)));
    if (d.take(',')) continue;
    d.need('}');
    break;
  }
  d.end();
  for (const auto& [seen, key] : {std::pair{descr, "descr"}, {order, "fortran_order"}, {shape, "shape"}})
    if (!seen) throw wrong(name, fixed, format("the key '{}'", key), "a header without it");

  // Zeros hide an overflow of the other dimensions, so those are counted as ones first.
  int64_t elements = 1, bytes = 0;
  bool empty = false;
  for (int64_t dim : h.shape) {
    empty |= dim == 0;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements))
      throw wrong(name, fixed, "a shape of less than 2^63 elements", to_string(h.shape));
  }
  if (__builtin_mul_overflow(elements, size_of(h.dtype).value, &bytes))
    throw wrong(name, fixed, "less than 2^63 bytes of values", format("the shape {} of {}", h.shape, h.dtype));
  if (empty) bytes = 0;
  if (file_size.value - h.data_at.value != bytes)
    throw wrong(name, size_t(h.data_at.value),
                format("{} bytes of values for the shape {} of {}", bytes, h.shape, h.dtype),
                format("{}", file_size.value - h.data_at.value));

  const auto wide = std::count_if(h.shape.begin(), h.shape.end(), [](int64_t dim) { return dim != 1; });
  if (fortran && wide > 1 && !empty)
    throw Error(Code::kUnsupported, format("{}: its values of shape {} lie in Fortran order", name, h.shape))
        .hint("in Python: np.save(file, np.ascontiguousarray(x))");
  return h;
}

namespace {
// Version 1, filled up with blanks to `least` bytes and to a multiple of 64.
std::string start_of_file(DType dtype, std::span<const int64_t> dims, size_t least) {
  static constexpr const char* kDescr[] = {"<f4", "<f8", "<V2", "<f2", "|i1", "<i2", "<i4",
                                           "<i8", "|u1", "<u2", "<u4", "<u8", "|b1"};
  const char* descr = kDescr[int(dtype)];
  std::string shape;
  for (int64_t d : dims) shape += format("{}, ", d);
  if (dims.size() > 1)
    shape.resize(shape.size() - 2);
  else if (dims.size() == 1)
    shape.resize(shape.size() - 1);  // "(3,)"
  std::string header = format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.resize((std::max(least, 10 + header.size() + 1) + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string start(kMagic);
  start += {1, 0, char(header.size() & 255), char(header.size() >> 8)};
  return start + header;
}
}  // namespace

// Room for any shape, so that the header can be written over when the number of rows is known.
std::string NpyWriter::header() const { return start_of_file(dtype_, row_.with_front(rows_).dims(), 320); }
NpyWriter::NpyWriter(const std::string& file, DType dtype, const Shape& row)
    : name_(file), dtype_(dtype), row_(row), row_bytes_((size_of(dtype) * row.size()).value), out_(file) {
  const std::string start = header();
  out_.write(std::as_bytes(std::span(start)));
}
void NpyWriter::append(std::span<const std::byte> rows) {
  out_.write(rows);
  if (row_bytes_) rows_ += int64_t(rows.size()) / row_bytes_;
}
void NpyWriter::close() {
  const std::string start = header();
  const int fd = open(out_.path().c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && pwrite(fd, start.data(), start.size(), 0) == ssize_t(start.size());
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!written) throw Error(Code::kFile, format("{} could not be written: {}", name_, std::strerror(why)));
  out_.commit();
}

}  // namespace io

Tensor map_npy(const std::string& file) {
  using namespace io;
  const File f(file);
  const NpyHeader h = header_of(f, file);
  if (!aligned(h) || h.shape.size() == 0) return read_values(f, h, file, "data/npy");
  const auto size = size_t(f.size().value);
  void* base = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, f.fd(), 0);
  if (base == MAP_FAILED)
    throw Error(Code::kMemory, format("{} ({}) cannot be mapped: {}", file, f.size(), std::strerror(errno)));
  std::shared_ptr<void> mapping(base, [size](void* p) { munmap(p, size); });
  Tensor t = Tensor::view(static_cast<std::byte*>(base) + h.data_at.value, h.dtype, h.shape, std::move(mapping));
  check_bools(t, h, file);
  return t;
}

Tensor read_npy(const std::string& file, std::string account) {
  using namespace io;
  const File f(file);
  return read_values(f, header_of(f, file), file, std::move(account));
}

void write_npy(const std::string& file, const Tensor& tensor) {
  using namespace io;
  const std::string start = start_of_file(tensor.dtype(), tensor.shape().dims(), 0);
  if (!tensor.data() && tensor.bytes() > Bytes{0})
    throw Error(Code::kValue, format("{}: the tensor to be written holds nothing", file));
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(start)));
  if (tensor.data()) out.write({tensor.data(), size_t(tensor.bytes().value)});
  out.commit();
}

}  // namespace millpond
