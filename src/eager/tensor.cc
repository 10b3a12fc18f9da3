#include "eager/tensor.h"

#include <atomic>
#include <cmath>
#include <ostream>

#include "base/convert.h"
#include "base/format.h"
#include "base/with_type.h"
#include "eager/context.h"
#include "ops/reshape.h"

namespace millpond {
namespace eager {

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

TensorImpl::~TensorImpl() {
  if (block.chunk) Context::get().pool.give(block);
}

Ref make(const TensorType& type) {
  auto t = std::make_shared<TensorImpl>(type, next_id());
  t->block = Context::get().pool.take(type.bytes());
  t->at = t->block.at;
  return t;
}

// Where the bytes are a variable's, the view shares the tensor that gets a copy when they change; its address is asked
// for when it is used (address_of).
Ref view(const Ref& of, const Shape& shape) {
  auto t = std::make_shared<TensorImpl>(TensorType{of->type.dtype, shape}, next_id());
  t->whole = of->whole ? of->whole : of;
  return t;
}

std::byte* address_of(const TensorImpl& t) { return t.whole ? t.whole->at : t.at; }

namespace {
Bytes checked_bytes(const TensorType& t) {
  if (!t.shape.known()) throw Error(Code::kShape, format("a tensor cannot have the shape {}", t.shape));
  int64_t n = 0;
  if (__builtin_mul_overflow(t.shape.size(), size_of(t.dtype).value, &n))
    throw Error(Code::kShape, format("a tensor of shape {} and type {} has more than 2^63 bytes", t.shape, t.dtype));
  return Bytes{n};
}
}  // namespace

Ref from_host(const void* values, const TensorType& type) {
  const Bytes size = checked_bytes(type);
  Ref t = make(type);
  if (size.value > 0) Context::get().backend.write(t->at, values, size);
  return t;
}

Ref filled(const TensorType& type, double value) {
  const Bytes size = checked_bytes(type);
  Ref t = make(type);
  if (size.value == 0) return t;
  const backend::Backend& backend = Context::get().backend;
  if (value == 0 && !std::signbit(value)) {
    backend.zero(t->at, size);
    return t;
  }
  with_type(type.dtype, [&]<class T>() {
    const T one = convert<T>(value);
    if (backend.on_host()) {
      std::fill_n(reinterpret_cast<T*>(t->at), type.shape.size(), one);
    } else {
      const Tensor all = [&] {
        Tensor host(type.dtype, type.shape);
        std::ranges::fill(host.values<T>(), one);
        return host;
      }();
      backend.write(t->at, all.data(), size);
    }
  });
  return t;
}

void read(const TensorImpl& t, void* to) {
  const Bytes size = t.type.bytes();
  if (size.value == 0) return;
  Context& c = Context::get();
  const std::lock_guard lock(c.mutex);
  c.backend.read(to, address_of(t), size);
}

const Ref& need(const EagerTensor& t, const char* what) {
  if (t.is_none())
    throw Error(Code::kUsage, format("{}: an EagerTensor is none", what))
        .hint("a gradient is none where the target does not depend on the source: ask is_none()");
  return t.impl();
}
std::vector<Ref> need(const EagerTensors& ts, const char* what) {
  std::vector<Ref> refs;
  refs.reserve(ts.size());
  for (const EagerTensor& t : ts) refs.push_back(need(t, what));
  return refs;
}
EagerTensors outside(std::vector<Ref> refs) {
  EagerTensors all;
  all.reserve(refs.size());
  for (Ref& r : refs) all.emplace_back(std::move(r));
  return all;
}

}  // namespace eager

EagerTensor::EagerTensor(const Tensor& values) {
  if (!values) throw Error(Code::kUsage, "an empty Tensor has no values to make an EagerTensor of");
  impl_ = eager::from_host(values.data(), {values.dtype(), values.shape()});
}

EagerTensor::EagerTensor(std::initializer_list<double> values) {
  const std::vector<float> all(values.begin(), values.end());
  impl_ = eager::from_host(all.data(), {DType::kFloat32, {int64_t(all.size())}});
}

EagerTensor::EagerTensor(std::initializer_list<std::initializer_list<double>> rows) {
  std::vector<float> all;
  for (const auto& row : rows) {
    if (row.size() != rows.begin()->size())
      throw Error(Code::kShape,
                  format("EagerTensor: a row has {} values, but the first one {}", row.size(), rows.begin()->size()));
    all.insert(all.end(), row.begin(), row.end());
  }
  const int64_t width = rows.size() ? int64_t(rows.begin()->size()) : 0;
  impl_ = eager::from_host(all.data(), {DType::kFloat32, {int64_t(rows.size()), width}});
}

EagerTensor EagerTensor::scalar(double value, DType dtype) { return EagerTensor(eager::filled({dtype, {}}, value)); }

EagerTensor EagerTensor::of(const void* values, DType dtype, int64_t count, Shape shape) {
  if (!shape.known() || count != shape.size())
    throw Error(Code::kShape, format("EagerTensor::of: {} values do not fit the shape {}", count, shape));
  return EagerTensor(eager::from_host(values, {dtype, shape}));
}

DType EagerTensor::dtype() const { return eager::need(*this, "dtype")->type.dtype; }
const Shape& EagerTensor::shape() const { return eager::need(*this, "shape")->type.shape; }

Tensor EagerTensor::to_tensor(std::string account) const {
  const eager::Ref& r = eager::need(*this, "to_tensor");
  Tensor t(r->type.dtype, r->type.shape, std::move(account));
  eager::read(*r, t.data());
  return t;
}

void EagerTensor::copy_to(void* values, DType dtype, int64_t count) const {
  const eager::Ref& r = eager::need(*this, "copy_to");
  if (dtype != r->type.dtype)
    throw Error(Code::kDType, format("copy_to: the tensor is {}, but the span is of {}", to_string(r->type), dtype))
        .hint("cast it first");
  if (count != r->type.shape.size())
    throw Error(Code::kShape,
                format("copy_to: the tensor is {}, but the span has room for {} values", to_string(r->type), count));
  eager::read(*r, values);
}

double EagerTensor::item() const {
  const eager::Ref& r = eager::need(*this, "item");
  if (r->type.shape.size() != 1)
    throw Error(Code::kShape,
                format("item: a tensor of shape {} has {} values, not one", r->type.shape, r->type.shape.size()))
        .hint("take one, x[{0, 0}], or reduce it, ops::sum(x)");
  std::byte bytes[8];
  eager::read(*r, bytes);
  return with_type(r->type.dtype, [&]<class T>() { return convert<double>(load(reinterpret_cast<T*>(bytes), 0)); });
}

EagerTensor::operator bool() const {
  const eager::Ref& r = eager::need(*this, "the truth of a tensor");
  if (r->type.shape.size() != 1)
    throw Error(Code::kUsage, format("a tensor of shape {} is neither true nor false: it has {} values", r->type.shape,
                                     r->type.shape.size()))
        .hint("ask ops::all(x) or ops::any(x); is_none() tells whether there is one");
  return item() != 0;
}

// ---- text

namespace {

constexpr int64_t kWhole = 1000, kEdge = 3;

void print(std::string& out, const Tensor& t, int axis, int64_t at, bool shortened) {
  const Shape& shape = t.shape();
  if (axis == shape.rank()) {
    if (t.dtype() == DType::kBool) {
      out += t.at(at) != 0 ? "True" : "False";
    } else if (is_floating(t.dtype())) {
      out += format("{:.6g}", t.at(at));
    } else if (t.dtype() == DType::kInt64) {
      out += format("{}", t.values<int64_t>()[size_t(at)]);
    } else if (t.dtype() == DType::kUInt64) {
      out += format("{}", t.values<uint64_t>()[size_t(at)]);
    } else {
      out += format("{}", int64_t(t.at(at)));
    }
    return;
  }
  int64_t stride = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) stride *= shape[i];
  const bool last = axis + 1 == shape.rank();
  out += "[";
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) out += last ? ", " : ",\n" + std::string(size_t(axis) + 1, ' ');
    if (shortened && shape[axis] > 2 * kEdge && i == kEdge) {
      out += "...";
      i = shape[axis] - kEdge - 1;
      continue;
    }
    print(out, t, axis + 1, at + i * stride, shortened);
  }
  out += "]";
}

}  // namespace

std::string to_string(const EagerTensor& tensor) {
  if (tensor.is_none()) return "None";
  const Tensor t = tensor.to_tensor();
  std::string out;
  print(out, t, 0, 0, t.size() > kWhole);
  return out + " " + to_string(tensor.impl()->type);
}

std::ostream& operator<<(std::ostream& out, const EagerTensor& tensor) { return out << to_string(tensor); }

// ---- memory

EagerMemory eager_memory() {
  EagerMemory m;
  eager::Context* c = eager::Context::if_made();
  if (!c) return m;
  m.used = c->pool.used();
  m.idle = c->pool.idle();
  m.bound = c->pool.bound();
  const std::lock_guard lock(c->mutex);
  m.programs = c->programs();
  m.made = c->made();
  return m;
}

void set_eager_memory(EagerBounds bounds) {
  if (bounds.pool.value < 0 || bounds.programs.value < 0)
    throw Error(Code::kUsage, format("set_eager_memory: a bound is {}", std::min(bounds.pool, bounds.programs)));
  eager::Context& c = eager::Context::get();
  c.pool.set_bound(bounds.pool);
  const std::lock_guard lock(c.mutex);
  c.set_bound(bounds.programs);
}

}  // namespace millpond
