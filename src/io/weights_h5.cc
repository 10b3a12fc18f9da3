#define H5_USE_110_API  // newer libraries keep these signatures under this name
#include "io/weights_h5.h"

#include <hdf5.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "io/atomic_file.h"
#include "millpond/error.h"

namespace millpond::io {

namespace {
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxInflation = 1032;  // the most that gzip can do
constexpr const char* kOldLayers = "_layer_checkpoint_dependencies";

class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  Handle& operator=(Handle&& o) noexcept { return std::swap(id_, o.id_), std::swap(close_, o.close_), *this; }
  explicit operator bool() const { return id_ >= 0; }
  hid_t operator*() const { return id_; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// The library as a whole: one thread at a time, silent, no plug-ins from the outside, and nothing kept after use.
std::unique_lock<std::mutex> enter() {
  static std::mutex mutex;
  std::unique_lock lock(mutex);
  static const bool once = [] {
    H5open();
    H5set_free_list_limits(0, 0, 0, 0, 0, 0);
    H5PLset_loading_state(0);
    return true;
  }();
  (void)once;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5Eclear2(H5E_DEFAULT);
  return lock;
}

// What the library says about its last failure: the innermost reason.
std::string reason() {
  std::string text = "no reason given";
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* e, void* to) -> herr_t {
        if (n == 0 && e->desc) *static_cast<std::string*>(to) = e->desc;
        return 0;
      },
      &text);
  H5Eclear2(H5E_DEFAULT);
  return text;
}

Error wrong(const std::string& file, const std::string& where, const std::string& expected, const std::string& found) {
  return Error(Code::kFormat, format("{} is not a weight file we can read: at {} expected {}, found {}", file, where, expected, found))
      .with("file", file)
      .with("where", where)
      .with("expected", expected)
      .with("found", found);
}

Handle string_type() {
  Handle t(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(*t, H5T_VARIABLE);
  H5Tset_cset(*t, H5T_CSET_UTF8);
  return t;
}

Handle float_type(size_t exponent_bits) {  // of 16 bits: 5 is float16, 8 is bfloat16
  const size_t mantissa = 15 - exponent_bits;
  Handle t(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(*t, 15, mantissa, exponent_bits, 0, mantissa);
  H5Tset_size(*t, 2);
  H5Tset_ebias(*t, (size_t{1} << (exponent_bits - 1)) - 1);
  return t;
}

Handle bool_type() {
  Handle t(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  const int8_t no = 0, yes = 1;
  H5Tenum_insert(*t, "FALSE", &no);
  H5Tenum_insert(*t, "TRUE", &yes);
  return t;
}

// How Keras's h5py stores each type.
Handle stored_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
    case DType::kFloat64: return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose};
    case DType::kFloat16: return float_type(5);
    case DType::kInt32: return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
    case DType::kInt64: return {H5Tcopy(H5T_STD_I64LE), H5Tclose};
    case DType::kUInt8: return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
    case DType::kBool: return bool_type();
    case DType::kBFloat16: break;
  }
  return {H5Tcreate(H5T_OPAQUE, 2), H5Tclose};
}

// A string attribute of up to 64 KiB, or "" when it is missing or something else: no attribute decides whether a file is good.
std::string text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const Handle type(attribute ? H5Aget_type(*attribute) : -1, H5Tclose), space(attribute ? H5Aget_space(*attribute) : -1, H5Sclose);
  if (!type || !space || H5Tget_class(*type) != H5T_STRING || H5Sget_simple_extent_npoints(*space) != 1) return {};
  if (H5Tis_variable_str(*type) > 0) {
    char* text = nullptr;
    const Handle memory = string_type();
    H5Tset_cset(*memory, H5Tget_cset(*type));
    if (H5Aread(*attribute, *memory, &text) < 0 || !text) return {};
    std::string s(text, strnlen(text, 65536));
    H5free_memory(text);
    return s;
  }
  const size_t size = H5Tget_size(*type);
  if (size == 0 || size > 65536) return {};
  std::string s(size, '\0');
  if (H5Aread(*attribute, *type, s.data()) < 0) return {};
  return s.substr(0, s.find('\0'));
}

struct Stored {
  WeightsReader::Info info;
  std::string path;      // in the file, which may still say _layer_checkpoint_dependencies
  hid_t converted = -1;  // the library's conversion on reading (uint32 to int64), or -1: the bytes as they are
};

class Scan {
 public:
  Scan(const std::string& file, Bytes size, std::map<std::string, Stored>& entries, std::map<std::string, std::string>& names)
      : file_(file), size_(size), entries_(entries), names_(names) {}

