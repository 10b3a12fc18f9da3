#include "eager/promote.h"

#include <array>
#include <bit>

#include "base/assert.h"

namespace millpond {
namespace eager {
namespace {

// Each dtype and what lies right above it. `whole` and `fraction` are numbers without a dtype of their own.
constexpr int kWhole = 13, kFraction = 14, kCount = 15;
constexpr int of(DType t) { return int(t); }

struct Lattice {
  std::array<uint32_t, kCount> above{};  // bits: everything reached from it, itself among them

  constexpr Lattice() {
    std::array<uint32_t, kCount> next{};
    const auto edge = [&](int from, int to) { next[size_t(from)] |= 1u << to; };
    edge(of(DType::kBool), kWhole);
    edge(kWhole, of(DType::kUInt8)), edge(kWhole, of(DType::kInt8));
    edge(of(DType::kUInt8), of(DType::kInt16)), edge(of(DType::kUInt8), of(DType::kUInt16));
    edge(of(DType::kUInt16), of(DType::kInt32)), edge(of(DType::kUInt16), of(DType::kUInt32));
    edge(of(DType::kUInt32), of(DType::kInt64)), edge(of(DType::kUInt32), of(DType::kUInt64));
    edge(of(DType::kInt8), of(DType::kInt16)), edge(of(DType::kInt16), of(DType::kInt32));
    edge(of(DType::kInt32), of(DType::kInt64));
    edge(of(DType::kInt64), kFraction), edge(of(DType::kUInt64), kFraction);
    edge(kFraction, of(DType::kBFloat16)), edge(kFraction, of(DType::kFloat16));
    edge(of(DType::kBFloat16), of(DType::kFloat32)), edge(of(DType::kFloat16), of(DType::kFloat32));
    edge(of(DType::kFloat32), of(DType::kFloat64));
    for (int i = 0; i < kCount; ++i) above[size_t(i)] = 1u << i | next[size_t(i)];
    for (int round = 0; round < kCount; ++round)
      for (int i = 0; i < kCount; ++i)
        for (int j = 0; j < kCount; ++j)
          if (above[size_t(i)] >> j & 1) above[size_t(i)] |= above[size_t(j)];
  }

  /// The least that lies above both: of all that do, the one from which all others are reached.
  constexpr int join(int x, int y) const {
    const uint32_t both = above[size_t(x)] & above[size_t(y)];
    for (int i = 0; i < kCount; ++i)
      if (both >> i & 1 && (above[size_t(i)] & both) == both) return i;
    return -1;
  }
};
constexpr Lattice kLattice;

DType settled(int joined) {
  MP_ASSERT(joined >= 0);
  return joined == kWhole ? DType::kInt32 : joined == kFraction ? DType::kFloat32 : DType(joined);
}

}  // namespace

DType promote(DType x, DType y) { return x == y ? x : settled(kLattice.join(of(x), of(y))); }

DType promote(DType x, Numeral::Kind y) {
  return settled(kLattice.join(of(x), y == Numeral::Kind::kBool    ? of(DType::kBool)
                                      : y == Numeral::Kind::kWhole ? kWhole
                                                                   : kFraction));
}

DType summed(DType t) {
  switch (t) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt16:
      return DType::kInt32;
    case DType::kUInt8:
    case DType::kUInt16:
      return DType::kUInt32;
    default:
      return t;
  }
}

}  // namespace eager

DType result_type(DType x, DType y) { return eager::promote(x, y); }

}  // namespace millpond
