#include "data/formats/tfrecord.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/format.h"
#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
std::string framed(std::string_view record) {
  std::string s(12, '\0');
  const uint64_t n = record.size();
  std::memcpy(s.data(), &n, 8);
  uint32_t crc = mask_crc(crc32c(bytes_of({s.data(), 8})));
  std::memcpy(s.data() + 8, &crc, 4);
  s += record;
  crc = mask_crc(crc32c(bytes_of(record)));
  s.append(reinterpret_cast<const char*>(&crc), 4);
  return s;
}
std::string as_text(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
std::vector<std::string> all(RecordReader& r) {
  std::vector<std::string> out;
  std::span<const std::byte> record;
  while (r.next(record)) out.push_back(as_text(record));
  return out;
}
std::vector<std::string> some_records(uint64_t seed, size_t n, size_t longest) {
  Random random(seed);
  std::vector<std::string> out;
  for (size_t i = 0; i < n; ++i) {
    std::string s(random.below(longest + 1), '\0');
    for (char& c : s) c = char(random.below(random.below(2) ? 4 : 256));
    out.push_back(std::move(s));
  }
  return out;
}
std::string joined(const std::vector<std::string>& records) {
  std::string s;
  for (const std::string& r : records) s += framed(r);
  return s;
}
}  // namespace