  void group(hid_t g, const std::string& path, int depth) {
    const std::string where = path.empty() ? "/" : path;
    if (depth > kMaxDepth) throw wrong(file_, where, format("groups at most {} deep", kMaxDepth), "a deeper one");
    H5O_info_t info;
    if (H5Oget_info(g, &info) < 0) throw wrong(file_, where, "a group", reason());
    if (!seen_.insert(info.addr).second) throw wrong(file_, where, "each group once", "a group that is linked twice");

    struct Links {
      std::vector<std::string> names;
      size_t most;
    } links{{}, size_t(size_.value / 8 + 1)};  // a link takes more than 8 bytes of the file
    const herr_t ended = H5Literate(
        g, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
        [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
          auto& l = *static_cast<Links*>(to);
          if (l.names.size() == l.most) return 1;
          try {
            l.names.emplace_back(name);
          } catch (...) {  // no memory: an exception must not cross the library
            return -1;
          }
          return 0;
        },
        &links);
    if (ended != 0) throw wrong(file_, where, "a list of links", ended > 0 ? "more links than the file has room for" : reason());

    if (path == "vars" || path.ends_with("/vars")) {
      std::string name = text_attribute(g, "name");
      if (!name.empty()) names_.emplace(now(path.substr(0, path.size() - std::min<size_t>(path.size(), 5))), std::move(name));
    }
    for (const std::string& name : links.names) link(g, path, name, depth);
  }

 private:
  // Keras 2.13's name for layers/, in today's words.
  static std::string now(std::string path) {
    const std::string old = kOldLayers;
    for (size_t at; (at = path.find(old)) != std::string::npos;) path.replace(at, old.size(), "layers");
    return path;
  }

