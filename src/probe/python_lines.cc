#include "probe/python_lines.h"

#include "probe/python_layout.h"
#include "probe/system.h"

namespace millpond::probe::python {
namespace {

struct Table {
  const uint8_t* at;
  const uint8_t* end;
};

// Pairs: so many bytes of code further, so many lines further.
int from_lnotab(Table t, int line, int64_t byte) {
  for (int64_t begin = 0; t.at + 1 < t.end; t.at += 2) {
    begin += t.at[0];
    if (begin > byte) break;
    line += int8_t(t.at[1]);
  }
  return line;
}

// Pairs: the next so many bytes of code are so many lines further; -128: they have none.
int from_linetable(Table t, int line, int64_t byte) {
  for (int64_t end = 0; t.at + 1 < t.end; t.at += 2) {
    end += t.at[0];
    if (int8_t(t.at[1]) != -128) line += int8_t(t.at[1]);
    if (end > byte) break;
  }
  return line;
}

int signed_number(Table t) {
  uint32_t value = 0;
  for (int shift = 0; t.at < t.end && shift < 30; shift += 6) {
    value |= uint32_t(*t.at & 63) << shift;
    if (!(*t.at++ & 64)) break;
  }
  return value & 1 ? -int(value >> 1) : int(value >> 1);
}

// Entries of several bytes, the first one with its highest bit set: kind and length in units of code.
int from_locations(Table t, int line, int64_t unit) {
  int64_t end = 0;
  while (t.at < t.end) {
    const int kind = *t.at >> 3 & 15;
    end += (*t.at & 7) + 1;
    if (kind == 13 || kind == 14)
      line += signed_number({t.at + 1, t.end});
    else if (kind >= 10 && kind <= 12)
      line += kind - 10;
    if (end > unit) break;
    do ++t.at;
    while (t.at < t.end && !(*t.at & 0x80));
  }
  return line;
}

// One word each, so that a thread reads all of an answer or none of it: number 16 bits, unit 24, line 24.
constexpr uint32_t kAnswers = 1 << 14;
alignas(sys::kPageSize) uint64_t answers[kAnswers];

}  // namespace

int decode_line(const Layout& l, const void* code, int64_t unit) {
  const int first = at<int32_t>(code, l.code_first_line);
  const void* table = at<const void*>(code, l.code_lines);
  if (unit < 0 || !plausible(table)) return first;
  const int64_t size = at<int64_t>(table, l.bytes_size);
  if (size < 0 || size > (1 << 26)) return first;
  const auto* text = static_cast<const uint8_t*>(table) + l.bytes_text;
  const Table t{text, text + size};
  switch (l.lines) {
    case Lines::kLnotab:
      return from_lnotab(t, first, unit);
    case Lines::kLinetable:
      return from_linetable(t, first, unit * 2);
    case Lines::kLocations:
      return from_locations(t, first, unit);
  }
  return first;
}

int line_of(const void* code, int number, int64_t unit) {
  if (unit >= 1 << 24) return decode_line(layout, code, unit);
  const uint64_t question = uint64_t(number + 1) << 24 | uint64_t(unit & 0xffffff);
  uint64_t& place = answers[(question * 0x9e3779b97f4a7c15u) >> 50];
  const uint64_t answer = __atomic_load_n(&place, __ATOMIC_RELAXED);
  if (answer >> 24 == question) return int(answer & 0xffffff);
  const int line = decode_line(layout, code, unit) & 0xffffff;
  __atomic_store_n(&place, question << 24 | uint64_t(line), __ATOMIC_RELAXED);
  return line;
}

void forget_lines() { sys::wipe(answers, sizeof answers); }

}  // namespace millpond::probe::python
