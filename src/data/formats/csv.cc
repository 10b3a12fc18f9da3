#include "data/formats/csv.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/assert.h"
#include "base/format.h"
#include "data/formats/number.h"

namespace millpond::data {

namespace {
constexpr size_t kLeastBuffer = 4 << 10;

// What is wrong with a row, kept small: a file may be full of such rows.
enum class Wrong { kNothing, kIncomplete, kTooFew, kTooMany, kAfterQuote, kUnclosed, kTooLong, kNotOfType, kMissing };
struct Trouble {
  Wrong what = Wrong::kNothing;
  int64_t field = 0;  // or the number of fields
  std::string_view found;
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }
std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

bool parse_bool(std::string_view s, bool& value) {
  for (const char* yes : {"true", "True", "TRUE", "1"})
    if (s == yes) return value = true, true;
  for (const char* no : {"false", "False", "FALSE", "0"})
    if (s == no) return value = false, true;
  return false;
}

// The next `delimiter` or line end at or after p; one is there.
[[gnu::always_inline]] inline const char* find_stop(const char* p, char delimiter) {
  const __m128i a = _mm_set1_epi8(delimiter), b = _mm_set1_epi8('\n');
  for (;; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto hits = unsigned(_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, a), _mm_cmpeq_epi8(v, b))));
    if (hits) return p + __builtin_ctz(hits);
  }
}

std::string list_of(const std::vector<std::string>& names) {
  std::string s;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 20); ++i) s += (i ? ", " : "") + shown(names[i]);
  return s + (names.size() > 20 ? ", ..." : "");
}
}  // namespace

std::string_view to_string(CsvType type) {
  static constexpr const char* kNames[] = {"auto", "bool", "int64", "float32", "float64", "text"};
  return kNames[int(type)];
}

struct CsvReader::Impl {
  // One field of every row: what it becomes, and where.
  struct Field {
    CsvType type = CsvType::kAuto;  // kAuto: passed over
    char stop = ',';                // what ends it: the delimiter, or the line end for the last
    int32_t slot = -1;
    std::byte* to = nullptr;  // the first row's cell
    int64_t stride = 0;
  };
  // A field as it stands in the buffer, quotes off.
  struct Raw {
    std::string_view text;
    const char* next = nullptr;  // behind the delimiter or line end
    bool last = false;           // a line end followed
  };

  CsvOptions options;
  ByteStream stream;
  std::vector<CsvColumn> columns;
  std::vector<std::string> names;  // of all fields
  std::vector<Field> fields;
  int64_t label = -1;
  bool any_text = false;
  bool numbers_may_be_missing = false;  // a text of options.missing reads as a number: look twice at each

  // [begin, end): whole lines, the last byte of which is a line end; [end, fill): the begin of another.
  std::unique_ptr<char[]> buffer;
  size_t capacity = 0, begin = 0, end = 0, fill = 0;
  int64_t base = 0;                    // of buffer[0] in the bytes of the stream
  bool at_end = false, added = false;  // added: the last line end is ours
  int64_t row = 0, line = 1;
  Skipped skipped;
  Trouble trouble;
  int64_t lines_inside = 0;  // line ends in quotes of the row being read

  Impl(SharedSource source, CsvOptions o) : options(std::move(o)), stream(std::move(source), options.compression) {}

  const std::string& file() const { return stream.source().name(); }

  // ---- the buffer ----

  // Moves what is left to the front and fills the rest. False: nothing new came.
  bool refill() {
    if (at_end || (begin == 0 && fill == capacity)) return false;
    std::memmove(buffer.get(), buffer.get() + begin, fill - begin);
    base += int64_t(begin);
    fill -= begin;
    begin = 0;
    const size_t got = stream.read(std::as_writable_bytes(std::span(buffer.get() + fill, capacity - fill)));
    fill += got;
    if (fill < capacity) {
      at_end = true;
      if (fill > 0 && buffer[fill - 1] != '\n') {
        buffer[fill++] = '\n';
        added = true;
      }
    }
    const void* last = memrchr(buffer.get(), '\n', fill);
    end = last ? size_t(static_cast<const char*>(last) - buffer.get()) + 1 : 0;
    return true;
  }

  // ---- one field ----

