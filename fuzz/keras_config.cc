// Any bytes as the JSON of a Keras model: a model, or refused with an Error; nothing else. A model is planned too,
// without touching memory, and its own JSON makes the same JSON again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/input_file.h"
#include "millpond/model.h"

using namespace millpond;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Model model = model_from_json({reinterpret_cast<const char*>(data), size});
    ++fuzz::accepted;
    const std::string json = model.to_json();
    if (model_from_json(json).to_json() != json) std::abort();
    if (model.count_params() < 1'000'000)
      static_cast<void>(model.plan({.batch = 2, .largest_batch = false, .backend = "null"}));
  } catch (const Error&) {
  }
  return 0;
}
