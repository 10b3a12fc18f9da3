#include "base/convert.h"

#include <algorithm>
#include <cstring>

#include "base/with_type.h"

namespace millpond {
namespace {

constexpr int64_t kChunk = 256;

// From every type to the number it is computed with, and from each of those to every type: 13 + 4 x 13 loops instead of
// 13 x 13.
template <class N>
void store_all(const N* from, DType to_type, void* to, int64_t n) {
  with_type(to_type, [&]<class To>() {
    auto* p = static_cast<To*>(to);
    for (int64_t i = 0; i < n; ++i) p[i] = convert<To>(from[i]);
  });
}

}  // namespace

void convert(const void* from, DType from_type, void* to, DType to_type, int64_t n) {
  if (from_type == to_type) {
    if (n && from != to) std::memcpy(to, from, size_t(n * size_of(to_type).value));
    return;
  }
  const auto in_chunks = [&]<class N>(auto&& numbers) {
    N buffer[kChunk];
    for (int64_t at = 0; at < n; at += kChunk) {
      const int64_t count = std::min(kChunk, n - at);
      numbers(buffer, at, count);
      store_all(static_cast<const N*>(buffer), to_type, static_cast<std::byte*>(to) + at * size_of(to_type).value,
                count);
    }
  };
  with_type(from_type, [&]<class From>() {
    in_chunks.template operator()<Number<From>>([from](Number<From>* buffer, int64_t at, int64_t count) {
      const From* p = static_cast<const From*>(from) + at;
      for (int64_t i = 0; i < count; ++i) buffer[i] = load(p, i);
    });
  });
}

}  // namespace millpond