  // False with `trouble` set: incomplete, or text behind a closing quote. Without `wanted` the text may have its quotes
  // still doubled.
  bool raw_field(const char* p, Raw& out, bool wanted) {
    const char* const limit = buffer.get() + end;
    if (options.quote && *p == options.quote) {
      char* const start = buffer.get() + (p + 1 - buffer.get());
      const char* q = start;
      bool doubled = false;
      for (;;) {
        q = static_cast<const char*>(std::memchr(q, options.quote, size_t(limit - q)));
        if (!q) return trouble = {Wrong::kIncomplete, 0, {}}, false;
        if (q[1] != options.quote) break;  // the byte after a quote is there: the last one is a line end
        doubled = true;
        q += 2;
      }
      out.text = {start, size_t(q - start)};
      ++q;
      if (*q == '\r' && q[1] == '\n') ++q;
      if (*q != '\n' && *q != options.delimiter)
        return trouble = {Wrong::kAfterQuote, 0, {q, size_t(std::min<ptrdiff_t>(limit - q, 8))}}, false;
      out.last = *q == '\n';
      out.next = q + 1;
      lines_inside += std::count(out.text.begin(), out.text.end(), '\n');
      if (doubled && wanted) out.text = undoubled(start, out.text.size());
      return true;
    }
    const char* q = find_stop(p, options.delimiter);
    out.last = *q == '\n';
    out.next = q + 1;
    out.text = {p, size_t(q - p) - (out.last && q > p && q[-1] == '\r')};
    return true;
  }
  // Not in place: the row may be read again, when the buffer has moved or after an error.
  // The texts of the rows in a buffer take no more than the buffer; each is here once, see read_rows.
  std::string_view undoubled(const char* s, size_t n) {
    MP_CHECK(unquoted_used + n <= capacity);
    char* const to = unquoted.get() + unquoted_used;
    char* t = to;
    for (size_t i = 0; i < n; ++i) {
      *t++ = s[i];
      if (s[i] == options.quote) ++i;
    }
    unquoted_used += size_t(t - to);
    return {to, size_t(t - to)};
  }
  std::unique_ptr<char[]> unquoted;  // as large as the buffer
  size_t unquoted_used = 0;

  // ---- one row ----

  bool is_missing(std::string_view text) const {
    for (const std::string& m : options.missing)
      if (text == m) return true;
    return false;
  }

  // False: `text` is no value of this type.
  bool convert(CsvType type, std::string_view text, std::byte* to) {
    const auto put = [&](auto v) { return std::memcpy(to, &v, sizeof v), true; };
    if (type == CsvType::kText) return put(text);
    text = trimmed(text);
    if (is_missing(text)) {
      switch (type) {
        case CsvType::kFloat32:
          return put(float(options.missing_float));
        case CsvType::kFloat64:
          return put(options.missing_float);
        case CsvType::kInt64:
          if (options.missing_int) return put(*options.missing_int);
          break;
        default:
          if (options.missing_bool) return put(*options.missing_bool);
      }
      trouble.what = Wrong::kMissing;
      return false;
    }
    const auto number = [&](auto v) {
      const char* const stop = text.data() + text.size();
      return !text.empty() && parse_number(text.data(), v) == stop && put(v);
    };
    switch (type) {
      case CsvType::kFloat32:
        return number(float{});
      case CsvType::kFloat64:
        return number(double{});
      case CsvType::kInt64:
        return number(int64_t{});
      default: {
        bool v = false;
        return parse_bool(text, v) && put(v);
      }
    }
  }

  // The number at p, bare or in quotes, followed by `stop`: returns what lies behind that, or nullptr: look closer.
  template <class T>
  [[gnu::always_inline]] const char* quickly(const char* p, char stop, std::byte* to) const {
    T v = 0;
    const char* q = quick_number(p, stop, v);
    if (q) [[likely]] {
      std::memcpy(to, &v, sizeof v);
      return q + 1;
    }
    const bool quoted = options.quote && *p == options.quote;
    q = parse_number(p + quoted, v);
    if (!q || (quoted && *q++ != options.quote)) return nullptr;
    if (*q == '\r' && stop == '\n') ++q;
    if (*q != stop) return nullptr;
    std::memcpy(to, &v, sizeof v);
    return q + 1;
  }

