#include "data/formats/csv.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
// All rows as text, a cell as it would be printed: for tests that look at everything.
std::vector<std::vector<std::string>> all_rows(CsvReader& reader, int64_t at_once = 3) {
  std::vector<std::vector<std::string>> out;
  const auto& columns = reader.columns();
  std::vector<std::vector<std::byte>> room;
  std::vector<CsvSlot> slots;
  for (const CsvColumn& c : columns) {
    room.emplace_back(size_t(at_once) * cell_size(c.type));
    slots.push_back({room.back().data(), int64_t(cell_size(c.type))});
  }
  while (const int64_t n = reader.read(at_once, slots)) {
    for (int64_t r = 0; r < n; ++r) {
      std::vector<std::string> row;
      for (size_t c = 0; c < columns.size(); ++c) {
        const std::byte* p = room[c].data() + size_t(r) * cell_size(columns[c].type);
        const auto get = [&](auto v) { return std::memcpy(&v, p, sizeof v), v; };
        switch (columns[c].type) {
          case CsvType::kBool:
            row.push_back(get(false) ? "true" : "false");
            break;
          case CsvType::kInt64:
            row.push_back(format("{}", get(int64_t{})));
            break;
          case CsvType::kFloat32:
            row.push_back(format("{}", get(float{})));
            break;
          case CsvType::kFloat64:
            row.push_back(format("{}", get(double{})));
            break;
          default:
            row.emplace_back(get(std::string_view()));
        }
      }
      out.push_back(std::move(row));
    }
  }
  return out;
}
std::vector<std::vector<std::string>> read_all(std::string_view text, CsvOptions options = {}) {
  CsvReader reader(text_source(text, "t.csv"), std::move(options));
  return all_rows(reader);
}
std::string types_of(const CsvReader& r) {
  std::string s;
  for (const CsvColumn& c : r.columns()) s += format("{}{}:{}", s.empty() ? "" : " ", c.name, to_string(c.type));
  return s;
}
using Rows = std::vector<std::vector<std::string>>;
}  // namespace

TEST_CASE("csv: names from the header, types from the rows, rows with LF or CRLF, the last without an end") {
  for (const char* end : {"\n", "\r\n"}) {
    std::string text = "a,b,c,d,e\n1,2.5,true,word,7\n-3,1e3,false,\"a,b\",8";
    for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += std::strlen(end))
      text.replace(at, 1, end);
    for (const std::string& t : {text, text + end, text + end + end}) {
      CsvReader reader(text_source(t));
      CHECK(types_of(reader) == "a:int64 b:float32 c:bool d:text e:int64");
      CHECK(all_rows(reader) == Rows{{"1", "2.5", "true", "word", "7"}, {"-3", "1000", "false", "a,b", "8"}});
    }
  }
}

TEST_CASE("csv: quotes hold delimiters, line ends and doubled quotes; a quote inside a bare field is a letter") {
  CHECK(read_all("x,y\n\"a\nb\",\"say \"\"hi\"\"\"\nit\"s,\"\"\n\"\"\"\",z\n") ==
        Rows{{"a\nb", "say \"hi\""}, {"it\"s", ""}, {"\"", "z"}});
  CHECK(read_all("x,y\r\n\"1\",\" 2 \"\r\n 3 ,4\r\n") ==
        Rows{{"1", "2"}, {"3", "4"}});  // numbers in quotes and between blanks
  CHECK(read_all("x\n'a\n", {.quote = 0}) == Rows{{"'a"}});
  const std::string zeros("x\n1\n\0002\0\n", 9);  // without quotes a zero byte is none
  CHECK(thrown([&] { read_all(zeros, {.quote = 0, .infer_rows = 1}); }).code() == Code::kFormat);
  CHECK(read_all("x;y\n'a;b';2\n", {.delimiter = ';', .quote = '\''}) == Rows{{"a;b", "2"}});
  CHECK(read_all("x\ty\n1\t\n2\t3\n", {.delimiter = '\t', .missing_int = -1}) == Rows{{"1", "-1"}, {"2", "3"}});
}

TEST_CASE("csv: without a header columns are numbered; a byte order mark and empty lines are passed over") {
  CHECK(read_all("\xef\xbb\xbf\n1,2\n\n\r\n3,4\n\n", {.header = false}) == Rows{{"1", "2"}, {"3", "4"}});
  CsvReader r(text_source("1,2\n"), {.header = false});
  CHECK(types_of(r) == "column_0:int64 column_1:int64");
}

