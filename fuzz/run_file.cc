// Any bytes as a run file: a report in every form, or an Error. Most changes end in SQLite's own checks; run_rows goes
// behind them.
#include <cstdint>

#include "fuzz/whole_way.h"

using namespace millpond;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::InputFile file(data, size);
  fuzz::take_whole_way(file.path());
  return 0;
}