  // Reads the row at p into row r of the fields' cells. Returns where the next one begins, or nullptr with `trouble`
  // set.
  const char* read_row(const char* p, int64_t r) {
    const size_t n = fields.size();
    const bool quick = !numbers_may_be_missing;
    lines_inside = 0;
    trouble.what = Wrong::kNothing;
    for (size_t i = 0; i < n; ++i) {
      Field& f = fields[i];
      // The quick ways: the number, and right behind it what must end the field.
      std::byte* const to = f.to + r * f.stride;
      if (quick) {
        const char* q = nullptr;
        switch (f.type) {
          case CsvType::kFloat32:
            q = quickly<float>(p, f.stop, to);
            break;
          case CsvType::kFloat64:
            q = quickly<double>(p, f.stop, to);
            break;
          case CsvType::kInt64:
            q = quickly<int64_t>(p, f.stop, to);
            break;
          default:
            break;
        }
        if (q) [[likely]] {
          p = q;
          continue;
        }
      }
      Raw raw;
      if (!raw_field(p, raw, f.type != CsvType::kAuto)) {
        trouble.field = int64_t(i);
        return nullptr;
      }
      if (f.type != CsvType::kAuto && !convert(f.type, raw.text, to)) {
        if (raw.last && i + 1 < n) return trouble = {Wrong::kTooFew, int64_t(i) + 1, {}}, nullptr;
        trouble = {trouble.what == Wrong::kMissing ? Wrong::kMissing : Wrong::kNotOfType, int64_t(i), raw.text};
        return nullptr;
      }
      p = raw.next;
      if (raw.last != (i + 1 == n)) {
        if (raw.last) return trouble = {Wrong::kTooFew, int64_t(i) + 1, {}}, nullptr;
        return trouble = {Wrong::kTooMany, int64_t(n), {}}, nullptr;
      }
    }
    return p;
  }

  // Up to `rows` rows into the cells of `fields`.
  int64_t read_rows(int64_t rows) {
    int64_t done = 0;
    unquoted_used = 0;
    while (done < rows) {
      if (begin == end) {
        if (any_text && done > 0) break;  // their views point into the buffer
        if (!more_lines()) break;
      }
      if (!any_text) unquoted_used = 0;
      const size_t unquoted_before = unquoted_used;
      const char* p = buffer.get() + begin;
      if (*p == '\n' || (*p == '\r' && p[1] == '\n')) {
        begin += *p == '\n' ? 1 : 2;
        ++line;
        continue;
      }
      const char* next = read_row(p, done);
      if (next) [[likely]] {
        begin = size_t(next - buffer.get());
        line += 1 + lines_inside;
        ++done;
        ++row;
        continue;
      }
      unquoted_used = unquoted_before;
      // Where a bad row ends must not depend on where the buffer does: it is looked for with as much as fits.
      const Trouble why = trouble;
      const char* end_of_row =
          why.what == Wrong::kIncomplete || options.on_bad == OnBad::kThrow ? nullptr : find_row_end(p);
      if (trouble.what == Wrong::kIncomplete) {
        if (any_text && done > 0) break;
        if (refill()) continue;
      }
      trouble = why;
      if (trouble.what == Wrong::kIncomplete) trouble.what = at_end ? Wrong::kUnclosed : Wrong::kTooLong;
      pass_over(end_of_row);
    }
    return done;
  }

  // Begins a line in the buffer; false at the end of the file. A line that does not fit is bad.
  bool more_lines() {
    for (;;) {
      if (begin < end) return true;
      if (refill()) continue;
      if (at_end) return false;
      trouble = {Wrong::kTooLong, 0, {}};  // the buffer is full, and no line end in it
      if (options.on_bad == OnBad::kThrow) throw error();
      note();
      for (;;) {
        begin = fill;
        if (!refill()) return false;
        const void* stop = fill > 0 ? std::memchr(buffer.get(), '\n', fill) : nullptr;
        if (!stop) continue;
        begin = size_t(static_cast<const char*>(stop) - buffer.get()) + 1;
        break;
      }
      ++line;
    }
  }