  void link(hid_t g, const std::string& path, const std::string& name, int depth) {
    const std::string where = path.empty() ? name : path + "/" + name;
    H5L_info_t info;
    if (H5Lget_info(g, name.c_str(), &info, H5P_DEFAULT) < 0) throw wrong(file_, where, "a link", reason());
    if (info.type != H5L_TYPE_HARD) throw wrong(file_, where, "a hard link", info.type == H5L_TYPE_SOFT ? "a soft link" : "an external link");
    const Handle object(H5Oopen(g, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!object) throw wrong(file_, where, "an object", reason());
    const H5I_type_t kind = H5Iget_type(*object);
    if (kind == H5I_GROUP) return group(*object, where, depth + 1);
    if (kind != H5I_DATASET) throw wrong(file_, where, "a group or a dataset", "a named type");
    Stored s = dataset(*object, where);
    const std::string today = now(where);
    if (today == where) entries_.insert_or_assign(today, std::move(s));
    else entries_.emplace(today, std::move(s));
  }

  Stored dataset(hid_t d, const std::string& where) {
    Stored s;
    s.path = where;
    s.info.shape = shape(d, where);
    type(d, where, s);
    const Handle stored(H5Dget_type(d), H5Tclose);
    storage(d, where, s.info.shape, int64_t(H5Tget_size(*stored)));
    return s;
  }

  Shape shape(hid_t d, const std::string& where) {
    const Handle space(H5Dget_space(d), H5Sclose);
    const H5S_class_t kind = space ? H5Sget_simple_extent_type(*space) : H5S_NO_CLASS;
    if (kind == H5S_SCALAR) return {};
    const int rank = kind == H5S_SIMPLE ? H5Sget_simple_extent_ndims(*space) : -1;
    if (rank < 0 || rank > Shape::kMaxRank) throw wrong(file_, where, format("values with at most {} dimensions", Shape::kMaxRank), rank < 0 ? "no values" : format("{}", rank));
    std::array<hsize_t, Shape::kMaxRank> dims{};
    std::array<int64_t, Shape::kMaxRank> out{};
    if (rank > 0 && H5Sget_simple_extent_dims(*space, dims.data(), nullptr) < 0) throw wrong(file_, where, "dimensions", reason());
    int64_t elements = 1;
    for (int i = 0; i < rank; ++i) {
      out[size_t(i)] = int64_t(std::min<hsize_t>(dims[size_t(i)], INT64_MAX));
      // 16 bytes: more than any type we read
      if (__builtin_mul_overflow(elements, std::max<int64_t>(1, out[size_t(i)]), &elements) || elements > INT64_MAX / 16)
        throw wrong(file_, where, "less than 2^59 values", format("dimension {} of {}", i, dims[size_t(i)]));
    }
    return Shape(std::span<const int64_t>(out.data(), size_t(rank)));
  }

  void type(hid_t d, const std::string& where, Stored& s) {
    const Handle t(H5Dget_type(d), H5Tclose);
    const H5T_class_t kind = t ? H5Tget_class(*t) : H5T_NO_CLASS;
    const size_t size = t ? H5Tget_size(*t) : 0;
    const auto is = [&](hid_t other) { return H5Tequal(*t, other) > 0; };
    if (kind == H5T_FLOAT) {
      if (is(H5T_IEEE_F32LE)) return void(s.info.dtype = DType::kFloat32);
      if (is(H5T_IEEE_F64LE)) return void(s.info.dtype = DType::kFloat64);
      if (is(*float_type(5))) return void(s.info.dtype = DType::kFloat16);
      if (is(*float_type(8))) return void(s.info.dtype = DType::kBFloat16);
    } else if (kind == H5T_INTEGER) {
      if (is(H5T_STD_I32LE)) return void(s.info.dtype = DType::kInt32);
      if (is(H5T_STD_I64LE)) return void(s.info.dtype = DType::kInt64);
      if (is(H5T_STD_U8LE)) return void(s.info.dtype = DType::kUInt8);
      if (is(H5T_STD_I8LE) || is(H5T_STD_I16LE) || is(H5T_STD_U16LE)) return void((s.info.dtype = DType::kInt32, s.converted = H5T_NATIVE_INT32));
      if (is(H5T_STD_U32LE)) return void((s.info.dtype = DType::kInt64, s.converted = H5T_NATIVE_INT64));
    } else if (kind == H5T_ENUM) {
      if (is(*bool_type())) return void(s.info.dtype = DType::kBool);
    } else if (kind == H5T_OPAQUE && size == 2 && text_attribute(d, "dtype") == "bfloat16") {
      return void(s.info.dtype = DType::kBFloat16);
    }
    throw wrong(file_, where, "float16, float32, float64, bfloat16, int8 to int64, uint8 to uint32 or bool, little endian",
                kind == H5T_FLOAT || kind == H5T_INTEGER ? format("another number of {} bytes", size) : "values of another kind");
  }

  // That the bytes which the values will take are really in the file, and are not counted for two datasets.
  void storage(hid_t d, const std::string& where, const Shape& shape, int64_t element) {
    const Handle properties(H5Dget_create_plist(d), H5Pclose);
    if (!properties) throw wrong(file_, where, "the properties of a dataset", reason());
    const H5D_layout_t layout = H5Pget_layout(*properties);
    if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) throw wrong(file_, where, "values in this file", "a virtual dataset");
    if (H5Pget_external_count(*properties) != 0) throw wrong(file_, where, "values in this file", "values in another file");
    bool gzip = false;
    const int filters = H5Pget_nfilters(*properties);
    for (int i = 0; i < filters; ++i) {
      unsigned flags = 0;
      size_t values = 0;
      const H5Z_filter_t filter = H5Pget_filter2(*properties, unsigned(i), &flags, &values, nullptr, 0, nullptr, nullptr);
      if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE) throw wrong(file_, where, "the filters gzip or shuffle", format("filter {}", int(filter)));
      gzip |= filter == H5Z_FILTER_DEFLATE;
    }
    if (filters < 0 || filters > 4) throw wrong(file_, where, "a few filters", format("{}", filters));

    const int64_t needed = shape.size() * element;
    if (needed == 0) return;
    const hsize_t raw = H5Dget_storage_size(d);
    const auto stored = int64_t(std::min<hsize_t>(raw, INT64_MAX / kMaxInflation));
    stored_ += std::min(stored, size_.value + 1);
    if (stored > size_.value || stored_ > size_.value) throw wrong(file_, where, format("at most the file's {} bytes", size_.value), format("{} bytes for its datasets up to here", stored_));
    int64_t unit = needed;  // what is read at a time
    if (layout == H5D_CHUNKED) {
      std::array<hsize_t, Shape::kMaxRank> dims{};
      if (H5Pget_chunk(*properties, int(dims.size()), dims.data()) != shape.rank()) throw wrong(file_, where, "chunks of the values' rank", reason());
      unit = element;
      for (int i = 0; i < shape.rank(); ++i)
        if (__builtin_mul_overflow(unit, int64_t(std::min<hsize_t>(dims[size_t(i)], INT64_MAX)), &unit)) unit = INT64_MAX;
    }
    const int64_t most = gzip ? stored * kMaxInflation : stored;
    if (needed > most || unit > most)
      throw wrong(file_, where, format("at most {} bytes of values from {} bytes stored", most, stored), format("{} bytes in pieces of {}", needed, unit));
    if (layout == H5D_CONTIGUOUS) {
      const haddr_t at = H5Dget_offset(d);
      if (at == HADDR_UNDEF || at > haddr_t(size_.value) || haddr_t(size_.value) - at < haddr_t(needed))
        throw wrong(file_, where, format("values inside the file's {} bytes", size_.value), format("{} bytes at {}", needed, at));
    }
  }

  const std::string& file_;
  Bytes size_;
  std::map<std::string, Stored>& entries_;
  std::map<std::string, std::string>& names_;
  std::set<haddr_t> seen_;
  int64_t stored_ = 0;
};

