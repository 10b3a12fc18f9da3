#include "backend/stage.h"

#include <emmintrin.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend/cpu/stage_rows.h"
#include "base/with_type.h"

namespace millpond::backend {
namespace {

template <class T>
auto widen(T v) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>)
    return to_float(v);
  else
    return v;
}
template <class To, class From>
To convert(From v) {
  const auto w = widen(v);
  if constexpr (std::is_same_v<To, bfloat16>)
    return to_bfloat16(double(w));
  else if constexpr (std::is_same_v<To, float16>)
    return to_float16(double(w));
  else if constexpr (std::is_same_v<To, bool>)
    return w != 0;
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<decltype(w)>) {
    // A value that does not fit becomes the least integer, which no check lets pass.
    constexpr double low = double(std::numeric_limits<To>::min()), high = double(std::numeric_limits<To>::max());
    return double(w) >= low && double(w) <= high ? To(w) : std::numeric_limits<To>::min();
  } else if constexpr (std::is_same_v<To, int32_t> && std::is_same_v<From, int64_t>) {
    return v >= INT32_MIN && v <= INT32_MAX ? int32_t(v) : INT32_MIN;
  } else
    return To(w);
}

template <class To>
bool finite(const To* x, int64_t n) {
  if constexpr (std::is_integral_v<To>)
    return true;
  else {
    bool all = true;
    for (int64_t i = 0; i < n; ++i) all &= std::isfinite(widen(x[i]));
    return all;
  }
}
template <class To>
bool below(const To* x, int64_t n, int64_t limit) {
  bool all = true;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = double(widen(x[i]));
    all &= v >= 0 && v < double(limit);
  }
  return all;
}

template <class From, class To>
int64_t lane_rows(const Lane& lane, const Rows& rows, int64_t begin, int64_t end) {
  const auto* from = reinterpret_cast<const From*>(lane.from);
  auto* to = reinterpret_cast<To*>(lane.to);
  const int64_t n = lane.width;
  int64_t bad = -1;
  for (int64_t r = begin; r < end; ++r) {
    const From* x = from + rows[r] * n;
    To* y = to + r * n;
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(y, x, size_t(n) * sizeof(To));
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
    }
    bool good = true;
    if (lane.check == Check::kFinite)
      good = finite(y, n) && (std::is_same_v<From, To> || finite(x, n));  // NaN has no integer to become
    if (lane.check == Check::kBelow) good = below(y, n, lane.limit);
    if (good) continue;
    if (bad < 0) bad = r;
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
    return lane_rows<float, float>(lane, rows, begin, end);  // which row
  }
  return with_type(lane.from_type, [&](auto from) {
    return with_type(lane.to_type,
                     [&](auto to) { return lane_rows<decltype(from), decltype(to)>(lane, rows, begin, end); });
  });
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
