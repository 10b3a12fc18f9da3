#include "backend/stage.h"

#include <emmintrin.h>

#include <atomic>
#include <cmath>
#include <type_traits>

#include "backend/cpu/stage_rows.h"
#include "base/convert.h"
#include "base/with_type.h"

namespace millpond::backend {
namespace {

// Checks look at what was handed in: what does not fit may become anything in the step's type.
template <class T>
bool finite(const T* x, int64_t n) {
  if constexpr (std::is_integral_v<T>)
    return true;
  else {
    bool all = true;
    for (int64_t i = 0; i < n; ++i) all &= std::isfinite(load(x, i));
    return all;
  }
}
template <class T>
bool below(const T* x, int64_t n, int64_t limit) {
  bool all = true;
  for (int64_t i = 0; i < n; ++i) {
    const Number<T> v = load(x, i);
    if constexpr (std::is_floating_point_v<Number<T>>)
      all &= v >= 0 && double(v) < double(limit);
    else if constexpr (std::is_signed_v<Number<T>>)
      all &= v >= 0 && v < limit;
    else
      all &= v < uint64_t(limit);
  }
  return all;
}

bool passes(Check check, const void* x, DType t, int64_t n, int64_t limit) {
  if (check == Check::kNone) return true;
  return with_type(t, [&]<class T>() {
    const auto* p = static_cast<const T*>(x);
    return check == Check::kFinite ? finite(p, n) : below(p, n, limit);
  });
}

int64_t lane_rows(const Lane& lane, const Rows& rows, int64_t begin, int64_t end) {
  const int64_t n = lane.width, from_row = n * size_of(lane.from_type).value, to_row = n * size_of(lane.to_type).value;
  int64_t bad = -1;
  for (int64_t r = begin; r < end; ++r) {
    const std::byte* x = lane.from + rows[r] * from_row;
    std::byte* y = lane.to + r * to_row;
    convert(x, lane.from_type, y, lane.to_type, n);
    bool good = passes(lane.check, x, lane.from_type, n, lane.limit);
    if (good && lane.check == Check::kFinite && lane.from_type != lane.to_type)
      good = passes(lane.check, y, lane.to_type, n, lane.limit);  // too large for a narrower type
    if (!good && bad < 0) bad = r;
  }
  return bad;
}

// Rows of a few floats: a call for each would cost more than the row. Four at a time; SSE2 is part of every x86-64.
bool short_rows(const Lane& lane, const Rows& rows) {
  const auto* from = reinterpret_cast<const float*>(lane.from);
  auto* to = reinterpret_cast<float*>(lane.to);
  const int64_t n = lane.width;
  const __m128i exponent = _mm_set1_epi32(0x7f800000);
  __m128i bad = _mm_setzero_si128();
  for (int64_t r = 0; r < rows.count; ++r, to += n) {
    const float* x = from + rows[r] * n;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), v);
      bad = _mm_or_si128(bad, _mm_cmpeq_epi32(_mm_and_si128(v, exponent), exponent));
    }
    for (; i < n; ++i) {
      const __m128i v = _mm_castps_si128(_mm_load_ss(x + i));
      _mm_store_ss(to + i, _mm_castsi128_ps(v));
      bad = _mm_or_si128(bad, _mm_cmpeq_epi32(_mm_and_si128(v, exponent), exponent));
    }
  }
  return _mm_movemask_epi8(bad) == 0;
}

int64_t part(const Lane& lane, const Rows& rows, int64_t begin, int64_t end) {
  if (lane.from_type == DType::kFloat32 && lane.to_type == DType::kFloat32) {
    const cpu::StageRows fast{reinterpret_cast<const float*>(lane.from), reinterpret_cast<float*>(lane.to), rows.index,
                              rows.first, lane.width};
    const bool all_finite = cpu::stage_rows(fast, begin, end);
    if (lane.check == Check::kNone || (lane.check == Check::kFinite && all_finite)) return -1;
  }
  return lane_rows(lane, rows, begin, end);
}

}  // namespace

int64_t stage(const Lane& lane, const Rows& rows) { return part(lane, rows, 0, rows.count); }

Refusal stage(Team& team, std::span<const Lane> lanes, const Rows& rows) {
  constexpr int64_t kShared = 256 << 10;  // bytes from which waking others pays
  for (size_t l = 0; l < lanes.size(); ++l) {
    const Lane& lane = lanes[l];
    if (lane.width <= 16 && lane.from_type == DType::kFloat32 && lane.to_type == DType::kFloat32 &&
        lane.check != Check::kBelow && rows.count <= 1024)
      if (short_rows(lane, rows) || lane.check == Check::kNone) continue;  // otherwise the longer way finds the row
    const int64_t row = lane.width * size_of(lane.to_type).value;
    int64_t bad;
    if (team.size() == 1 || row * rows.count < kShared || rows.count == 1) {
      bad = part(lane, rows, 0, rows.count);
    } else {
      const int64_t block = std::max<int64_t>(1, (64 << 10) / std::max<int64_t>(1, row));
      std::atomic<int64_t> next{0}, done{0}, first{INT64_MAX};
      const int64_t blocks = (rows.count + block - 1) / block;
      team.run([&](int) {
        for (int64_t b; (b = next.fetch_add(1, std::memory_order_relaxed)) < blocks;) {
          const int64_t at = part(lane, rows, b * block, std::min(rows.count, (b + 1) * block));
          if (at >= 0)
            for (int64_t seen = first.load(); at < seen && !first.compare_exchange_weak(seen, at);) {
            }
          done.fetch_add(1, std::memory_order_release);
        }
      });
      for (Spin spin; done.load(std::memory_order_acquire) < blocks;) spin.wait();
      bad = first.load() == INT64_MAX ? -1 : first.load();
    }
    if (bad >= 0) return {int(l), bad};
  }
  return {};
}

}  // namespace millpond::backend
