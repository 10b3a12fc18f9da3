// Any bytes as lines of text, plain or gzip: lines of at most the limit, or an Error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "data/formats/text.h"
#include "fuzz/input_file.h"

using namespace millpond;
using namespace millpond::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const int64_t limit = 1 + data[0];
  const auto file = std::as_bytes(std::span(data + 1, size - 1));
  std::string joined[2];
  for (OnBad how : {OnBad::kThrow, OnBad::kSkip}) {
    try {
      LineReader r(view_bytes(file, "fuzz"), {.max_line = Bytes{limit}, .on_bad = how});
      std::string_view line;
      int64_t n = 0;
      while (r.next(line)) {
        if (int64_t(line.size()) > limit || line.find('\n') != line.npos) std::abort();
        joined[how == OnBad::kSkip].append(line) += '\n';
        ++n;
        if (n % 16 == 0 && size < 2000) r.restore(r.position());
      }
      if (n + r.skipped().count != r.position().line) std::abort();
      fuzz::accepted += how == OnBad::kThrow;
    } catch (const Error&) {
    }
  }
  if (!joined[1].starts_with(joined[0])) std::abort();
  return 0;
}
