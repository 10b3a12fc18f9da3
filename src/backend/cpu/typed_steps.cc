#include "backend/cpu/typed_steps.h"

#include "backend/cpu/math_double.h"
#include "backend/cpu/stored_lanes.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

template <class T>
struct Bits {
  using Type = uint64_t;
};
template <>
struct Bits<int32_t> {
  using Type = uint32_t;
};
template <class T>
constexpr bool kWhole = T(0.5) == T(0);
template <class T>
constexpr bool kSigned = T(-1) < T(0);
template <class T>
using U = typename Bits<T>::Type;

// Every function on a number of lanes. Whole numbers wrap: they are computed as unsigned ones.
#define MP_T(name, ...) \
  struct T_##name {     \
    template <class T>  \
    static MP_INLINE T f(__VA_ARGS__) {
#define MP_END \
  }            \
  }            \
  ;
// clang-format off
MP_T(copy, T x) return x; MP_END
MP_T(negate, T x) if constexpr (kWhole<T>) return T(U<T>(0) - U<T>(x)); else return -x; MP_END
MP_T(square, T x) if constexpr (kWhole<T>) return T(U<T>(x) * U<T>(x)); else return x * x; MP_END
MP_T(abs, T x) if constexpr (kWhole<T>) return x < T(0) ? T(U<T>(0) - U<T>(x)) : x; else return __builtin_fabs(x); MP_END
MP_T(sign, T x) return x != x ? x : T(T(x > T(0)) - T(x < T(0))); MP_END
MP_T(relu, T x) return x < T(0) ? T(0) : x; MP_END
MP_T(exp, T x) return exp_of(x); MP_END
MP_T(log, T x) return log_of(x); MP_END
MP_T(log1p, T x) return log1p_of(x); MP_END
MP_T(sqrt, T x) return __builtin_sqrt(x); MP_END
MP_T(rsqrt, T x) return T(1) / __builtin_sqrt(x); MP_END
MP_T(tanh, T x) return tanh_of(x); MP_END
MP_T(sigmoid, T x) return sigmoid_of(x); MP_END
MP_T(erf, T x) return __builtin_erf(x); MP_END
MP_T(add, T x, T y) if constexpr (kWhole<T>) return T(U<T>(x) + U<T>(y)); else return x + y; MP_END
MP_T(subtract, T x, T y) if constexpr (kWhole<T>) return T(U<T>(x) - U<T>(y)); else return x - y; MP_END
MP_T(multiply, T x, T y) if constexpr (kWhole<T>) return T(U<T>(x) * U<T>(y)); else return x * y; MP_END
MP_T(divide, T x, T y) return x / y; MP_END
MP_T(maximum, T x, T y) return x > y || x != x ? x : y; MP_END
MP_T(minimum, T x, T y) return x < y || x != x ? x : y; MP_END
MP_T(power, T x, T y) return __builtin_pow(x, y); MP_END
MP_T(gate, T x, T y) return y > T(0) ? x : T(0); MP_END
MP_T(sigmoid_cross_entropy, T x, T y)
  return (x > T(0) ? x : T(0)) - x * y + log1p_of(exp_of(-__builtin_fabs(x))); MP_END
MP_T(remainder, T x, T y)
  if constexpr (!kWhole<T>) {
    const T r = __builtin_fmod(x, y);
    if (r == T(0)) return y == T(0) ? r : __builtin_copysign(T(0), y);
    return (r < T(0)) != (y < T(0)) ? r + y : r;
  } else {
    if (y == T(0) || (kSigned<T> && y == T(-1))) return T(0);
    const T r = x % y;
    return r != T(0) && (r < T(0)) != (y < T(0)) ? r + y : r;
  } MP_END