TEST_CASE("csv: types are inferred as far as the rows allow and can be given") {
  const auto types = [](std::string_view text, CsvOptions o = {}) {
    return types_of(CsvReader(text_source(text), std::move(o)));
  };
  CHECK(types("a\n1\n2\n") == "a:int64");
  CHECK(types("a\n1\n2.0\n") == "a:float32");
  CHECK(types("a\n1\n2.0\n", {.floats = CsvType::kFloat64}) == "a:float64");
  CHECK(types("a,b\n1,2\n,2\n") == "a:float32 b:int64");
  CHECK(types("a,b\n1,2\n,2\n", {.missing_int = 0}) == "a:int64 b:int64");
  CHECK(types("a\n99999999999999999999\n") == "a:float32");
  CHECK(types("a\nTrue\nFALSE\n") == "a:bool");
  CHECK(types("a,b\nTrue,1\n,1\n") == "a:text b:int64");
  CHECK(types("a\n1\ntrue\n") == "a:text");
  CHECK(types("a\nnan\ninf\n") == "a:float32");
  CHECK(types("a,b\nNA,1\n,1\n") == "a:float32 b:int64");
  CHECK(types("a\n") == "a:float32");
  CHECK(types("a\n1\n1\nx\n", {.infer_rows = 2}) == "a:int64");
  CHECK(types("a,b\n1,x\n", {.types = {{"a", CsvType::kFloat64}}}) == "a:float64 b:text");
  CHECK(types("a,b,y\n1,2,3\n", {.label = "y", .features = CsvType::kFloat32}) == "a:float32 b:float32 y:int64");
}

TEST_CASE("csv: missing values are what the caller says they are") {
  CHECK(read_all("a,b\n1.5,x\n,x\nNA,x\n") == Rows{{"1.5", "x"}, {"nan", "x"}, {"nan", "x"}});
  CHECK(read_all("a,b\n1.5,x\n?,x\n", {.missing = {"?"}, .missing_float = -1}) == Rows{{"1.5", "x"}, {"-1", "x"}});
  // One that reads as a number is still missing.
  CHECK(read_all("a,b\n1,x\n-999,x\n", {.missing = {"-999"}, .missing_int = 0}) == Rows{{"1", "x"}, {"0", "x"}});
  CHECK(read_all("a,b\n0.5,x\nnan,x\n", {.missing = {"nan"}, .missing_float = 3}) == Rows{{"0.5", "x"}, {"3", "x"}});
  CHECK(read_all("a,b\ntrue,x\n,x\n", {.missing_bool = false}) == Rows{{"true", "x"}, {"false", "x"}});
  const Error e = thrown([] { read_all("a,b\n1,1\n,1\n", {.infer_rows = 1}); });
  CHECK(std::string(e.what()).starts_with(
      "t.csv: line 3, column \"a\": expected a value of type int64, found a missing one; "
      "give missing_int, or the column the type float32"));
}

TEST_CASE("csv: columns are selected in the order asked for, the label last") {
  const std::string text = "a,b,c,d\n1,2,3,4\n5,6,7,8\n";
  CHECK(read_all(text, {.columns = {"d", "b"}}) == Rows{{"4", "2"}, {"8", "6"}});
  CsvReader r(text_source(text), {.label = "b"});
  CHECK(types_of(r) == "a:int64 c:int64 d:int64 b:int64");
  CHECK(r.label() == 3);
  CHECK(read_all(text, {.columns = {"c"}, .label = "a"}) == Rows{{"3", "1"}, {"7", "5"}});
  CHECK(thrown([&] { read_all(text, {.columns = {"e"}}); }).what() ==
        std::string("t.csv has no column \"e\"; its columns are a, b, c, d\n  file     t.csv"));
  CHECK(thrown([&] { read_all(text, {.columns = {"a", "a"}}); }).code() == Code::kUsage);
  CHECK(thrown([&] { read_all(text, {.columns = {"a"}, .types = {{"b", CsvType::kText}}}); }).code() == Code::kUsage);
  CHECK(thrown([&] { read_all("a,a\n1,2\n", {.label = "a"}); }).code() == Code::kValue);
  CHECK(read_all("a,a\n1,2\n") == Rows{{"1", "2"}});
}

TEST_CASE("csv: a batch goes where its slots say, as a matrix and a column of labels") {
  CsvReader r(text_source("x,y,label\n1,2,0\n3,4,1\n5,6,0\n"), {.label = "label", .features = CsvType::kFloat32});
  float x[3][2] = {};
  int64_t y[3] = {};
  const CsvSlot slots[] = {{&x[0][0], 8}, {&x[0][1], 8}, {y, 8}};
  CHECK(r.read(2, slots) == 2);
  CHECK((x[0][0] == 1 && x[0][1] == 2 && x[1][0] == 3 && x[1][1] == 4 && y[1] == 1));
  CHECK(x[2][0] == 0);
  CHECK(r.read(2, slots) == 1);
  CHECK((x[0][0] == 5 && x[0][1] == 6 && y[0] == 0));
  CHECK(r.read(2, slots) == 0);
  CHECK_THROWS_AS(r.read(1, std::span(slots).first(2)), Error);
}

