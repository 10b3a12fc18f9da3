#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"
#include "base/format.h"
#include "millpond/error.h"

namespace millpond {

std::string to_string(Bytes bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double v = std::abs(double(bytes.value));
  int unit = 0;
  // 1023.5 would print as 1024 of the smaller unit
  while (unit < 5 && v >= 1023.5) v /= 1024, ++unit;
  const char* sign = bytes.value < 0 ? "-" : "";
  if (unit == 0) return format("{}{} B", sign, std::llabs(bytes.value));
  return format("{}{:.{}f} {}", sign, v, v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, kUnits[unit]);
}

Bytes parse_bytes(const std::string& text) {
  const char* begin = text.c_str();
  char* end = nullptr;
  const double v = std::strtod(begin, &end);
  std::string unit(end);
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  double scale = 0;
  static constexpr std::pair<const char*, double> kUnits[] = {{"", 1},
                                                              {"B", 1},
                                                              {"kB", 1e3},
                                                              {"KB", 1e3},
                                                              {"MB", 1e6},
                                                              {"GB", 1e9},
                                                              {"TB", 1e12},
                                                              {"KiB", 1024},
                                                              {"MiB", 1048576},
                                                              {"GiB", 1073741824.},
                                                              {"TiB", 1099511627776.}};
  for (const auto& [name, s] : kUnits)
    if (unit == name) scale = s;
  if (end == begin || scale == 0 || !(v >= 0) || v * scale > 9e18)
    throw Error(Code::kUsage, format("\"{}\" is not an amount of memory", text))
        .hint("write 64MiB, 1.5GiB, 2GB or a number of bytes");
  return Bytes{int64_t(std::llround(v * scale))};
}

std::string_view to_string(DType t) {
  static constexpr const char* kNames[] = {"float32", "float64", "bfloat16", "float16", "int8",   "int16", "int32",
                                           "int64",   "uint8",   "uint16",   "uint32",  "uint64", "bool"};
  return kNames[int(t)];
}

DType parse_dtype(std::string_view name) {
  for (DType t : kAllDTypes)
    if (to_string(t) == name) return t;
  throw Error(Code::kDType, format("\"{}\" is not a dtype", name))
      .hint("known: float32, float64, bfloat16, float16, int8 to int64, uint8 to uint64, bool");
}

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > size_t(kMaxRank))
    throw Error(Code::kShape, format("a shape of {} dimensions, but at most {} are supported", dims.size(), kMaxRank));
  rank_ = int(dims.size());
  for (int i = 0; i < rank_; ++i) {
    if (dims[i] < 0 && dims[i] != None) throw Error(Code::kShape, format("dimension {} of a shape is {}", i, dims[i]));
    dims_[i] = dims[i];
  }
}
void Shape::no_dimension(int i) const {
  throw Error(Code::kShape, format("the shape {} has no dimension {}", to_string(*this), i))
      .hint(format("it has {}", rank_));
}
bool Shape::known() const { return std::ranges::find(dims(), None) == dims().end(); }
int64_t Shape::size() const {
  int64_t n = 1;
  for (int64_t d : dims()) {
    if (d == None)
      throw Error(Code::kShape,
                  format("the shape {} has no number of elements: not all of it is known", to_string(*this)));
    if (__builtin_mul_overflow(n, d, &n))
      throw Error(Code::kShape, format("the shape {} has more than 2^63 elements", to_string(*this)));
  }
  return n;
}
Shape Shape::with(int axis, int64_t dim) const {
  Shape s = *this;
  const int at = axis < 0 ? axis + rank_ : axis;
  if (at < 0 || at >= rank_) no_dimension(axis);
  s.dims_[size_t(at)] = dim;
  return s;
}
Shape Shape::without(int axis) const {
  Shape s;
  if (axis < -rank_ || axis >= rank_) no_dimension(axis);
  if (axis < 0) axis += rank_;
  for (int i = 0; i < rank_; ++i)
    if (i != axis) s.dims_[s.rank_++] = dims_[i];
  return s;
}
Shape Shape::with_front(int64_t dim) const {
  if (rank_ == kMaxRank)
    throw Error(Code::kShape, format("the shape {} has no room for a batch dimension", to_string(*this)));
  Shape s;
  s.dims_[s.rank_++] = dim;
  for (int64_t d : dims()) s.dims_[s.rank_++] = d;
  return s;
}
Shape Shape::slice(int from, int to) const {
  if (from < 0 || to < from || to > rank_)
    throw Error(Code::kShape, format("the shape {} has no dimensions [{}, {})", to_string(*this), from, to));
  return Shape(dims().subspan(size_t(from), size_t(to - from)));
}
bool Shape::operator==(const Shape& o) const { return std::ranges::equal(dims(), o.dims()); }

std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (int i = 0; i < shape.rank(); ++i)
    s += (i ? ", " : "") + (shape[i] == None ? std::string("None") : std::to_string(shape[i]));
  return s + "]";
}

Shape broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int i = 1; i <= rank; ++i) {
    const int64_t p = i <= a.rank() ? a[-i] : 1, q = i <= b.rank() ? b[-i] : 1;
    if (p != q && p != 1 && q != 1)
      throw Error(Code::kShape, format("shapes {} and {} do not broadcast: {} against {} in dimension {} from the end",
                                       to_string(a), to_string(b), p, q, i));
    dims[rank - i] = p == 1 ? q : p;
  }
  return Shape(std::span<const int64_t>(dims.data(), rank));
}

std::string_view to_string(Code code) {
  static constexpr const char* kNames[] = {"usage", "shape",  "dtype",       "value",      "memory",
                                           "file",  "format", "unsupported", "interrupted"};
  return kNames[int(code)];
}

Error Error::hint(std::string text) && { return hint_ = std::move(text), render(), std::move(*this); }
Error Error::hint(std::string text) & { return hint_ = std::move(text), render(), *this; }
Error Error::with(std::string key, std::string value) && {
  return add(std::move(key), std::move(value)), std::move(*this);
}
void Error::add(std::string key, std::string value) {
  details_.emplace_back(std::move(key), std::move(value));
  render();
}
void Error::render() {
  rendered_ = hint_.empty() ? text_ : text_ + "; " + hint_;
  for (const auto& [k, v] : details_) rendered_ += format("\n  {:<8} {}", k, v);
}

namespace {
std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\')
      out += '\\', out += char(c);
    else if (c < 0x20)
      out += format("\\u{:04x}", c);
    else
      out += char(c);
  }
  return out + "\"";
}
}  // namespace

std::string Error::json() const {
  std::string details;
  for (const auto& [k, v] : details_) details += format("{}{}: {}", details.empty() ? "" : ", ", quoted(k), quoted(v));
  return format("{{\"code\": {}, \"text\": {}, \"hint\": {}, \"details\": {{{}}}}}", quoted(to_string(code_)),
                quoted(text_), quoted(hint_), details);
}

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "millpond: a bug: %s does not hold (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace millpond
