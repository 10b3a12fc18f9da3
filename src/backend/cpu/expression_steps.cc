#include "backend/cpu/expression_steps.h"

#include "backend/cpu/math.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

// Every element-wise function on vectors: V f(V) or V f(V, V).
#define MP_F(name, ...) \
  struct F_##name {     \
    static MP_INLINE V f(__VA_ARGS__)
#define MP_END \
  }            \
  ;
MP_F(copy, V x) { return x; }
MP_END
MP_F(negate, V x) { return neg(x); }
MP_END
MP_F(exp, V x) { return exp(x); }
MP_END
MP_F(log, V x) { return log(x); }
MP_END
MP_F(log1p, V x) { return log1p(x); }
MP_END
MP_F(sqrt, V x) { return sqrt(x); }
MP_END
MP_F(rsqrt, V x) { return div(set(1), sqrt(x)); }
MP_END
MP_F(square, V x) { return mul(x, x); }
MP_END
MP_F(abs, V x) { return abs(x); }
MP_END
MP_F(sign, V x) {
  const V y = sub(zero_unless(gt(x, zero()), set(1)), zero_unless(lt(x, zero()), set(1)));
  return select(unordered(x, x), x, y);
}
MP_END
MP_F(tanh, V x) { return tanh(x); }
MP_END
MP_F(sigmoid, V x) { return sigmoid(x); }
MP_END
MP_F(relu, V x) { return max(zero(), x); }
MP_END  // NaN passes: it is the second operand
MP_F(erf, V x) {
  return erf(x);
}
MP_END
MP_F(cast_bool, V x) { return zero_unless(ne(x, zero()), set(1)); }
MP_END
MP_F(add, V x, V y) { return add(x, y); }
MP_END
MP_F(subtract, V x, V y) { return sub(x, y); }
MP_END
MP_F(multiply, V x, V y) { return mul(x, y); }
MP_END
MP_F(divide, V x, V y) { return div(x, y); }
MP_END
MP_F(maximum, V x, V y) { return select(unordered(x, x), x, max(x, y)); }
MP_END
MP_F(minimum, V x, V y) { return select(unordered(x, x), x, min(x, y)); }
MP_END
MP_F(gate, V x, V y) { return zero_unless(gt(y, zero()), x); }
MP_END
MP_F(sigmoid_cross_entropy, V x, V y) { return add(fnma(x, y, max(x, zero())), log1p(exp(neg(abs(x))))); }
MP_END
MP_F(greater, V x, V y) { return zero_unless(gt(x, y), set(1)); }
MP_END
MP_F(greater_equal, V x, V y) { return zero_unless(ge(x, y), set(1)); }
MP_END
MP_F(equal, V x, V y) { return zero_unless(eq(x, y), set(1)); }
MP_END
MP_F(add_relu, V x, V y) { return max(zero(), add(x, y)); }
MP_END
// Through memory: the C library's powf, a lane at a time. Squares, the usual case, are worth a test.
MP_F(power, V x, V y) {
  if (!any(ne(y, set(2)))) return mul(x, x);
  alignas(64) float a[kLanes], b[kLanes];
  store(a, x), store(b, y);
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_powf(a[i], b[i]);
  return load(a);
}
MP_END

