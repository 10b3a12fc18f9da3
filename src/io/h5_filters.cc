#include "io/h5_filters.h"

#if __has_include(<zlib.h>)
#include <zlib.h>
#endif

namespace millpond::io::h5 {

void unshuffle(std::vector<std::byte>& bytes, size_t element) {
  if (element < 2) return;
  std::vector<std::byte> out(bytes);  // bytes behind the last whole value stay where they are
  const size_t n = bytes.size() / element;
  for (size_t k = 0; k < element; ++k)
    for (size_t i = 0; i < n; ++i) out[i * element + k] = bytes[k * n + i];
  bytes.swap(out);
}

bool inflate(std::vector<std::byte>& bytes, uint64_t size) {
#if __has_include(<zlib.h>)
  if (size > bytes.size() * kMostInflation) return false;
  std::vector<std::byte> out(size_t{size});
  uLongf got = uLongf(out.size());
  if (uncompress(reinterpret_cast<Bytef*>(out.data()), &got, reinterpret_cast<const Bytef*>(bytes.data()),
                 uLong(bytes.size())) != Z_OK ||
      got != size)
    return false;
  bytes.swap(out);
  return true;
#else
  return (void)bytes, (void)size, false;  // Keras does not compress; a build without zlib's header reads the rest
#endif
}

}  // namespace millpond::io::h5