TEST_CASE(
    "tfrecord: records come back from plain, gzip and zlib files, through a small buffer, and from a saved position") {
  Scratch dir;
  for (const auto& records :
       {some_records(1, 50, 100), some_records(2, 20, 30000), some_records(3, 0, 1), std::vector<std::string>(30)}) {
    for (Compression how : {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
      const std::string file = dir.path("a.tfrecord");
      RecordWriter w(file, how);
      for (const std::string& r : records) w.write(r);
      w.close();
      CHECK(w.records() == int64_t(records.size()));
      if (how == Compression::kNone) CHECK(dir.get("a.tfrecord") == joined(records));
      for (int64_t buffer : {4096, 1 << 20}) {
        RecordReader r(file, {.compression = how, .buffer = Bytes{buffer}});
        CHECK(all(r) == records);
        std::span<const std::byte> record;
        CHECK_FALSE(r.next(record));
        if (records.size() < 10) continue;
        r.restore({});
        for (int i = 0; i < 7; ++i) r.next(record);
        const RecordPosition saved = r.position();
        CHECK(saved.record == 7);
        RecordReader other(file, {.compression = how, .buffer = Bytes{buffer}});
        other.restore(saved);
        CHECK(all(other) == std::vector<std::string>(records.begin() + 7, records.end()));
        r.restore(saved);
        CHECK(all(r) == std::vector<std::string>(records.begin() + 7, records.end()));
      }
    }
  }
}

TEST_CASE("tfrecord: a file that is not closed does not appear") {
  Scratch dir;
  {
    RecordWriter(dir.path("half"), Compression::kGzip).write("abc");
  }
  CHECK(dir.empty());
}

TEST_CASE("tfrecord: a file cut at any byte gives the whole records, then an error with file, record and byte") {
  const auto records = some_records(5, 6, 60);
  const std::string whole = joined(records);
  std::vector<size_t> ends{0};
  for (const auto& r : records) ends.push_back(ends.back() + r.size() + 16);
  for (size_t n = 0; n <= whole.size(); ++n) {
    const std::string part = whole.substr(0, n);
    const auto good = size_t(std::upper_bound(ends.begin(), ends.end(), n) - ends.begin()) - 1;
    const bool at_end = ends[good] == n;
    RecordReader r(text_source(part, "cut.tfrecord"));
    std::vector<std::string> got;
    const Error e = thrown([&] {
      std::span<const std::byte> record;
      while (r.next(record)) got.push_back(as_text(record));
    });
    REQUIRE(got == std::vector<std::string>(records.begin(), records.begin() + ptrdiff_t(good)));
    REQUIRE((e.code() == Code::kFormat) == !at_end);
    if (!at_end) REQUIRE(e.text().starts_with(format("cut.tfrecord: record {}, byte ", good)));
    RecordReader skip(text_source(part), {.on_bad = OnBad::kSkip});
    REQUIRE(all(skip) == got);
    REQUIRE(skip.skipped().count == !at_end);
  }
}

TEST_CASE("tfrecord: any byte changed is found; only the record it is in is lost when asked to skip") {
  const auto records = some_records(6, 5, 40);
  const std::string whole = joined(records);
  size_t begin = 0;
  for (size_t i = 0; i < records.size(); begin += records[i].size() + 16, ++i) {
    for (size_t at = begin; at < begin + records[i].size() + 16; ++at) {
      std::string bad = whole;
      bad[at] = char(bad[at] ^ 0x10);
      RecordReader r(text_source(bad, "bad.tfrecord"));
      const Error e = thrown([&] { all(r); });
      REQUIRE(e.code() == Code::kFormat);
      REQUIRE(e.text().starts_with(
          format("bad.tfrecord: record {}, byte {}", i, at < begin + 12 ? begin + 8 : begin + 12)));
      RecordReader skip(text_source(bad), {.on_bad = OnBad::kSkip});
      std::vector<std::string> rest = records;
      rest.erase(rest.begin() + ptrdiff_t(i));
      REQUIRE(all(skip) == rest);
      REQUIRE(skip.skipped().count == 1);
      REQUIRE(skip.skipped().first.find("expected") != std::string::npos);
    }
  }
  std::string bad = whole;
  bad[13] ^= 1;
  RecordReader unchecked(text_source(bad), {.check_crc = false});
  CHECK(all(unchecked).size() == records.size());
}

TEST_CASE("tfrecord: a length that lies costs no memory, and one beyond max_record is refused or skipped") {
  std::string lie(12, '\0');
  const uint64_t n = uint64_t{1} << 40;
  std::memcpy(lie.data(), &n, 8);
  const uint32_t crc = mask_crc(crc32c(bytes_of({lie.data(), 8})));
  std::memcpy(lie.data() + 8, &crc, 4);
  lie += "some bytes";
  RecordReader r(text_source(lie, "lie"));
  CHECK(thrown([&] { all(r); }).text() ==
        "lie: record 0, byte 0: expected a record of 1099511627776 bytes and its CRC, found the end of the file, 10 "
        "bytes after the length");
  const std::string packed = deflated(lie + std::string(1 << 20, 'x'), 31);
  RecordReader z(text_source(packed), {.compression = Compression::kGzip, .max_record = Bytes{int64_t{1} << 40}});
  CHECK(thrown([&] { all(z); }).code() == Code::kFormat);
  CHECK(z.memory() < Bytes{8 << 20});

  const std::string three = framed("a") + framed(std::string(100000, 'b')) + framed("c");
  RecordReader limited(text_source(three), {.max_record = Bytes{1000}});
  const Error long_one = thrown([&] { all(limited); });
  CHECK(long_one.code() == Code::kFormat);
  CHECK(long_one.hint() == "give the option max_record more bytes, or pass over such records with skip_bad_records");
  RecordReader skip(text_source(three), {.on_bad = OnBad::kSkip, .max_record = Bytes{1000}, .buffer = Bytes{4096}});
  CHECK(all(skip) == std::vector<std::string>{"a", "c"});
  CHECK(skip.skipped().count == 1);
  CHECK(skip.memory() == Bytes{4096});
}

TEST_CASE("tfrecord: a compressed file that is damaged ends there when asked to skip") {
  const auto records = some_records(7, 40, 2000);
  std::string packed = deflated(joined(records), 31);
  packed[packed.size() / 2] ^= 0x55;
  RecordReader r(text_source(packed), {.compression = Compression::kGzip});
  CHECK(thrown([&] { all(r); }).code() == Code::kFormat);
  RecordReader skip(text_source(packed), {.compression = Compression::kGzip, .on_bad = OnBad::kSkip});
  const auto got = all(skip);
  CHECK(got.size() > 0);
  CHECK(got.size() < records.size());
  CHECK(skip.skipped().count >= 1);
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == records[i]);
}
