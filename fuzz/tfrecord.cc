// Any bytes as a TFRecord file of examples, plain, gzip or zlib (the first byte says): records, or an Error. What is
// read of a plain file lies in it, and the table and the instruction agree on every CRC.
#include "data/formats/tfrecord.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/crc32c.h"
#include "data/formats/example.h"
#include "fuzz/input_file.h"

using namespace millpond;
using namespace millpond::data;

namespace {
struct Count {
  int64_t records = 0, bytes = 0, skipped = 0;
  bool good = false;
  bool operator==(const Count&) const = default;
};
Count read(std::span<const std::byte> file, const RecordOptions& o, bool save) {
  Count c;
  try {
    RecordReader r(view_bytes(file, "fuzz.tfrecord"), o);
    std::span<const std::byte> record;
    while (r.next(record)) {
      ++c.records;
      c.bytes += int64_t(record.size());
      if (crc32c(record) != crc32c_by_table(record)) std::abort();
      if (save) r.restore(r.position());
    }
    if (r.memory() > Bytes{int64_t(file.size()) * 2100 + (1 << 20)}) std::abort();
    c.skipped = r.skipped().count;
    c.good = true;
  } catch (const Error&) {
  }
  return c;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static constexpr Compression kHow[] = {Compression::kNone, Compression::kGzip, Compression::kZlib,
                                         Compression::kAuto};
  const auto file = std::as_bytes(std::span(data + 1, size - 1));
  RecordOptions o{.compression = kHow[data[0] & 3], .max_record = Bytes{1 << 20}, .buffer = Bytes{4096}};
  const Count whole = read(file, o, false);
  if (o.compression == Compression::kNone && whole.bytes + whole.records * 16 > int64_t(file.size())) std::abort();
  if (size < 2000 && whole.records < 100 && !(whole == read(file, o, true)))
    std::abort();  // a seek inflates from the begin
  o.on_bad = OnBad::kSkip;
  const Count skipped = read(file, o, false);
  if (!skipped.good || skipped.records < whole.records) std::abort();
  if (whole.good && skipped.records != whole.records) std::abort();
  fuzz::accepted += whole.good && whole.records > 0;
  return 0;
}