// Insertions, deletions and changes of letters between two names.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}
}  // namespace

struct WeightsReader::Impl {
  std::string file;
  Handle open;
  std::map<std::string, Stored> stored;
  std::map<std::string, Info> entries;
  std::map<std::string, std::string> names;

  ~Impl() {
    const auto lock = enter();
    open = Handle();
  }
  const Stored& at(const std::string& path) const {
    if (const auto it = stored.find(path); it != stored.end()) return it->second;
    Error e(Code::kValue, format("{} has no weight \"{}\"", file, path));
    const auto nearest = std::min_element(stored.begin(), stored.end(), [&](const auto& a, const auto& b) { return distance(a.first, path) < distance(b.first, path); });
    throw e.hint(nearest == stored.end() ? "it has none at all" : format("the nearest of its {} is \"{}\"", stored.size(), nearest->first));
  }
  void read(const Stored& s, std::byte* to) const {
    if (s.info.shape.size() == 0) return;
    const auto lock = enter();
    const Handle d(H5Dopen2(*open, s.path.c_str(), H5P_DEFAULT), H5Dclose);
    const Handle type(d ? H5Dget_type(*d) : -1, H5Tclose);
    if (!d || !type || H5Dread(*d, s.converted >= 0 ? s.converted : *type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
      throw wrong(file, s.path, format("{} values", s.info.shape.size()), reason());
    if (s.info.dtype != DType::kBool) return;
    for (int64_t i = 0; i < s.info.shape.size(); ++i)
      if (uint8_t(to[i]) > 1) throw wrong(file, s.path, "a bool, 0 or 1", format("{}", uint8_t(to[i])));
  }
};

WeightsReader::WeightsReader(const std::string& file) : impl_(std::make_unique<Impl>()) {
  impl_->file = file;
  struct stat s {};
  if (stat(file.c_str(), &s) != 0) throw Error(Code::kFile, format("{} cannot be read: {}", file, std::strerror(errno)));
  if (!S_ISREG(s.st_mode)) throw Error(Code::kFile, format("{} is not a plain file", file));
  const auto lock = enter();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_sec2(*access);
  H5Pset_fclose_degree(*access, H5F_CLOSE_STRONG);
  H5Pset_file_locking(*access, false, true);  // a file on a read-only or network disk cannot be locked
  impl_->open = Handle(H5Fopen(file.c_str(), H5F_ACC_RDONLY, *access), H5Fclose);
  if (!impl_->open) throw wrong(file, "the beginning", "an HDF5 file", reason());
  Scan scan(file, Bytes{s.st_size}, impl_->stored, impl_->names);
  const Handle root(H5Gopen2(*impl_->open, "/", H5P_DEFAULT), H5Gclose);
  if (!root) throw wrong(file, "/", "a group", reason());
  scan.group(*root, "", 0);
  for (const auto& [path, e] : impl_->stored) impl_->entries.emplace(path, e.info);
}
WeightsReader::~WeightsReader() = default;
WeightsReader::WeightsReader(WeightsReader&&) noexcept = default;
WeightsReader& WeightsReader::operator=(WeightsReader&&) noexcept = default;

const std::map<std::string, WeightsReader::Info>& WeightsReader::entries() const { return impl_->entries; }
const std::map<std::string, std::string>& WeightsReader::names() const { return impl_->names; }

Tensor WeightsReader::read(const std::string& path, std::string account) const {
  const Stored& s = impl_->at(path);
  Tensor t(s.info.dtype, s.info.shape, std::move(account));
  impl_->read(s, t.data());
  return t;
}

void WeightsReader::read_into(const std::string& path, Tensor& to) const {
  const Stored& s = impl_->at(path);
  if (!(s.info.shape == to.shape()) || !to.data())
    throw Error(Code::kShape, format("the weight \"{}\" of {} is {}, but {} is asked for", path, impl_->file, s.info.shape, to.shape()))
        .hint("is this the file of another model?");
  if (s.info.dtype != to.dtype())
    throw Error(Code::kDType, format("the weight \"{}\" of {} is {}, but {} is asked for", path, impl_->file, s.info.dtype, to.dtype())).hint("use read and astype");
  impl_->read(s, to.data());
}

std::map<std::string, Tensor> read_weights(const std::string& file, const std::string& account) {
  const WeightsReader reader(file);
  std::map<std::string, Tensor> all;
  for (const auto& [path, info] : reader.entries()) all.emplace(path, reader.read(path, account));
  return all;
}

namespace {
void check_path(const std::string& path, const char* what) {
  size_t from = 0;
  for (size_t at = 0; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/') continue;
    const std::string part = path.substr(from, at - from);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
      throw Error(Code::kValue, format("\"{}\" is not the path of {}", path, what)).hint("write names with a / between them, such as layers/dense/vars/0");
    from = at + 1;
  }
}
}  // namespace

void write_weights(const std::string& file, std::span<const WeightEntry> entries, std::span<const ObjectName> names) {
  std::set<std::string> paths;
  for (const WeightEntry& e : entries) {
    check_path(e.path, "a weight");
    if (!paths.insert(e.path).second) throw Error(Code::kValue, format("the weight \"{}\" was given twice", e.path));
    if (!e.tensor.data() && e.tensor.bytes() > Bytes{0}) throw Error(Code::kValue, format("the weight \"{}\" holds nothing", e.path));
  }
  const auto inside_another = [&](const std::string& path) {
    for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
      if (paths.count(path.substr(0, at))) throw Error(Code::kValue, format("\"{}\" lies inside the weight \"{}\"", path, path.substr(0, at)));
  };
  for (const std::string& path : paths) inside_another(path);
  std::set<std::string> groups;
  for (const ObjectName& n : names) {
    const std::string group = n.path.empty() ? "vars" : n.path + "/vars";
    check_path(group, "an object");
    inside_another(group + "/");
    if (!groups.insert(group).second) throw Error(Code::kValue, format("the object \"{}\" was named twice", n.path));
  }

  AtomicFile out(file);
  {
    const auto lock = enter();
    const auto need = [&](bool good, const std::string& what) {
      if (!good) throw Error(Code::kFile, format("{} could not be written: {}: {}", file, what, reason())).hint("is there room on the disk?");
    };
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_sec2(*access);
    H5Pset_fclose_degree(*access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(*access, false, true);
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(*links, 1);
    H5Pset_char_encoding(*links, H5T_CSET_UTF8);
    const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose), text = string_type();
    const hid_t f = H5Fcreate(out.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, *access);
    need(f >= 0, "creating it");
    Handle closing(f, H5Fclose);
    const auto label = [&](hid_t object, const char* key, const std::string& value) {
      const Handle a(H5Acreate2(object, key, *text, *scalar, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
      const char* p = value.c_str();
      need(a && H5Awrite(*a, *text, &p) >= 0, format("the attribute {}", key));
    };
    for (const WeightEntry& e : entries) {
      std::array<hsize_t, Shape::kMaxRank> dims{};
      std::copy(e.tensor.shape().begin(), e.tensor.shape().end(), dims.begin());
      const int rank = e.tensor.shape().rank();
      const Handle space(rank ? H5Screate_simple(rank, dims.data(), nullptr) : H5Screate(H5S_SCALAR), H5Sclose);
      const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), type = stored_type(e.tensor.dtype());
      H5Pset_obj_track_times(*properties, false);  // the same weights are the same file
      H5Pset_fill_time(*properties, H5D_FILL_TIME_NEVER);
      const Handle d(H5Dcreate2(f, e.path.c_str(), *type, *space, *links, *properties, H5P_DEFAULT), H5Dclose);
      need(bool(d), e.path);
      if (e.tensor.size() > 0) need(H5Dwrite(*d, *type, H5S_ALL, H5S_ALL, H5P_DEFAULT, e.tensor.data()) >= 0, e.path);
      if (e.tensor.dtype() == DType::kBFloat16) label(*d, "dtype", "bfloat16");
    }
    for (const ObjectName& n : names) {
      const std::string path = n.path.empty() ? "vars" : n.path + "/vars";
      // Whether it is there already is known: some weight's path goes through it.
      const auto below = paths.lower_bound(path + "/");
      const bool there = below != paths.end() && below->starts_with(path + "/");
      const Handle g(there ? H5Gopen2(f, path.c_str(), H5P_DEFAULT) : H5Gcreate2(f, path.c_str(), *links, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
      need(bool(g), path);
      label(*g, "name", n.name);
    }
    need(H5Fflush(f, H5F_SCOPE_GLOBAL) >= 0, "the last of it");
  }
  out.commit();
}

}  // namespace millpond::io