TEST_CASE("csv: a bad row is refused with file, line and column, and again when asked again") {
  struct Case {
    const char *text, *message;
  };
  for (const auto& [text, message] : {
           Case{"a,b\n1,2\n3\n", "t.csv: line 3: expected 2 fields, found 1"},
           Case{"a,b\n1,2\n3,4,5\n", "t.csv: line 3: expected 2 fields, found 3"},
           Case{"a,b\n1,2\n3,4,5,\"x\ny\"\n", "t.csv: line 3: expected 2 fields, found 4"},
           Case{"a,b\n1,2\n3,\n4,5\n",
                "t.csv: line 3, column \"b\": expected a value of type int64, found a missing one"},
           Case{"a,b\n1,2\n3,x\n", "t.csv: line 3, column \"b\": expected a value of type int64, found \"x\""},
           Case{"a,b\n1,2\n3.5,1\n", "t.csv: line 3, column \"a\": expected a value of type int64, found \"3.5\""},
           Case{"a,b\n1,2\n3,99999999999999999999\n",
                "t.csv: line 3, column \"b\": expected a value of type int64, found \"99999999999999999999\""},
           Case{"a,b\n1,2\n1 2,3\n", "t.csv: line 3, column \"a\": expected a value of type int64, found \"1 2\""},
           Case{"a,b\n1,2\n\"3\"4,5\n",
                "t.csv: line 3, column \"a\": expected a delimiter or the line's end behind a closing quote, found "
                "\"4,5\\x0a\""},
           Case{"a,b\n1,2\n3,\"4\n",
                "t.csv: line 3, column \"b\": expected a quote that closes, found the end of the file"},
           Case{"a,b\n1,2\n3,\x01\xff\n",
                "t.csv: line 3, column \"b\": expected a value of type int64, found \"\\x01\\xff\""},
       }) {
    CsvReader r(text_source(text, "t.csv"), {.infer_rows = 1});
    int64_t cells[2];
    const CsvSlot slots[] = {{&cells[0], 0}, {&cells[1], 0}};
    CHECK(r.read(1, slots) == 1);
    for (int again = 0; again < 2; ++again) {
      const Error e = thrown([&] { r.read(5, slots); });
      CHECK(e.text() == message);
      CHECK(e.code() == Code::kFormat);
      CHECK(e.details()[0].second == "t.csv");
    }
  }
}

TEST_CASE("csv: lines are counted through quotes that hold line ends") {
  const Error e = thrown([] { read_all("\n\"a\n\",b\n\"x\n\n\",1\n\ny,2\nz,w\n", {.infer_rows = 1}); });
  CHECK(e.text() == "t.csv: line 9, column \"b\": expected a value of type int64, found \"w\"");
}

TEST_CASE("csv: bad rows are skipped and counted when asked, and the first is told") {
  CsvReader r(text_source("a,b\n1,2\nx,3\n4\n5,6,7\n\"8\"9,1\n10,11\n\"12,13\n14,15\n", "t.csv"),
              {.infer_rows = 1, .on_bad = OnBad::kSkip});
  CHECK(all_rows(r) == Rows{{"1", "2"}, {"10", "11"}, {"14", "15"}});
  CHECK(r.skipped().count == 5);
  CHECK(r.skipped().first == "t.csv: line 3, column \"a\": expected a value of type int64, found \"x\"");
  CHECK(r.position().row == 3);
  CHECK(r.position().line == 10);
}

TEST_CASE("csv: a row that does not fit the buffer is refused, or skipped") {
  const std::string text = "a,b\n1,2\n3," + std::string(10000, '4') + "\n5,6\n";
  const CsvOptions small{.infer_rows = 1, .buffer = Bytes{4096}};
  CHECK(thrown([&] { read_all(text, small); }).text() ==
        "t.csv: line 3: expected a row of less than 4.00 KiB, found more");
  CsvOptions skip = small;
  skip.on_bad = OnBad::kSkip;
  CHECK(read_all(text, skip) == Rows{{"1", "2"}, {"5", "6"}});
  const std::string open = "a,b\n1,2\n3,\"" + std::string(10000, '\n') + "\n5,6\n";
  CHECK(thrown([&] { read_all(open, small); }).text() ==
        "t.csv: line 3: expected a row of less than 4.00 KiB, found more");
  CHECK(read_all(open, skip) == Rows{{"1", "2"}, {"5", "6"}});
  CHECK(thrown([&] { read_all(std::string(9000, 'a'), small); }).code() == Code::kFormat);
}