  // The begin of the row after the one at p; nullptr where quotes leave it open (`trouble` is set).
  const char* find_row_end(const char* p) {
    lines_inside = 0;
    Raw raw;
    do {
      if (!raw_field(p, raw, false)) return nullptr;
      p = raw.next;
    } while (!raw.last);
    return p;
  }
  // The row at `begin` is bad: thrown, or passed over up to `next`; where quotes leave that open, only its line is.
  void pass_over(const char* next) {
    if (trouble.what == Wrong::kTooMany) count_fields();
    if (options.on_bad == OnBad::kThrow) throw error();
    note();
    if (next) {
      line += 1 + lines_inside;
      begin = size_t(next - buffer.get());
      return;
    }
    begin = size_t(static_cast<const char*>(std::memchr(buffer.get() + begin, '\n', end - begin)) - buffer.get()) + 1;
    ++line;
  }
  void count_fields() {
    const char* p = buffer.get() + begin;
    const int64_t inside = lines_inside;
    int64_t n = 0;
    for (Raw raw; !raw.last && raw_field(p, raw, false); p = raw.next) ++n;
    lines_inside = inside;
    trouble = {Wrong::kTooMany, n, {}};
  }
  void note() {
    if (skipped.count++ == 0) skipped.first = error().text();
  }

  Error error() const {
    const auto field = size_t(trouble.field);
    const std::string column =
        field < names.size() ? format("column \"{}\"", shown(names[field])) : format("field {}", field + 1);
    std::string where = format("line {}", line), expected, found,
                hint = "skip_bad_rows passes over such rows and counts them";
    switch (trouble.what) {
      case Wrong::kTooFew:
      case Wrong::kTooMany:
        expected = format("{} fields", fields.size());
        found = format("{}", trouble.field);
        break;
      case Wrong::kAfterQuote:
        where += ", " + column;
        expected = "a delimiter or the line's end behind a closing quote";
        found = format("\"{}\"", shown(trouble.found));
        break;
      case Wrong::kUnclosed:
      case Wrong::kIncomplete:
        where += ", " + column;
        expected = "a quote that closes";
        found = "the end of the file";
        break;
      case Wrong::kTooLong:
        expected = format("a row of less than {}", Bytes{int64_t(capacity)});
        found = "more";
        hint = "a quote that never closes makes such rows; otherwise give the option buffer more bytes";
        break;
      case Wrong::kMissing:
        where += ", " + column;
        expected = format("a value of type {}", to_string(fields[field].type));
        found = "a missing one";
        hint = fields[field].type == CsvType::kInt64 ? "give missing_int, or the column the type float32"
                                                     : "give missing_bool, or the column the type text";
        break;
      default:
        where += ", " + column;
        expected = format("a value of type {}", field < fields.size() ? to_string(fields[field].type) : "auto");
        found = format("\"{}\"", shown(trouble.found));
        hint = "give the column its type, or let types be inferred from more rows";
    }
    return Error(Code::kFormat, format("{}: {}: expected {}, found {}", file(), where, expected, found))
        .hint(hint)
        .with("file", file())
        .with("where", where)
        .with("expected", expected)
        .with("found", found);
  }

  // ---- the beginning ----

  void check_options() const {
    const char d = options.delimiter;
    if ((d >= '0' && d <= '9') || (d >= 'a' && d <= 'z') || (d >= 'A' && d <= 'Z') || d == '.' || d == '+' ||
        d == '-' || d == '\n' || d == '\r' || d == 0 || d == options.quote)
      throw Error(Code::kUsage, format("'{}' cannot be the delimiter of a CSV file", shown({&d, 1})))
          .hint("one of , ; | or a tab, or another sign that numbers do not hold");
    const char q = options.quote;
    if ((q >= '0' && q <= '9') || q == '.' || q == '+' || q == '-' || q == '\n' || q == '\r')
      throw Error(Code::kUsage, format("'{}' cannot be the quote of a CSV file", shown({&q, 1})));
    if (options.floats != CsvType::kFloat32 && options.floats != CsvType::kFloat64)
      throw Error(Code::kUsage, "CsvOptions::floats may be float32 or float64");
    if (options.buffer < Bytes{int64_t(kLeastBuffer)} || options.buffer > Bytes{int64_t{1} << 30})
      throw Error(Code::kUsage, format("a CSV buffer of {} is not between 4 KiB and 1 GiB", options.buffer));
  }

