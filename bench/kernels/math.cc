// Largest error of each vector function, over every STRIDE-th float of all 2^32 (default 1: about a minute). It is built
// once for each instruction set: math_avx2 and math_avx512.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend/cpu/math.h"

namespace v = millpond::backend::cpu::MP_ISA;

// Error in units of the last place of the exact result; subnormals count in units of the smallest one.
static double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  const float f = float(exact);
  if (std::isinf(f) || std::isinf(got))
    return f == got || (std::isinf(got) && std::fabs(exact) > 3.4028234e38) ? 0 : 1e9;
  int e;
  std::frexp(exact, &e);
  return std::fabs(got - exact) / std::ldexp(1.0, std::fmax(e - 24, -149));
}

template <class F, class G>
static void check(const char* name, F fast, G slow, uint64_t stride) {
  double worst = 0;
  float where = 0;
  for (uint64_t i = 0; i < (1ull << 32); i += stride * v::kLanes) {
    float x[v::kLanes], y[v::kLanes];
    for (int l = 0; l < v::kLanes; ++l) {
      const uint32_t u = uint32_t(i + uint64_t(l) * stride);
      std::memcpy(&x[l], &u, 4);
    }
    v::store(y, fast(v::load(x)));
    for (int l = 0; l < v::kLanes; ++l) {
      const double e = ulps(y[l], slow(double(x[l])));
      if (e > worst) worst = e, where = x[l];
    }
  }
  std::printf("%-8s %.3f ulp at %.9g\n", name, worst, where);
}

int main(int argc, char** argv) {
  const uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  check("exp", [](v::V x) { return v::exp(x); }, [](double x) { return std::exp(x); }, stride);
  check("log", [](v::V x) { return v::log(x); }, [](double x) { return std::log(x); }, stride);
  check("log1p", [](v::V x) { return v::log1p(x); }, [](double x) { return std::log1p(x); }, stride);
  check("tanh", [](v::V x) { return v::tanh(x); }, [](double x) { return std::tanh(x); }, stride);
  check("sigmoid", [](v::V x) { return v::sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }, stride);
  check("erf", [](v::V x) { return v::erf(x); }, [](double x) { return std::erf(x); }, stride);
}
