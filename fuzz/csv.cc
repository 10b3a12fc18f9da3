// Any bytes as a CSV file: rows, or an Error. Read in one go, row by row, from positions saved on the way, and with bad
// rows skipped; what must agree does.
#include "data/formats/csv.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fuzz/input_file.h"

using namespace millpond;
using namespace millpond::data;

namespace {
// Types and cells in one text; an error ends it.
std::string read(std::span<const std::byte> bytes, const CsvOptions& o, int64_t at_once, bool save, bool& good) {
  std::string out;
  try {
    CsvReader r(view_bytes(bytes, "fuzz.csv"), o);
    std::vector<std::vector<std::byte>> room;
    std::vector<CsvSlot> slots;
    for (const CsvColumn& c : r.columns()) {
      out += char('0' + int(c.type));
      room.emplace_back(size_t(at_once) * cell_size(c.type));
      slots.push_back({room.back().data(), int64_t(cell_size(c.type))});
    }
    while (const int64_t n = r.read(at_once, slots)) {
      if (n > at_once) std::abort();
      for (int64_t i = 0; i < n; ++i) {
        for (size_t c = 0; c < room.size(); ++c) {
          const size_t size = cell_size(r.columns()[c].type);
          const std::byte* p = room[c].data() + size_t(i) * size;
          if (r.columns()[c].type == CsvType::kText) {
            std::string_view v;
            std::memcpy(&v, p, sizeof v);
            out.append(v);
            out += '|';
          } else {
            out.append(reinterpret_cast<const char*>(p), size);
          }
        }
        out += '\n';
      }
      if (save) r.restore(r.position());
    }
    if (o.on_bad == OnBad::kSkip) out += std::to_string(r.skipped().count);
    out += std::to_string(r.position().offset) + " " + std::to_string(r.position().row) + " " +
           std::to_string(r.position().line);
    good = true;
  } catch (const Error&) {
    good = false;
  }
  return out;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const uint8_t how = data[0];
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  CsvOptions o{.header = (how & 1) != 0, .delimiter = how & 2 ? ';' : ',', .quote = how & 4 ? '\'' : '"'};
  o.floats = how & 8 ? CsvType::kFloat64 : CsvType::kFloat32;
  if (how & 16) o.missing = {"", "?", "-1"};
  if (how & 32) o.missing_int = 7;
  o.infer_rows = how & 64 ? 2 : 1000;
  o.buffer = Bytes{4096};
  bool good = false, again = false;
  const std::string whole = read(bytes, o, 100, false, good);
  const std::string single = read(bytes, o, 1, true, again);
  if (good != again || (good && whole != single)) std::abort();
  o.on_bad = OnBad::kSkip;
  bool skipped = false, skipped_again = false;
  const std::string some = read(bytes, o, 64, false, skipped), one = read(bytes, o, 1, true, skipped_again);
  if (skipped != skipped_again || (skipped && some != one)) std::abort();
  if (good && !skipped) std::abort();
  fuzz::accepted += good;
  return 0;
}