  void open() {
    check_options();
    for (const std::string& m : options.missing) {
      const std::string padded = m + std::string(kSlack, '\0');
      double v;
      numbers_may_be_missing |= !m.empty() && parse_number(padded.c_str(), v) == padded.c_str() + m.size();
    }
    capacity = size_t(options.buffer.value);
    buffer = std::make_unique_for_overwrite<char[]>(capacity + 1 + 2 * kSlack);
    std::memset(buffer.get() + capacity, 0, 1 + 2 * kSlack);
    if (options.quote) unquoted = std::make_unique_for_overwrite<char[]>(capacity + kSlack);
    refill();
    const std::string_view start(buffer.get(), fill);
    if (start.starts_with("\xef\xbb\xbf")) begin = 3;
    if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
      throw Error(Code::kUnsupported, format("{} is UTF-16 text", file())).hint("convert it: iconv -f UTF-16 -t UTF-8");
    read_names();
    choose_columns();
    infer_types();
  }

  void read_names() {
    while (begin < end && (buffer[begin] == '\n' || (buffer[begin] == '\r' && buffer[begin + 1] == '\n'))) {
      begin += buffer[begin] == '\n' ? 1 : 2;
      ++line;
    }
    if (begin == end) {
      trouble = {Wrong::kTooLong, 0, {}};
      if (fill > begin) throw error();
      throw Error(Code::kFormat, format("{} holds no rows", file())).with("file", file());
    }
    const char* p = buffer.get() + begin;
    lines_inside = 0;
    Raw raw;
    do {
      if (!raw_field(p, raw, true)) {
        trouble.field = int64_t(names.size());
        if (trouble.what == Wrong::kIncomplete && !at_end) trouble.what = Wrong::kTooLong;
        throw error();
      }
      names.push_back(options.header ? std::string(trimmed(raw.text)) : format("column_{}", names.size()));
      p = raw.next;
    } while (!raw.last);
    if (options.header) {
      begin = size_t(p - buffer.get());
      line += 1 + lines_inside;
    }
    unquoted_used = 0;
    fields.resize(names.size());
    for (Field& f : fields) f.stop = options.delimiter;
    fields.back().stop = '\n';
  }

  int64_t field_named(const std::string& name) const {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      throw Error(Code::kValue, format("{} has no column \"{}\"", file(), shown(name)))
          .hint(format("its columns are {}{}", list_of(names), options.header ? "" : "; header is off"))
          .with("file", file());
    if (std::find(at + 1, names.end(), name) != names.end())
      throw Error(Code::kValue, format("{} has several columns named \"{}\"", file(), shown(name)))
          .with("file", file());
    return at - names.begin();
  }

  void choose_columns() {
    const int64_t label_field = options.label.empty() ? -1 : field_named(options.label);
    std::vector<int64_t> chosen;
    if (options.columns.empty()) {
      for (int64_t i = 0; i < int64_t(names.size()); ++i) chosen.push_back(i);
    } else {
      for (const std::string& name : options.columns) {
        chosen.push_back(field_named(name));
        if (std::count(chosen.begin(), chosen.end(), chosen.back()) > 1)
          throw Error(Code::kUsage, format("column \"{}\" is selected twice", shown(name)));
      }
    }
    std::erase(chosen, label_field);
    if (label_field >= 0) {
      label = int64_t(chosen.size());
      chosen.push_back(label_field);
    }
    for (int64_t f : chosen) {
      fields[size_t(f)].slot = int32_t(columns.size());
      columns.push_back({names[size_t(f)], f == label_field ? CsvType::kAuto : options.features, f});
    }
    for (const auto& [name, type] : options.types) {
      const int64_t f = field_named(name);
      if (fields[size_t(f)].slot < 0)
        throw Error(Code::kUsage, format("column \"{}\" has a type, but is not selected", shown(name)));
      columns[size_t(fields[size_t(f)].slot)].type = type;
    }
  }

