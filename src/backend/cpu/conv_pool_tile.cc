#include "backend/cpu/conv_pool_tile.h"

#include "backend/cpu/conv_simd.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

constexpr int kG = 16 / kLanes;  // vectors of 16 channels

MP_INLINE Bool from_bits(uint32_t m) {
#ifdef __AVX512F__
  return __mmask16(m);
#else
  const I each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return eqi(andi(seti(int32_t(m)), each), each);
#endif
}

void pool(const PoolTile& t) noexcept {
  for (int64_t cell = 0; cell < t.cells; ++cell) {
    const float* first = t.tile + cell * t.pool_w * t.pixel;
    for (int64_t c = 0; c < t.channels; c += 16) {
      V best[kG];
      I place[kG];
      MP_UNROLL for (int g = 0; g < kG; ++g) best[g] = load(first + c + g * kLanes), place[g] = seti(0);
      for (int64_t k = 1; k < t.pool_h * t.pool_w; ++k) {
        const float* at = first + k / t.pool_w * t.row + k % t.pool_w * t.pixel + c;
        MP_UNROLL for (int g = 0; g < kG; ++g) {
          const V v = load(at + g * kLanes);
          place[g] = selecti(gt(v, best[g]), seti(int32_t(k)), place[g]);
          best[g] = max(v, best[g]);
        }
      }
      MP_UNROLL for (int g = 0; g < kG; ++g) {
        const Tail tail = tail_of(t.channels - c - g * kLanes < 0 ? 0 : t.channels - c - g * kLanes);
        store(t.pooled + cell * t.pooled_cell + c + g * kLanes,
              max(zero(), add(best[g], load(t.bias + c + g * kLanes, tail))), tail);
      }
      for (int b = 0; b < t.bits; ++b) {
        uint32_t mask = 0;  // channels that do not exist have none
        MP_UNROLL for (int g = 0; g < kG; ++g) mask |= bits(eqi(andi(place[g], seti(1 << b)), seti(1 << b)))
                                                       << (g * kLanes);
        t.winners[cell * t.winners_cell + c / 16 * t.bits + b] =
            uint16_t(t.channels - c < 16 ? mask & ((1u << (t.channels - c)) - 1) : mask);
      }
    }
  }
}

void spread(const PoolTile& t) noexcept {
  for (int64_t cell = 0; cell < t.cells; ++cell) {
    float* first = t.tile + cell * t.pool_w * t.pixel;
    for (int64_t c = 0; c < t.channels; c += 16) {
      V g[kG];
      MP_UNROLL for (int k = 0; k < kG; ++k) {
        g[k] = load(t.pooled + cell * t.pooled_cell + c + k * kLanes,
                    tail_of(t.channels - c - k * kLanes < 0 ? 0 : t.channels - c - k * kLanes));
        if (t.dbias) store(t.dbias + c + k * kLanes, add(load(t.dbias + c + k * kLanes), g[k]));
      }
      const uint16_t* w = t.winners + cell * t.winners_cell + c / 16 * t.bits;
      for (int64_t place = 0; place < t.pool_h * t.pool_w; ++place) {
        uint32_t mask = 0xffff;
        for (int b = 0; b < t.bits; ++b) mask &= place >> b & 1 ? w[b] : ~uint32_t(w[b]);
        float* at = first + place / t.pool_w * t.row + place % t.pool_w * t.pixel + c;
        MP_UNROLL for (int k = 0; k < kG; ++k)
            store(at + k * kLanes, zero_unless(from_bits(mask >> (k * kLanes)), g[k]));
      }
    }
  }
}

}  // namespace

extern const PoolTileTable pool_tile_table = {pool, spread};

}  // namespace millpond::backend::cpu::MP_ISA
