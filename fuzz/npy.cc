// Any bytes as a .npy file: read, mapped, or refused with an Error; nothing else.
#include "io/npy.h"

#include <cstdint>
#include <cstdlib>

#include "fuzz/input_file.h"

using namespace millpond;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::InputFile file(data, size);
  Tensor read, mapped;
  int refused = 0;
  try {
    read = io::read_npy(file.path(), "fuzz/npy");
  } catch (const Error&) {
    ++refused;
  }
  try {
    mapped = io::map_npy(file.path());
  } catch (const Error&) {
    ++refused;
  }
  if (refused == 1) std::abort();  // the two ways disagree
  if (refused) return 0;
  if (read.bytes() > Bytes{int64_t(size)}) std::abort();  // more than the file can hold
  double sum = 0;
  for (int64_t i = 0; i < read.size(); ++i) sum += read.at(i) + mapped.at(i);
  fuzz::accepted += sum != 42.5;  // the sum is used
  return 0;
}