MP_T(floor_divide, T x, T y)
  if constexpr (!kWhole<T>) {
    if (y == T(0)) return x / y;
    T r = __builtin_fmod(x, y), q = (x - r) / y;
    if (r != T(0) && (r < T(0)) != (y < T(0))) q -= T(1);
    if (q == T(0)) return __builtin_copysign(T(0), x / y);
    const T whole = __builtin_floor(q);
    return q - whole > T(0.5) ? whole + T(1) : whole;
  } else {
    if (y == T(0)) return T(0);
    if (kSigned<T> && y == T(-1)) return T(U<T>(0) - U<T>(x));
    const T q = x / y;
    return kSigned<T> && x % y != T(0) && (x < T(0)) != (y < T(0)) ? q - T(1) : q;
  } MP_END
MP_T(left_shift, T x, T y)
  constexpr U<T> kBits = sizeof(T) * 8;
  return U<T>(y) < kBits ? T(U<T>(x) << (U<T>(y) & (kBits - 1))) : T(0); MP_END
MP_T(right_shift, T x, T y)
  constexpr U<T> kBits = sizeof(T) * 8;
  return U<T>(y) < kBits ? T(x >> (U<T>(y) & (kBits - 1))) : x < T(0) ? T(-1) : T(0); MP_END
MP_T(bitwise_and, T x, T y) return x & y; MP_END
MP_T(bitwise_or, T x, T y) return x | y; MP_END
MP_T(bitwise_xor, T x, T y) return x ^ y; MP_END
#undef MP_T
#define MP_T(name, ...)                  \
  struct T_##name {                      \
    template <class T>                   \
    static MP_INLINE float f(__VA_ARGS__) {
MP_T(greater, T x, T y) return x > y ? 1.f : 0.f; MP_END
MP_T(greater_equal, T x, T y) return x >= y ? 1.f : 0.f; MP_END
MP_T(equal, T x, T y) return x == y ? 1.f : 0.f; MP_END
// clang-format on

/// f(d, row of a, ...) for each row; one long row where nothing lies between the rows.
struct Rows {
  int64_t rows, cols;
  MP_INLINE Rows(const Step& s, const Chunk& c) : rows(c.rows[int(s.span)]), cols(c.cols[int(s.span)]) {}
  MP_INLINE void join(bool packed) {
    if (rows > 1 && packed) cols *= rows, rows = 1;
  }
};

template <class A, class D, class F>
MP_INLINE void map(const Step& s, const Ref* r, const Chunk& c, F f) {
  Rows n(s, c);
  const A* a = static_cast<const A*>(r[s.a].p);
  D* d = static_cast<D*>(r[s.d].p);
  const int64_t as = r[s.a].rs, ds = r[s.d].rs;
  n.join(as == n.cols && ds == n.cols);
  for (int64_t row = 0; row < n.rows; ++row, a += as, d += ds) f(a, d, n.cols);
}

template <class T, class F>
void unary(const Step& s, const Ref* r, const Chunk& c) {
  map<T, T>(s, r, c, [](const T* a, T* d, int64_t n) __attribute__((always_inline)) {
    MP_IVDEP for (int64_t i = 0; i < n; ++i) d[i] = F::f(a[i]);
  });
}
template <class T>
void spread(const Step& s, const Ref* r, const Chunk& c) {
  Rows n(s, c);
  const T* a = static_cast<const T*>(r[s.a].p);
  T* d = static_cast<T*>(r[s.d].p);
  for (int64_t row = 0; row < n.rows; ++row, a += r[s.a].rs, d += r[s.d].rs) {
    const T v = *a;
    for (int64_t i = 0; i < n.cols; ++i) d[i] = v;
  }
}
template <class T, class D, class F, bool va, bool vb>
void binary(const Step& s, const Ref* r, const Chunk& c) {
  Rows n(s, c);
  const T *a = static_cast<const T*>(r[s.a].p), *b = static_cast<const T*>(r[s.b].p);
  D* d = static_cast<D*>(r[s.d].p);
  const int64_t as = r[s.a].rs, bs = r[s.b].rs, ds = r[s.d].rs;
  n.join(ds == n.cols && as == (va ? n.cols : 0) && bs == (vb ? n.cols : 0));
  for (int64_t row = 0; row < n.rows; ++row, a += as, b += bs, d += ds) {
    const T x = *a, y = *b;
    MP_IVDEP for (int64_t i = 0; i < n.cols; ++i) d[i] = F::f(va ? a[i] : x, vb ? b[i] : y);
  }
}
// The condition is a float. Where it is one for a row, a row is copied.
template <class T, bool vb, bool vc>
void choose(const Step& s, const Ref* r, const Chunk& c) {
  Rows n(s, c);
  const float* a = static_cast<const float*>(r[s.a].p);
  const T *x = static_cast<const T*>(r[s.b].p), *y = static_cast<const T*>(r[s.c].p);
  T* d = static_cast<T*>(r[s.d].p);
  for (int64_t row = 0; row < n.rows; ++row, a += r[s.a].rs, x += r[s.b].rs, y += r[s.c].rs, d += r[s.d].rs) {
    const T x0 = *x, y0 = *y;
    MP_IVDEP for (int64_t i = 0; i < n.cols; ++i) d[i] = a[i] != 0 ? (vb ? x[i] : x0) : (vc ? y[i] : y0);
  }
}
template <class T, bool vb, bool vc>
void choose_rows(const Step& s, const Ref* r, const Chunk& c) {
  Rows n(s, c);
  const float* a = static_cast<const float*>(r[s.a].p);
  const T *x = static_cast<const T*>(r[s.b].p), *y = static_cast<const T*>(r[s.c].p);
  T* d = static_cast<T*>(r[s.d].p);
  for (int64_t row = 0; row < n.rows; ++row, a += r[s.a].rs, x += r[s.b].rs, y += r[s.c].rs, d += r[s.d].rs) {
    const T* from = *a != 0 ? x : y;
    const int64_t step = *a != 0 ? vb : vc;
    const T held = *from;
    if (step)
      __builtin_memmove(d, from, size_t(n.cols) * sizeof(T));
    else
      for (int64_t i = 0; i < n.cols; ++i) d[i] = held;
  }
}

void dropout(const Step& s, const Ref* r, const Chunk& c) {
  const double* a = static_cast<const double*>(r[s.a].p);
  double* d = static_cast<double*>(r[s.d].p);
  const uint64_t key = c.keys[s.key];
  const auto low = uint32_t(key), high = uint32_t(key >> 32);
  const uint32_t threshold = s.threshold;
  const double scale = double(s.scale);
  for (int64_t row = 0; row < c.rows[0]; ++row, a += r[s.a].rs, d += r[s.d].rs) {
    const uint32_t first = c.element + uint32_t(row) * c.element_stride;
    MP_IVDEP for (int64_t i = 0; i < c.cols[0]; ++i) {  // random_bits of base/random.h
      uint32_t x = (first + uint32_t(i)) ^ low;
      x = (x ^ (x >> 16)) * 0x7feb352du;
      x = (x ^ (x >> 15)) * 0x846ca68bu;
      x = (x ^ (x >> 16)) + high;
      x = (x ^ (x >> 16)) * 0x7feb352du;
      x = (x ^ (x >> 15)) * 0x846ca68bu;
      x ^= x >> 16;
      d[i] = x >= threshold ? a[i] * scale : 0.0;
    }
  }
}

// Two operands that do not vary along the row make a result that does not: one of them always does here.
template <class T, class D, class F>
StepFunction pick2(bool va, bool vb) {
  return !va ? binary<T, D, F, false, true> : vb ? binary<T, D, F, true, true> : binary<T, D, F, true, false>;
}
template <class T>
StepFunction pick3(bool va, bool vb, bool vc) {
  if (va)
    return vb ? (vc ? choose<T, true, true> : choose<T, true, false>)
              : (vc ? choose<T, false, true> : choose<T, false, false>);
  return vb ? (vc ? choose_rows<T, true, true> : choose_rows<T, true, false>)
            : (vc ? choose_rows<T, false, true> : choose_rows<T, false, false>);
}

template <class T>
StepFunction step_on(int kind, bool va, bool vb, bool vc) {
  switch (kind) {
    case kStep_copy:
      return va ? unary<T, T_copy> : spread<T>;
    case kStep_select:
      return pick3<T>(va, vb, vc);
#define MP_ONE(name) \
  case kStep_##name: \
    return unary<T, T_##name>;
#define MP_TWO(name) \
  case kStep_##name: \
    return pick2<T, T, T_##name>(va, vb);
      MP_ONE(negate)
      MP_ONE(square)
      MP_ONE(abs)
      MP_ONE(sign)
      MP_ONE(relu) MP_TWO(add) MP_TWO(subtract) MP_TWO(multiply) MP_TWO(maximum) MP_TWO(minimum) MP_TWO(gate)
          MP_TWO(floor_divide) MP_TWO(remainder)
#define MP_COMPARE(name, formula) \
  case kStep_##name:              \
    return pick2<T, float, T_##name>(va, vb);
#include "ops/functions.inc"
  }
  if constexpr (kWhole<T>) {
    switch (kind) { MP_TWO(left_shift) MP_TWO(right_shift) MP_TWO(bitwise_and) MP_TWO(bitwise_or) MP_TWO(bitwise_xor) }
  } else {
    switch (kind) {
      case kStep_dropout:
        return va ? dropout : nullptr;
        MP_ONE(exp)
        MP_ONE(log)
        MP_ONE(log1p)
        MP_ONE(sqrt)
        MP_ONE(rsqrt) MP_ONE(tanh) MP_ONE(sigmoid) MP_ONE(erf) MP_TWO(divide) MP_TWO(power)
            MP_TWO(sigmoid_cross_entropy)
    }
  }
  return nullptr;
}

StepFunction step(Lanes lanes, int kind, bool va, bool vb, bool vc) {
  switch (lanes) {
    case Lanes::kDouble:
      return step_on<double>(kind, va, vb, vc);
    case Lanes::kInt32:
      return step_on<int32_t>(kind, va, vb, vc);
    case Lanes::kInt64:
      return step_on<int64_t>(kind, va, vb, vc);
    case Lanes::kUInt64:
      return step_on<uint64_t>(kind, va, vb, vc);
    case Lanes::kFloat:
      break;
  }
  return nullptr;
}

// --- memory and lanes ---

template <class T>
void load_as(const Step& s, const Ref* r, const Chunk& c) {
  map<T, Lane<T>>(s, r, c, [](const T* a, Lane<T>* d, int64_t n) __attribute__((always_inline)) { widen<T>(a, d, n); });
}
template <class T>
void store_as(const Step& s, const Ref* r, const Chunk& c) {
  map<Lane<T>, T>(s, r, c,
                  [](const Lane<T>* a, T* d, int64_t n) __attribute__((always_inline)) { narrow<T>(a, d, n); });
}
/// Through the narrow type and back.
template <class T>
void settle_as(const Step& s, const Ref* r, const Chunk& c) {
  map<Lane<T>, Lane<T>>(s, r, c, [](const Lane<T>* a, Lane<T>* d, int64_t n) __attribute__((always_inline)) {
    MP_IVDEP for (int64_t i = 0; i < n; ++i) d[i] = widened(narrowed<T>(a[i]));
  });
}

#define MP_NARROW(f)      \
  case Stored::kBFloat16: \
    return f<BFloat>;     \
  case Stored::kFloat16:  \
    return f<Half>;       \
  case Stored::kInt8:     \
    return f<int8_t>;     \
  case Stored::kInt16:    \
    return f<int16_t>;    \
  case Stored::kUInt8:    \
    return f<uint8_t>;    \
  case Stored::kUInt16:   \
    return f<uint16_t>;   \
  case Stored::kUInt32:   \
    return f<uint32_t>;   \
  default:                \
    return nullptr;
StepFunction load(Stored type) {
  switch (type) {
    case Stored::kBool:
      return load_as<Truth>;
      MP_NARROW(load_as)
  }
}
StepFunction store(Stored type) {
  switch (type) {
    case Stored::kBool:
      return store_as<Truth>;
      MP_NARROW(store_as)
  }
}
StepFunction settle(Stored type) {
  switch (type) { MP_NARROW(settle_as) }
}

// --- between lanes: base/convert.h has the rules ---

template <class Int, class Float>
MP_INLINE Int truncated(Float v) {
  constexpr Int kLeast = sizeof(Int) == 4 ? Int(0x80000000u) : Int(0x8000000000000000u);
  const bool fits = v >= Float(kLeast) && v < -Float(kLeast);
  return fits ? Int(fits ? v : Float(0)) : kLeast;
}
struct ToOdd {};  // a float whose last bit says that something was cut off, so that rounding it further is right
MP_INLINE float odd(double d) {
  const auto f = float(d);
  const auto back = double(f);
  const uint32_t u = __builtin_bit_cast(uint32_t, f);
  const bool beyond = __builtin_fabs(back) > __builtin_fabs(d);
  const uint32_t other = u & 1 ? u : beyond ? u - 1 : u + 1;
  return back == d || d != d ? f : __builtin_bit_cast(float, other);
}
template <class A>
MP_INLINE double sticky(A v) {
  if constexpr (sizeof(A) == 4)
    return double(v);
  else {
    const bool negative = v < A(0);
    uint64_t u = negative ? 0 - uint64_t(v) : uint64_t(v);
    if (u >> 53) u = (u >> 11 | uint64_t((u & 2047) != 0)) << 11;
    return negative ? -double(u) : double(u);
  }
}
template <class A, class To>
struct Cast {
  using D = To;
  static MP_INLINE To f(A v) {
    if constexpr (kWhole<A> || !kWhole<To>)
      return To(v);
    else if constexpr (!kSigned<To>) {
      constexpr auto kHigh = A(9223372036854775808.0);
      return v >= kHigh ? uint64_t(truncated<int64_t>(v - kHigh)) ^ 0x8000000000000000u
                        : uint64_t(truncated<int64_t>(v));
    } else
      return truncated<To>(v);
  }
};
template <class A>
struct Cast<A, ToOdd> {
  using D = float;
  static MP_INLINE float f(A v) {
    if constexpr (kWhole<A>)
      return odd(sticky(v));
    else
      return odd(double(v));
  }
};
template <class A>
struct Cast<A, Truth> {
  using D = float;
  static MP_INLINE float f(A v) { return v != A(0) ? 1.f : 0.f; }
};
template <class A>
struct Cast<A, uint32_t> {
  using D = int64_t;
  static MP_INLINE int64_t f(A v) {
    if constexpr (kWhole<A>)
      return int64_t(uint32_t(v));
    else {
      constexpr auto kHigh = A(2147483648.0);
      return int64_t(v >= kHigh ? uint32_t(truncated<int32_t>(v - kHigh)) ^ 0x80000000u
                                : uint32_t(truncated<int32_t>(v)));
    }
  }
};
template <class A, class To>
void cast_as(const Step& s, const Ref* r, const Chunk& c) {
  using C = Cast<A, To>;
  map<A, typename C::D>(s, r, c, [](const A* a, typename C::D* d, int64_t n) __attribute__((always_inline)) {
    MP_IVDEP for (int64_t i = 0; i < n; ++i) d[i] = C::f(a[i]);
  });
}
template <class A>
StepFunction cast_from(Stored to) {
  switch (to) {
    case Stored::kFloat32:
      return cast_as<A, float>;
    case Stored::kFloat64:
      return cast_as<A, double>;
    case Stored::kBFloat16:
    case Stored::kFloat16:
      return cast_as<A, ToOdd>;
    case Stored::kInt8:
    case Stored::kInt16:
    case Stored::kInt32:
    case Stored::kUInt8:
    case Stored::kUInt16:
      return cast_as<A, int32_t>;
    case Stored::kInt64:
      return cast_as<A, int64_t>;
    case Stored::kUInt32:
      return cast_as<A, uint32_t>;
    case Stored::kUInt64:
      return cast_as<A, uint64_t>;
    case Stored::kBool:
      break;
  }
  return cast_as<A, Truth>;
}
StepFunction cast(Lanes from, Stored to) {
  switch (from) {
    case Lanes::kDouble:
      return cast_from<double>(to);
    case Lanes::kInt32:
      return cast_from<int32_t>(to);
    case Lanes::kInt64:
      return cast_from<int64_t>(to);
    case Lanes::kUInt64:
      return cast_from<uint64_t>(to);
    case Lanes::kFloat:
      break;
  }
  return cast_from<float>(to);
}

// --- sums of doubles ---

template <bool va>
void sum_rows_step(const Step& s, const Ref* r, const Chunk& c) {
  const int64_t rows = c.rows[0], cols = c.cols[0];
  double* d = static_cast<double*>(r[s.d].p);
  const double* a = static_cast<const double*>(r[s.a].p);
  for (int64_t row = 0; row < rows; ++row, a += r[s.a].rs) {
    const double held = *a;
    const bool first = c.first_row && row == 0;
    MP_IVDEP for (int64_t i = 0; i < cols; ++i) d[i] = (first ? 0.0 : d[i]) + (va ? a[i] : held);
  }
}
template <bool va>
MP_INLINE double sum_row(const double* a, int64_t cols) {
  if constexpr (!va) return *a * double(cols);
  constexpr int kChains = 32;
  double t[kChains] = {};
  int64_t i = 0;
  for (; i + kChains <= cols; i += kChains)
    for (int k = 0; k < kChains; ++k) t[k] += a[i + k];
  for (int k = 0; i < cols; ++i, ++k) t[k] += a[i];
  for (int n = kChains / 2; n; n /= 2)
    for (int k = 0; k < n; ++k) t[k] += t[k + n];
  return t[0];
}
template <bool va>
void sum_cols_step(const Step& s, const Ref* r, const Chunk& c) {
  double* d = static_cast<double*>(r[s.d].p);
  const double* a = static_cast<const double*>(r[s.a].p);
  for (int64_t row = 0; row < c.rows[0]; ++row, a += r[s.a].rs) {
    const double t = sum_row<va>(a, c.cols[0]);
    d[row] = c.first_col ? t : d[row] + t;
  }
}
template <bool va>
void sum_all_step(const Step& s, const Ref* r, const Chunk& c) {
  double* d = static_cast<double*>(r[s.d].p);
  const double* a = static_cast<const double*>(r[s.a].p);
  double t = c.first ? 0 : *d;
  for (int64_t row = 0; row < c.rows[0]; ++row, a += r[s.a].rs) t += sum_row<va>(a, c.cols[0]);
  *d = t;
}

void scale_values(double* x, int64_t n, double s) {
  for (int64_t i = 0; i < n; ++i) x[i] *= s;
}
void combine_values(double* out, const double* x, int64_t n, int64_t count, double s) {
  for (int64_t i = 0; i < n; ++i) {
    double t = x[i];
    for (int64_t k = 1; k < count; ++k) t += x[k * n + i];
    out[i] = t * s;
  }
}

}  // namespace

extern const TypedSteps typed_steps;
const TypedSteps typed_steps = {
    step,
    load,
    store,
    cast,
    settle,
    [](bool va) -> StepFunction { return va ? sum_rows_step<true> : sum_rows_step<false>; },
    [](bool va) -> StepFunction { return va ? sum_cols_step<true> : sum_cols_step<false>; },
    [](bool va) -> StepFunction { return va ? sum_all_step<true> : sum_all_step<false>; },
    scale_values,
    combine_values,
};

}  // namespace millpond::backend::cpu::MP_ISA