TEST_CASE("csv: what is no CSV file, and options that cannot be, are refused") {
  CHECK(thrown([] { read_all(""); }).text() == "t.csv holds no rows");
  CHECK(thrown([] { read_all("\n\n"); }).text() == "t.csv holds no rows");
  CHECK(thrown([] {
          read_all(
              "\xff\xfe"
              "a\0");
        }).code() == Code::kUnsupported);
  for (char d : {'1', '.', '-', 'e', '\n', '"', '\0'})
    CHECK(thrown([&] { read_all("a\n", {.delimiter = d}); }).code() == Code::kUsage);
  CHECK(thrown([] { CsvReader r("/nonexistent/x.csv"); }).code() == Code::kFile);
  CHECK(thrown([] { read_all("a\n", {.buffer = Bytes{10}}); }).code() == Code::kUsage);
}

namespace {
// A table at random, as text and as what must be read.
struct Table {
  std::string text;
  Rows rows;
};
Table random_table(Random& random, bool with_text) {
  const int columns = 1 + int(random.below(6));
  Table t;
  for (int c = 0; c < columns; ++c) t.text += format("{}c{}", c ? "," : "", c);
  t.text += "\n";
  const char* end = random.below(2) ? "\n" : "\r\n";
  const uint64_t rows = random.below(400);
  for (uint64_t r = 0; r < rows; ++r) {
    std::vector<std::string> row;
    for (int c = 0; c < columns; ++c) {
      std::string value, written;
      if (with_text && c % 3 == 2) {
        for (uint64_t n = random.below(12); n > 0; --n) value += "ab\",\n x"[random.below(7)];
        written = value;
        if (value.find_first_of("\",\n") != std::string::npos || random.below(3) == 0) {
          written = "\"";
          for (char ch : value) written += ch == '"' ? "\"\"" : std::string(1, ch);
          written += '"';
        }
        if (written.empty() && columns == 1) written = "\"\"";
      } else if (c % 3 == 1) {
        value = written = format("{}", int64_t(random.next()) >> random.below(64));
        if (random.below(4) == 0) written = " \"" + written + "\"";
        if (written[0] == ' ') written.erase(0, 1);
      } else {
        const auto f = float(random.normal());
        value = format("{}", f);
        written = random.below(5) ? value : format("{:.9e}", f);
      }
      row.push_back(value);
      t.text += (c ? "," : "") + written;
    }
    t.text += r + 1 < rows || random.below(2) ? end : "";
    t.rows.push_back(std::move(row));
  }
  return t;
}
CsvOptions table_options(const Table& t) {
  CsvOptions o{.buffer = Bytes{4096}};
  const size_t columns = size_t(std::count(t.text.begin(), t.text.begin() + ptrdiff_t(t.text.find('\n')), ',')) + 1;
  for (size_t c = 0; c < columns; ++c)
    o.types[format("c{}", c)] = c % 3 == 0 ? CsvType::kFloat32 : c % 3 == 1 ? CsvType::kInt64 : CsvType::kText;
  return o;
}
}  // namespace

TEST_CASE(
    "csv: random tables come back cell by cell through a small buffer, from any saved position, compressed or not") {
  Random random(7);
  for (int round = 0; round < 150; ++round) {
    const Table t = random_table(random, true);
    const CsvOptions o = table_options(t);
    CAPTURE(round);
    CsvReader reader(text_source(t.text), o);
    CHECK(all_rows(reader, 1 + int64_t(random.below(50))) == t.rows);
    CHECK(reader.position().row == int64_t(t.rows.size()));
    CHECK(reader.position().offset == int64_t(t.text.size()));

    // Saved after some rows, restored in the same and in another reader.
    const auto from = int64_t(random.below(t.rows.size() + 1));
    const Rows rest(t.rows.begin() + from, t.rows.end());
    const std::string packed = deflated(t.text, 31);
    CsvOptions gzip = o;
    gzip.compression = Compression::kGzip;
    CsvReader other(text_source(packed), gzip);
    CHECK(other.skip(from) == from);
    const CsvPosition saved = other.position();
    CHECK(all_rows(other) == rest);
    reader.restore(saved);
    CHECK(all_rows(reader) == rest);
    other.restore(saved);
    CHECK(all_rows(other) == rest);
  }
}

TEST_CASE("csv: a file cut anywhere gives rows of the whole one, then an end or an error") {
  Random random(9);
  for (int round = 0; round < 3; ++round) {
    Table t = random_table(random, true);
    while (t.text.size() > 6000 || t.rows.size() < 20) t = random_table(random, true);
    for (size_t n = 0; n <= t.text.size(); ++n) {
      Rows got;
      const std::string part = t.text.substr(0, n);
      try {
        CsvReader r(text_source(part), table_options(t));
        got = all_rows(r, 1);
      } catch (const Error& e) {
        continue;
      }
      REQUIRE(got.size() <= t.rows.size());
      for (size_t i = 0; i + 1 < got.size(); ++i) REQUIRE(got[i] == t.rows[i]);
    }
  }
}
