// Writing goes through the HDF5 library: what it is given is ours. Reading does not, see weights_h5_read.cc.
#define H5_USE_110_API  // newer libraries keep these signatures under this name
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "base/format.h"
#include "io/atomic_file.h"
#include "io/weights_h5.h"
#include "millpond/error.h"

namespace millpond::io {

namespace {
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
    H5dont_atexit();  // a file that could not be written stays open in the library, and closing it at the end crashes
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

// What the library says about its last failure: the system's reason where one is given ("... errno = 28, error message
// = ..." amid addresses and sizes), otherwise the innermost of its own.
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
  if (const size_t at = text.find("errno = "); at != text.npos)
    if (const int number = std::atoi(text.c_str() + at + 8); number > 0) return std::strerror(number);
  return text;
}

Handle string_type() {
  Handle t(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(*t, H5T_VARIABLE);
  H5Tset_cset(*t, H5T_CSET_UTF8);
  return t;
}

Handle float_type(size_t exponent_bits) {
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
    case DType::kFloat32:
      return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
    case DType::kFloat64:
      return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose};
    case DType::kFloat16:
      return float_type(5);
    case DType::kInt8:
      return {H5Tcopy(H5T_STD_I8LE), H5Tclose};
    case DType::kInt16:
      return {H5Tcopy(H5T_STD_I16LE), H5Tclose};
    case DType::kUInt16:
      return {H5Tcopy(H5T_STD_U16LE), H5Tclose};
    case DType::kUInt32:
      return {H5Tcopy(H5T_STD_U32LE), H5Tclose};
    case DType::kUInt64:
      return {H5Tcopy(H5T_STD_U64LE), H5Tclose};
    case DType::kInt32:
      return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
    case DType::kInt64:
      return {H5Tcopy(H5T_STD_I64LE), H5Tclose};
    case DType::kUInt8:
      return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
    case DType::kBool:
      return bool_type();
    case DType::kBFloat16:
      break;
  }
  return {H5Tcreate(H5T_OPAQUE, 2), H5Tclose};
}

void check_path(const std::string& path, const char* what) {
  size_t from = 0;
  for (size_t at = 0; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/') continue;
    const std::string part = path.substr(from, at - from);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
      throw Error(Code::kValue, format("\"{}\" is not the path of {}", path, what))
          .hint("write names with a / between them, such as layers/dense/vars/0");
    from = at + 1;
  }
}
}  // namespace

void write_weights(const std::string& file, std::span<const WeightEntry> entries, std::span<const ObjectName> names) {
  std::set<std::string> paths;
  for (const WeightEntry& e : entries) {
    check_path(e.path, "a weight");
    if (!paths.insert(e.path).second) throw Error(Code::kValue, format("the weight \"{}\" was given twice", e.path));
    if (!e.tensor.data() && e.tensor.bytes() > Bytes{0})
      throw Error(Code::kValue, format("the weight \"{}\" holds nothing", e.path));
  }
  const auto inside_another = [&](const std::string& path) {
    for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
      if (paths.count(path.substr(0, at)))
        throw Error(Code::kValue, format("\"{}\" lies inside the weight \"{}\"", path, path.substr(0, at)));
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
      if (!good)
        throw Error(Code::kFile, format("{} could not be written: {}", file, reason()))
            .hint("is there room on the disk?")
            .with("at", what);
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
      const Handle g(there ? H5Gopen2(f, path.c_str(), H5P_DEFAULT)
                           : H5Gcreate2(f, path.c_str(), *links, H5P_DEFAULT, H5P_DEFAULT),
                     H5Gclose);
      need(bool(g), path);
      label(*g, "name", n.name);
    }
    need(H5Fflush(f, H5F_SCOPE_GLOBAL) >= 0, "the last of it");
  }
  out.commit();
}

}  // namespace millpond::io