  void infer_types() {
    struct Seen {
      bool value = false, missing = false, not_int = false, not_number = false, not_bool = false;
    };
    std::vector<Seen> seen(fields.size());
    const char* p = buffer.get() + begin;
    const char* const limit = buffer.get() + end;
    std::vector<std::string_view> cells(fields.size());
    for (int64_t r = 0; r < options.infer_rows && p < limit;) {
      if (*p == '\n' || (*p == '\r' && p[1] == '\n')) {
        p += *p == '\n' ? 1 : 2;
        continue;
      }
      unquoted_used = 0;
      Raw raw;
      size_t n = 0;
      bool good = true;
      do {
        good = raw_field(p, raw, true);
        if (!good) break;
        if (n < cells.size()) cells[n] = raw.text;
        ++n;
        p = raw.next;
      } while (!raw.last);
      if (!good) break;  // read() will say what is wrong with it
      ++r;
      if (n != cells.size()) continue;
      for (size_t i = 0; i < n; ++i) {
        if (fields[i].slot < 0) continue;
        const std::string_view text = trimmed(cells[i]);
        Seen& s = seen[i];
        if (is_missing(text)) {
          s.missing = true;
          continue;
        }
        s.value = true;
        bool b;
        double d;
        int64_t whole;
        const char* const stop = text.data() + text.size();
        s.not_bool |= !parse_bool(text, b) || text == "0" || text == "1";
        s.not_int |= text.empty() || parse_number(text.data(), whole) != stop;
        s.not_number |= text.empty() || parse_number(text.data(), d) != stop;
      }
    }
    unquoted_used = 0;
    for (CsvColumn& c : columns) {
      const Seen& s = seen[size_t(c.field)];
      if (c.type == CsvType::kAuto) {
        if (!s.value)
          c.type = options.floats;
        else if (!s.not_bool)
          c.type = s.missing && !options.missing_bool ? CsvType::kText : CsvType::kBool;
        else if (!s.not_int)
          c.type = s.missing && !options.missing_int ? options.floats : CsvType::kInt64;
        else
          c.type = s.not_number ? CsvType::kText : options.floats;
      }
      fields[size_t(c.field)].type = c.type;
      any_text |= c.type == CsvType::kText;
    }
  }
};

CsvReader::CsvReader(SharedSource source, CsvOptions options)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(options))) {
  impl_->open();
}
CsvReader::CsvReader(CsvReader&&) noexcept = default;
CsvReader& CsvReader::operator=(CsvReader&&) noexcept = default;
CsvReader::~CsvReader() = default;

const std::vector<CsvColumn>& CsvReader::columns() const { return impl_->columns; }
int64_t CsvReader::label() const { return impl_->label; }
const Skipped& CsvReader::skipped() const { return impl_->skipped; }
Bytes CsvReader::memory() const {
  const Impl& m = *impl_;
  size_t names = 0;
  for (const std::string& n : m.names) names += sizeof n + n.capacity();
  return Bytes{int64_t(m.capacity + (m.unquoted ? m.capacity : 0) +
                       m.fields.size() * (sizeof(Impl::Field) + sizeof(CsvColumn)) + 2 * names)} +
         m.stream.memory();
}

int64_t CsvReader::read(int64_t rows, std::span<const CsvSlot> slots) {
  Impl& m = *impl_;
  if (slots.size() != m.columns.size())
    throw Error(Code::kUsage, format("{} slots for {} columns of {}", slots.size(), m.columns.size(), m.file()));
  for (Impl::Field& f : m.fields) {
    if (f.slot < 0) continue;
    f.to = static_cast<std::byte*>(slots[size_t(f.slot)].data);
    f.stride = slots[size_t(f.slot)].stride;
  }
  return m.read_rows(rows);
}

int64_t CsvReader::skip(int64_t rows) {
  Impl& m = *impl_;
  alignas(16) std::array<std::byte, 16> nowhere;
  for (Impl::Field& f : m.fields) {
    f.to = nowhere.data();
    f.stride = 0;
  }
  int64_t done = 0;
  while (done < rows) {
    const int64_t n = m.read_rows(rows - done);
    if (n == 0) break;
    done += n;
  }
  return done;
}

CsvPosition CsvReader::position() const {
  const Impl& m = *impl_;
  return {m.base + int64_t(m.begin) - (m.added && m.begin == m.fill), m.row, m.line, m.skipped.count};
}

void CsvReader::restore(const CsvPosition& p) {
  Impl& m = *impl_;
  m.stream.seek(p.offset);
  m.begin = m.end = m.fill = 0;
  m.base = m.stream.position();
  m.at_end = m.added = false;
  m.row = p.row;
  m.line = p.line;
  m.skipped.count = p.skipped;
  if (p.skipped == 0) m.skipped.first.clear();
}

}  // namespace millpond::data
