// Any bytes as a .npz archive: arrays whose rows can be read both ways, or an Error.
#include "data/formats/npz.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/input_file.h"

using namespace millpond;
using namespace millpond::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const NpzFile f(view_bytes(std::as_bytes(std::span(data, size)), "fuzz.npz"));
    for (const NpzMember& m : f.members()) {
      if (m.stored && m.rows() * m.row_bytes().value > int64_t(size)) std::abort();
      if (m.row_bytes() > Bytes{1 << 20}) continue;
      std::vector<std::byte> row(size_t(m.row_bytes().value)), other(row.size());
      try {
        NpzStream s(f, m.name);
        for (int64_t i = 0; i < 2000 && s.read(1, row); ++i) {
          if (!m.stored) continue;
          f.read_rows(m, i, 1, other);
          if (row != other) std::abort();
        }
        ++fuzz::accepted;
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