// Through memory, a lane at a time; the formulas of ops/apply.h.
MP_INLINE V each_lane(V x, V y, float (*f)(float, float)) {
  alignas(64) float a[kLanes], b[kLanes];
  store(a, x), store(b, y);
  for (int i = 0; i < kLanes; ++i) a[i] = f(a[i], b[i]);
  return load(a);
}
float remainder_of(float x, float y) {
  const float r = __builtin_fmodf(x, y);
  if (r == 0) return y == 0 ? r : __builtin_copysignf(0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
float floor_quotient_of(float x, float y) {
  if (y == 0) return x / y;
  const float r = __builtin_fmodf(x, y);
  float q = (x - r) / y;
  if (r != 0 && (r < 0) != (y < 0)) q -= 1;
  if (q == 0) return __builtin_copysignf(0, x / y);
  const float whole = __builtin_floorf(q);
  return q - whole > 0.5f ? whole + 1 : whole;
}
MP_F(floor_divide, V x, V y) { return each_lane(x, y, floor_quotient_of); }
MP_END
MP_F(remainder, V x, V y) { return each_lane(x, y, remainder_of); }
MP_END
// Of bool, which is 1 or 0 here.
MP_F(bitwise_and, V x, V y) { return min(x, y); }
MP_END
MP_F(bitwise_or, V x, V y) { return max(x, y); }
MP_END
MP_F(bitwise_xor, V x, V y) { return zero_unless(ne(x, y), set(1)); }
MP_END

template <bool vector>
struct Operand {
  const float* p;
  int64_t rs;
  V held;
  MP_INLINE Operand(const Ref& r) : p(static_cast<const float*>(r.p)), rs(r.rs), held(vector ? zero() : set(*p)) {}
  template <class M>
  MP_INLINE V at(int64_t i, M m) const {
    if constexpr (vector) return load(p + i, m);
    return held;
  }
  MP_INLINE void next() {
    p += rs;
    if constexpr (!vector) held = set(*p);
  }
  MP_INLINE bool packed(int64_t cols) const { return rs == (vector ? cols : 0); }
};

// Runs f(d + i, i, mask) over rows x cols; one long row where nothing lies between the rows.
template <class F, class... O>
MP_INLINE void sweep(const Step& s, const Ref* r, const Chunk& c, F&& f, O&&... operands) {
  int64_t rows = c.rows[int(s.span)], cols = c.cols[int(s.span)];
  float* d = static_cast<float*>(r[s.d].p);
  const int64_t ds = r[s.d].rs;
  if (rows > 1 && ds == cols && (operands.packed(cols) && ...)) cols *= rows, rows = 1;
  for (;;) {
    each_vector(cols, [&](int64_t i, auto m) { store(d + i, f(i, m), m); });
    if (--rows <= 0) return;
    d += ds;
    (operands.next(), ...);
  }
}

template <class F>
void unary(const Step& s, const Ref* r, const Chunk& c) {
  Operand<true> a(r[s.a]);
  sweep(s, r, c, [&](int64_t i, auto m) { return F::f(a.at(i, m)); }, a);
}
void spread(const Step& s, const Ref* r, const Chunk& c) {
  Operand<false> a(r[s.a]);
  sweep(s, r, c, [&](int64_t i, auto m) { return a.at(i, m); }, a);
}
template <class F, bool va, bool vb>
void binary(const Step& s, const Ref* r, const Chunk& c) {
  Operand<va> a(r[s.a]);
  Operand<vb> b(r[s.b]);
  sweep(s, r, c, [&](int64_t i, auto m) { return F::f(a.at(i, m), b.at(i, m)); }, a, b);
}
template <bool va, bool vb, bool vc>
void choose(const Step& s, const Ref* r, const Chunk& c) {
  Operand<va> a(r[s.a]);
  Operand<vb> x(r[s.b]);
  Operand<vc> y(r[s.c]);
  sweep(s, r, c, [&](int64_t i, auto m) { return select(ne(a.at(i, m), zero()), x.at(i, m), y.at(i, m)); }, a, x, y);
}

// Dropout of f's value: element numbers run on from row to row, so rows are never joined unless the tensor's are.
template <class F, class... O>
MP_INLINE void sweep_dropout(const Step& s, const Ref* r, const Chunk& c, F&& f, O&&... operands) {
  const int64_t rows = c.rows[0], cols = c.cols[0];
  float* d = static_cast<float*>(r[s.d].p);
  const uint64_t key = c.keys[s.key];
  const V scale = set(s.scale);
  const I threshold = seti(int32_t(s.threshold));
  for (int64_t row = 0; row < rows; ++row) {
    const I first = addi(lanes(), seti(int32_t(c.element + uint32_t(row) * c.element_stride)));
    each_vector(cols, [&](int64_t i, auto m) {
      const Bool kept = geu(random_bits(key, addi(first, seti(int32_t(i)))), threshold);
      store(d + i, zero_unless(kept, mul(f(i, m), scale)), m);
    });
    if (row + 1 == rows) break;
    d += r[s.d].rs;
    (operands.next(), ...);
  }
}
template <bool va>
void dropout(const Step& s, const Ref* r, const Chunk& c) {
  Operand<va> a(r[s.a]);
  sweep_dropout(s, r, c, [&](int64_t i, auto m) { return a.at(i, m); }, a);
}
template <bool va, bool vb>
void add_relu_dropout(const Step& s, const Ref* r, const Chunk& c) {
  Operand<va> a(r[s.a]);
  Operand<vb> b(r[s.b]);
  sweep_dropout(s, r, c, [&](int64_t i, auto m) { return max(zero(), add(a.at(i, m), b.at(i, m))); }, a, b);
}
template <bool va, bool vb>
void gate_dropout(const Step& s, const Ref* r, const Chunk& c) {
  Operand<va> a(r[s.a]);
  Operand<vb> b(r[s.b]);
  sweep_dropout(s, r, c, [&](int64_t i, auto m) { return zero_unless(gt(b.at(i, m), zero()), a.at(i, m)); }, a, b);
}

template <class F>
StepFunction pick2(bool va, bool vb) {
  return !va ? binary<F, false, true> : vb ? binary<F, true, true> : binary<F, true, false>;
}

StepFunction step(int kind, bool va, bool vb, bool vc) {
  switch (kind) {
    case kStep_copy:
      return va ? unary<F_copy> : spread;
    case kStep_cast_bool:
      return unary<F_cast_bool>;
#define MP_UNARY(name, formula) \
  case kStep_##name:            \
    return unary<F_##name>;
#define MP_BINARY(name, formula) \
  case kStep_##name:             \
    return pick2<F_##name>(va, vb);
#define MP_COMPARE(name, formula) \
  case kStep_##name:              \
    return pick2<F_##name>(va, vb);
#include "ops/functions.inc"
    case kStep_bitwise_and:
      return pick2<F_bitwise_and>(va, vb);
    case kStep_bitwise_or:
      return pick2<F_bitwise_or>(va, vb);
    case kStep_bitwise_xor:
      return pick2<F_bitwise_xor>(va, vb);
    case kStep_add_relu:
      return pick2<F_add_relu>(va, vb);
    case kStep_select:
      if (va)
        return vb ? (vc ? choose<true, true, true> : choose<true, true, false>)
                  : (vc ? choose<true, false, true> : choose<true, false, false>);
      return vb ? (vc ? choose<false, true, true> : choose<false, true, false>) : choose<false, false, true>;
    case kStep_dropout:
      return va ? dropout<true> : dropout<false>;
    case kStep_add_relu_dropout:
      return !va ? add_relu_dropout<false, true> : vb ? add_relu_dropout<true, true> : add_relu_dropout<true, false>;
    case kStep_gate_dropout:
      if (!va) return vb ? gate_dropout<false, true> : gate_dropout<false, false>;
      return vb ? gate_dropout<true, true> : gate_dropout<true, false>;
  }
  return nullptr;
}

template <class T, class F>
MP_INLINE void convert_in(const Step& s, const Ref* r, const Chunk& c, F&& f) {
  const int64_t rows = c.rows[int(s.span)], cols = c.cols[int(s.span)];
  for (int64_t row = 0; row < rows; ++row) {
    const T* a = static_cast<const T*>(r[s.a].p) + row * r[s.a].rs;
    float* d = static_cast<float*>(r[s.d].p) + row * r[s.d].rs;
    f(a, d, cols);
  }
}
void from_int32(const Step& s, const Ref* r, const Chunk& c) {
  convert_in<int32_t>(s, r, c, [](const int32_t* a, float* d, int64_t n) {
    each_vector(n, [&](int64_t i, auto m) { store(d + i, to_float(loadi(a + i, m)), m); });
  });
}
void from_int64(const Step& s, const Ref* r, const Chunk& c) {
  convert_in<int64_t>(s, r, c, [](const int64_t* a, float* d, int64_t n) {
    for (int64_t i = 0; i < n; ++i) d[i] = float(a[i]);
  });
}
void from_byte(const Step& s, const Ref* r, const Chunk& c) {
  convert_in<uint8_t>(s, r, c, [](const uint8_t* a, float* d, int64_t n) {
    each_vector(n, [&](int64_t i, auto m) { store(d + i, to_float(load_bytes(a + i, m)), m); });
  });
}

// The value of a result may vary only along rows or columns, or not at all: it is spread on the way out.
template <class T, class F>
MP_INLINE void convert_out(const Step& s, const Ref* r, const Chunk& c, F&& f) {
  const int64_t rows = c.rows[int(s.span)], cols = c.cols[int(s.span)];
  for (int64_t row = 0; row < rows; ++row)
    f(static_cast<const float*>(r[s.a].p) + row * r[s.a].rs, static_cast<T*>(r[s.d].p) + row * r[s.d].rs, cols);
}
void to_bool(const Step& s, const Ref* r, const Chunk& c) {
  convert_out<uint8_t>(s, r, c, [](const float* a, uint8_t* d, int64_t n) {
    each_vector(
        n, [&](int64_t i, auto m) { store_bytes(d + i, selecti(ne(load(a + i, m), zero()), seti(1), seti(0)), m); });
  });
}

template <bool va>
void sum_rows_step(const Step& s, const Ref* r, const Chunk& c) {
  const int64_t rows = c.rows[0], cols = c.cols[0];
  float* d = static_cast<float*>(r[s.d].p);
  const int64_t rs = r[s.a].rs;
  each_vector(cols, [&](int64_t i, auto m) {
    const float* a = static_cast<const float*>(r[s.a].p) + (va ? i : 0);
    V t = zero();
    for (int64_t row = 0; row < rows; ++row, a += rs) {
      if constexpr (va)
        t = add(t, load(a, m));
      else
        t = add(t, set(*a));
    }
    store(d + i, c.first_row ? t : add(load(d + i, m), t), m);
  });
}

template <bool va>
MP_INLINE float sum_row(const float* a, int64_t cols) {
  if constexpr (!va) return *a * float(cols);
  V t0 = zero(), t1 = t0, t2 = t0, t3 = t0;  // four chains: addition takes four cycles
  int64_t i = 0;
  for (; i + 4 * kLanes <= cols; i += 4 * kLanes) {
    t0 = add(t0, load(a + i)), t1 = add(t1, load(a + i + kLanes));
    t2 = add(t2, load(a + i + 2 * kLanes)), t3 = add(t3, load(a + i + 3 * kLanes));
  }
  each_vector(cols - i, [&](int64_t k, auto m) { t0 = add(t0, load(a + i + k, m)); });
  return sum(add(add(t0, t1), add(t2, t3)));
}
template <bool va>
void sum_cols_step(const Step& s, const Ref* r, const Chunk& c) {
  float* d = static_cast<float*>(r[s.d].p);
  const float* a = static_cast<const float*>(r[s.a].p);
  for (int64_t row = 0; row < c.rows[0]; ++row, a += r[s.a].rs) {
    const float t = sum_row<va>(a, c.cols[0]);
    d[row] = c.first_col ? t : d[row] + t;
  }
}
template <bool va>
void sum_all_step(const Step& s, const Ref* r, const Chunk& c) {
  double* d = static_cast<double*>(r[s.d].p);
  const float* a = static_cast<const float*>(r[s.a].p);
  int64_t rows = c.rows[0], cols = c.cols[0];
  if (va && r[s.a].rs == cols) cols *= rows, rows = 1;
  double t = c.first ? 0 : *d;
  for (int64_t row = 0; row < rows; ++row, a += r[s.a].rs) t += double(sum_row<va>(a, cols));
  *d = t;
}

// --- threaded code for one vector ---

constexpr int kTinyRegisters = 64;
struct TinyState {
  V r[kTinyRegisters];
  const TinyCall* call;
  Tail tail;
};
using TinyFunction = void (*)(const TinyOp*, TinyState&, V);
#define MP_NEXT(value)                                                       \
  {                                                                          \
    const V next_value = (value);                                            \
    return reinterpret_cast<TinyFunction>(op[1].run)(op + 1, s, next_value); \
  }

MP_INLINE V done(const TinyOp* op, TinyState& s, V v) {
  store(reinterpret_cast<float*>(&s.r[op->d]), v);
  return v;
}
template <class F, bool last>
void tiny_unary(const TinyOp* op, TinyState& s, V v) {
  MP_NEXT(done(op, s, F::f(last ? v : s.r[op->a])))
}
template <class F, bool la, bool lb>
void tiny_binary(const TinyOp* op, TinyState& s, V v) {
  MP_NEXT(done(op, s, F::f(la ? v : s.r[op->a], lb ? v : s.r[op->b])))
}
void tiny_select(const TinyOp* op, TinyState& s, V) {
  MP_NEXT(done(op, s, select(ne(s.r[op->a], zero()), s.r[op->b], s.r[op->c])))
}
void tiny_dropout(const TinyOp* op, TinyState& s, V) {
  auto mix = [](uint64_t z) {  // mix64 of base/random.h
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  };
  const uint32_t counter = *static_cast<const uint32_t*>(s.call->in[op->counter]);  // also the low half of an int64
  const uint64_t key = mix(mix(op->salt) ^ counter);
  const Bool kept = geu(random_bits(key, lanes()), seti(int32_t(op->threshold)));
  MP_NEXT(done(op, s, zero_unless(kept, mul(s.r[op->a], set(op->scale)))))
}
void tiny_constant(const TinyOp* op, TinyState& s, V) { MP_NEXT(done(op, s, set(op->scale))) }
void tiny_load(const TinyOp* op, TinyState& s, V) {
  MP_NEXT(done(op, s, load(static_cast<const float*>(s.call->in[op->a]), s.tail)))
}
void tiny_load_product(const TinyOp* op, TinyState& s, V) { MP_NEXT(done(op, s, load(s.call->product, s.tail))) }
void tiny_load_scalar(const TinyOp* op, TinyState& s, V) {
  MP_NEXT(done(op, s, set(*static_cast<const float*>(s.call->in[op->a]))))
}
void tiny_load_int32(const TinyOp* op, TinyState& s, V) {
  MP_NEXT(done(op, s, to_float(loadi(static_cast<const int32_t*>(s.call->in[op->a]), s.tail))))
}
void tiny_load_byte(const TinyOp* op, TinyState& s, V) {
  MP_NEXT(done(op, s, to_float(load_bytes(static_cast<const uint8_t*>(s.call->in[op->a]), s.tail))))
}
template <bool last>
void tiny_store(const TinyOp* op, TinyState& s, V v) {
  const V x = last ? v : s.r[op->a];
  store(static_cast<float*>(s.call->out[op->d]), x, s.tail);
  MP_NEXT(v)
}
void tiny_store_bool(const TinyOp* op, TinyState& s, V v) {
  store_bytes(static_cast<uint8_t*>(s.call->out[op->d]), selecti(ne(s.r[op->a], zero()), seti(1), seti(0)), s.tail);
  MP_NEXT(v)
}
template <bool last>
void tiny_sum(const TinyOp* op, TinyState& s, V v) {
  *static_cast<float*>(s.call->out[op->d]) = sum(keep(last ? v : s.r[op->a], s.tail)) * op->scale;
  MP_NEXT(v)
}
void tiny_end(const TinyOp*, TinyState&, V) {}

template <class F>
TinyFunction tiny_pick1(TinyKind k) {
  return k.a == TinyKind::kLast ? tiny_unary<F, true> : tiny_unary<F, false>;
}
template <class F>
TinyFunction tiny_pick2(TinyKind k) {
  if (k.a == TinyKind::kLast) return tiny_binary<F, true, false>;
  return k.b == TinyKind::kLast ? tiny_binary<F, false, true> : tiny_binary<F, false, false>;
}
TinyFunction tiny_function(TinyKind k) {
  switch (k.kind) {
    case kStep_copy:
      return tiny_pick1<F_copy>(k);
    case kStep_cast_bool:
      return tiny_pick1<F_cast_bool>(k);
#define MP_UNARY(name, formula) \
  case kStep_##name:            \
    return tiny_pick1<F_##name>(k);
#define MP_BINARY(name, formula) \
  case kStep_##name:             \
    return tiny_pick2<F_##name>(k);
#define MP_COMPARE(name, formula) \
  case kStep_##name:              \
    return tiny_pick2<F_##name>(k);
#include "ops/functions.inc"
    case kStep_add_relu:
      return tiny_pick2<F_add_relu>(k);
    case kStep_select:
      return tiny_select;
    case kStep_dropout:
      return tiny_dropout;
    case kStep_constant:
      return tiny_constant;
    case kTiny_load:
      return tiny_load;
    case kTiny_load_scalar:
      return tiny_load_scalar;
    case kTiny_load_product:
      return tiny_load_product;
    case kTiny_load_int32:
      return tiny_load_int32;
    case kTiny_load_byte:
      return tiny_load_byte;
    case kTiny_store:
      return k.a == TinyKind::kLast ? tiny_store<true> : tiny_store<false>;
    case kTiny_store_bool:
      return tiny_store_bool;
    case kTiny_sum:
      return k.a == TinyKind::kLast ? tiny_sum<true> : tiny_sum<false>;
    case kTiny_end:
      return tiny_end;
  }
  return nullptr;
}
void (*tiny_op(TinyKind k))() { return reinterpret_cast<void (*)()>(tiny_function(k)); }
void tiny(const TinyOp* ops, const TinyCall& call) {
  TinyState s;
  s.call = &call;
  s.tail = tail(call.n);
  reinterpret_cast<TinyFunction>(ops->run)(ops, s, zero());
}

void scale_values(float* x, int64_t n, float s) {
  each_vector(n, [&](int64_t i, auto m) { store(x + i, mul(load(x + i, m), set(s)), m); });
}
void combine_values(float* out, const float* x, int64_t n, int64_t count, float s) {
  each_vector(n, [&](int64_t i, auto m) {
    V t = load(x + i, m);
    for (int64_t k = 1; k < count; ++k) t = add(t, load(x + k * n + i, m));
    store(out + i, mul(t, set(s)), m);
  });
}

}  // namespace

const ExpressionSteps expression_steps = {
    kLanes,
    tiny_op,
    tiny,
    step,
    from_int32,
    from_int64,
    from_byte,
    to_bool,
    [](bool va) -> StepFunction { return va ? sum_rows_step<true> : sum_rows_step<false>; },
    [](bool va) -> StepFunction { return va ? sum_cols_step<true> : sum_cols_step<false>; },
    [](bool va) -> StepFunction { return va ? sum_all_step<true> : sum_all_step<false>; },
    scale_values,
    combine_values,
};

}  // namespace millpond::backend::cpu::MP_ISA
