// Functions on vectors. Largest errors against double, all 2^32 floats tried for each (bench/kernels/math.cc), AVX2 and AVX-512:
//   exp 1.2 ulp, log 1.3, log1p 1.6, tanh 2.1, sigmoid 2.2, erf 1.3. Subnormal results of exp are right within one subnormal unit.
// Special values are the C library's: exp(-inf) = 0, log(0) = -inf, log(-1) = NaN, NaN stays NaN.
#pragma once
#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {

MP_INLINE V exp(V x) {
  // x = n ln2 + r, |r| <= ln2 / 2; exp(r) = 1 + r + r^2 q(r). Clamped so that n stays small; NaN passes through min and
  // max.
  x = max(set(-104.f), min(set(89.f), x));
  const V n = round(mul(x, set(1.44269504f)));
  V r = fnma(n, set(0.693359375f), x);
  r = fnma(n, set(-2.12194440e-4f), r);
  V q = set(0.0013950602f);
  q = fma(q, r, set(0.008368954f));
  q = fma(q, r, set(0.041666206f));
  q = fma(q, r, set(0.16666518f));
  q = fma(q, r, set(0.5f));
  return scale2(add(fma(mul(r, r), q, r), set(1.f)), n);
}

/// Splits x > 0 into m 2^e with m in [sqrt(1/2), sqrt(2)) and returns e.
MP_INLINE V split(V x, V& m) {
#if defined(__AVX512F__)
  V e = _mm512_getexp_ps(x);
  m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
  const Bool high = gt(m, set(1.41421356f));
  e = _mm512_mask_add_ps(e, high, e, set(1.f));
  m = _mm512_mask_mul_ps(m, high, m, set(0.5f));
  return e;
#else
  const Bool small = lt(x, set(1.17549435e-38f));  // subnormal: bring it up first
  const V y = select(small, mul(x, set(8388608.f)), x);
  const I b = addi(as_int(y), seti(0x3f800000 - 0x3f3504f3));
  const V e = to_float(subi(shr<23>(b), seti(127)));
  m = as_float(addi(andi(b, seti(0x007fffff)), seti(0x3f3504f3)));
  return sub(e, zero_unless(small, set(23.f)));
#endif
}

MP_INLINE V log(V x) {
  V m;
  const V e = split(x, m), f = sub(m, set(1.f)), s = mul(f, f);
  V p = set(-0.076344974f);
  p = fma(p, f, set(0.12761582f));
  p = fma(p, f, set(-0.13160184f));
  p = fma(p, f, set(0.14201757f));
  p = fma(p, f, set(-0.16623357f));
  p = fma(p, f, set(0.20001227f));
  p = fma(p, f, set(-0.2500082f));
  p = fma(p, f, set(0.3333333f));
  // f - f^2/2 + f^3 p + e ln2, smallest first
  V y = fma(mul(f, s), p, mul(e, set(-2.12194440e-4f)));
  y = fnma(s, set(0.5f), y);
  y = add(f, y);
  y = fma(e, set(0.693359375f), y);
  y = select(eq(x, zero()), set(-__builtin_inff()), y);
  y = select(eq(x, set(__builtin_inff())), x, y);
  return select(either(lt(x, zero()), unordered(x, x)), set(__builtin_nanf("")), y);
}

MP_INLINE V log1p(V x) {
  // log(u) for the rounded u = 1 + x, plus what the rounding took away
  const V u = add(set(1.f), x), lost = sub(x, sub(u, set(1.f)));
  const V y = add(log(u), div(lost, u));
  const V inf = set(__builtin_inff());
  return select(either(eq(x, inf), eq(u, zero())), log(u), y);
}

MP_INLINE V tanh(V x) {
  const V a = abs(x), s = mul(x, x);
  V p = set(-0.0057170424f);
  p = fma(p, s, set(0.020650584f));
  p = fma(p, s, set(-0.053743497f));
  p = fma(p, s, set(0.13331491f));
  p = fma(p, s, set(-0.33333284f));
  const V near = fma(mul(x, s), p, x);
  const V far = copysign(sub(set(1.f), div(set(2.f), add(exp(add(a, a)), set(1.f)))), x);
  return select(lt(a, set(0.625f)), near, far);
}

MP_INLINE V sigmoid(V x) { return div(set(1.f), add(set(1.f), exp(neg(x)))); }

// Coefficients by N. Juffa (public domain): 1 - exp(polynomial) outside, an odd polynomial inside.
MP_INLINE V erf(V x) {
  const V t = abs(x), s = mul(x, x);
  V r = fma(set(-1.72853470e-5f), t, set(3.83197126e-4f));
  const V u = fma(set(-3.88396438e-3f), t, set(2.42546219e-2f));
  r = fma(r, s, u);
  r = fma(r, t, set(-1.06777877e-1f));
  r = fma(r, t, set(-6.34846687e-1f));
  r = fma(r, t, set(-1.28717512e-1f));
  r = fma(r, t, neg(t));
  // far out the polynomial turns round; erf is 1 there
  r = select(gt(t, set(4.f)), set(-20.f), r);
  const V far = copysign(sub(set(1.f), exp(r)), x);
  V q = set(-5.96761703e-4f);
  q = fma(q, s, set(4.99119423e-3f));
  q = fma(q, s, set(-2.67681349e-2f));
  q = fma(q, s, set(1.12819925e-1f));
  q = fma(q, s, set(-3.76125336e-1f));
  q = fma(q, s, set(1.28379166e-1f));
  const V near = fma(q, x, x);
  return select(unordered(x, x), x, select(gt(t, set(0.927734375f)), far, near));
}

/// random_bits(key, element) of base/random.h on lanes: the same bits.
MP_INLINE I random_bits(uint64_t key, I element) {
  const I a = seti(0x7feb352d), b = seti(int32_t(0x846ca68bu));
  I x = xori(element, seti(int32_t(uint32_t(key))));
  x = muli(xori(x, shr<16>(x)), a);
  x = muli(xori(x, shr<15>(x)), b);
  x = addi(xori(x, shr<16>(x)), seti(int32_t(uint32_t(key >> 32))));
  x = muli(xori(x, shr<16>(x)), a);
  x = muli(xori(x, shr<15>(x)), b);
  return xori(x, shr<16>(x));
}

}  // namespace millpond::backend::cpu::MP_ISA
