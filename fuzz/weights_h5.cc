// Any bytes as a weight file: all its tensors, or an Error; nothing else.
#include "io/weights_h5.h"

#include <cstdint>
#include <cstdlib>

#include "fuzz/input_file.h"

using namespace millpond;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::InputFile file(data, size);
  try {
    const io::WeightsReader reader(file.path());
    double sum = 0;
    for (const auto& [path, info] : reader.entries()) {
      if (info.shape.size() * size_of(info.dtype).value > int64_t(size) * 1032 * 8)
        std::abort();  // more than the file can hold
      const Tensor t = reader.read(path, "fuzz/weights");
      for (int64_t i = 0; i < t.size(); ++i) sum += t.at(i);
    }
    fuzz::accepted += sum != 42.5;  // the sum is used
    return 0;
  } catch (const Error&) {
    return 0;
  }
}
