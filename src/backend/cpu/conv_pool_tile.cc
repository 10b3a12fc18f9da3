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

/// Those of the vector at channel c that exist.
MP_INLINE Tail channels_left(const PoolTile& t, int64_t c) { return tail_of(t.channels < c ? 0 : t.channels - c); }

void pool(const PoolTile& t, const float* tile, const float* bias, float* pooled, uint16_t* winners) noexcept {
  for (int64_t cell = 0; cell < t.cells; ++cell) {
    const float* first = tile + cell * t.pool_w * t.pixel;
    for (int64_t c = 0; c < t.channels; c += 16) {
      V best[kG];
      I place[kG];
      MP_UNROLL for (int g = 0; g < kG; ++g) best[g] = load(first + c + g * kLanes), place[g] = seti(0);
      for (int64_t k = 1; k < t.pool_h * t.pool_w; ++k) {
        const float* at = first + k / t.pool_w * t.row + k % t.pool_w * t.pixel + c;
        MP_UNROLL for (int g = 0; g < kG; ++g) {
          const V v = load(at + g * kLanes);
          const Bool better = either(gt(v, best[g]), unordered(v, v));
          place[g] = selecti(better, seti(int32_t(k)), place[g]);
          best[g] = select(better, v, best[g]);
        }
      }
      MP_UNROLL for (int g = 0; g < kG; ++g) {
        const Tail tail = channels_left(t, c + g * kLanes);
        store(pooled + cell * t.pooled_cell + c + g * kLanes,
              max(zero(), add(best[g], load(bias + c + g * kLanes, tail))), tail);
      }
      for (int b = 0; b < t.bits; ++b) {
        uint32_t mask = 0;  // channels that do not exist have none
        MP_UNROLL for (int g = 0; g < kG; ++g) mask |= bits(eqi(andi(place[g], seti(1 << b)), seti(1 << b)))
                                                       << (g * kLanes);
        winners[cell * t.winners_cell + c / 16 * t.bits + b] =
            uint16_t(t.channels - c < 16 ? mask & ((1u << (t.channels - c)) - 1) : mask);
      }
    }
  }
}

/// kBits and kWidth: those of the pool, or 0 for any.
template <int kBits, int kWidth>
void spread_row(const PoolTile& t, float* tile, int64_t row, const float* dpooled, const uint16_t* winners) {
  const int count = kBits ? kBits : t.bits;
  const int64_t width = kWidth ? kWidth : t.pool_w;
  for (int64_t cell = 0; cell < t.cells; ++cell)
    for (int64_t c = 0; c < t.channels; c += 16) {
      V g[kG];
      Tail tail[kG];
      MP_UNROLL for (int k = 0; k < kG; ++k) {
        tail[k] = channels_left(t, c + k * kLanes);
        g[k] = load(dpooled + cell * t.pooled_cell + c + k * kLanes, tail[k]);
      }
      const uint16_t* w = winners + cell * t.winners_cell + c / 16 * count;
      for (int64_t col = 0; col < width; ++col) {
        const int64_t place = row * width + col;
        uint32_t mask = 0xffff;
        for (int b = 0; b < count; ++b) mask &= w[b] ^ (uint32_t(place >> b & 1) - 1);
        float* at = tile + (cell * width + col) * t.pixel + c;
        MP_UNROLL for (int k = 0; k < kG; ++k)
            store(at + k * kLanes, zero_unless(from_bits(mask >> (k * kLanes)), g[k]), tail[k]);
      }
    }
}

void spread(const PoolTile& t, float* tile, int64_t row, const float* dpooled, const uint16_t* winners) noexcept {
  if (t.bits == 2 && t.pool_w == 2) return spread_row<2, 2>(t, tile, row, dpooled, winners);
  spread_row<0, 0>(t, tile, row, dpooled, winners);
}

void add_rows(float* sums, const float* rows, int64_t stride, int64_t count, int64_t channels) noexcept {
  constexpr int64_t kStrip = 64;  // rows that stay in L1
  for (int64_t from = 0; from < count; from += kStrip)
    for (int64_t c = 0; c < channels; c += kLanes) {
      const Tail tail = tail_of(channels - c);
      V sum = load(sums + c, tail);
      for (int64_t r = from; r < count && r < from + kStrip; ++r) sum = add(sum, load(rows + r * stride + c, tail));
      store(sums + c, sum, tail);
    }
}

}  // namespace

extern const PoolTileTable pool_tile_table = {pool, spread, add_rows};

}  // namespace millpond::backend::cpu::MP_ISA
