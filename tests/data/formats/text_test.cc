#include "data/formats/text.h"

#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
std::vector<std::string> all(LineReader& r) {
  std::vector<std::string> out;
  std::string_view line;
  while (r.next(line)) out.emplace_back(line);
  return out;
}
std::vector<std::string> lines(std::string_view text, TextOptions o = {}) {
  LineReader r(text_source(text, "t.txt"), o);
  return all(r);
}
using Lines = std::vector<std::string>;
}  // namespace

TEST_CASE("text: lines end with LF or CRLF, the last needs no end, empty ones count") {
  CHECK(lines("a\nb\r\n\n\r\nc") == Lines{"a", "b", "", "", "c"});
  CHECK(lines("a\n") == Lines{"a"});
  CHECK(lines("") == Lines{});
  CHECK(lines("\n") == Lines{""});
  CHECK(lines("a\rb\n") == Lines{"a\rb"});
  CHECK(lines(deflated("a\nb", 31)) == Lines{"a", "b"});
}

TEST_CASE("text: a line up to the limit is given, a longer one refused or skipped and counted") {
  for (int64_t limit : {1, 10, 100000}) {
    const std::string fits(size_t(limit), 'x'), more = fits + "y", much(size_t(limit) * 5 + 300000, 'z');
    CHECK(lines(fits + "\r\n" + fits, {.max_line = Bytes{limit}}) == Lines{fits, fits});
    for (const std::string& bad : {more, more + "\r", much}) {
      const std::string text = fits + "\n" + bad + "\n" + fits + "\n";
      LineReader r(text_source(text, "t.txt"), {.max_line = Bytes{limit}});
      std::string_view line;
      CHECK(r.next(line));
      const Error e = thrown([&] { r.next(line); });
      CHECK(e.text().starts_with("t.txt: line 2, byte "));
      CHECK(e.hint() == "is it a text file? If so, give the option max_line more bytes");
      LineReader skip(text_source(text), {.max_line = Bytes{limit}, .on_bad = OnBad::kSkip});
      CHECK(all(skip) == Lines{fits, fits});
      CHECK(skip.skipped().count == 1);
      CHECK(skip.position().line == 3);
      CHECK(skip.memory() == Bytes{limit + (64 << 10)});
    }
    LineReader last(text_source(more), {.max_line = Bytes{limit}, .on_bad = OnBad::kSkip});
    CHECK(all(last) == Lines{});
    CHECK(last.skipped().count == 1);
  }
}

TEST_CASE("text: many lines through a small buffer, and from any saved position") {
  Random random(1);
  Lines wanted;
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    wanted.push_back(std::string(random.below(20), char('a' + i % 26)));
    text += wanted.back() + (random.below(2) ? "\n" : "\r\n");
  }
  const std::string packed = deflated(text, 31);
  for (const SharedSource& s : {text_source(text), text_source(packed)}) {
    LineReader r(s, {.max_line = Bytes{64}});
    CHECK(all(r) == wanted);
    r.restore({});
    std::string_view line;
    for (int i = 0; i < 12345; ++i) r.next(line);
    const TextPosition saved = r.position();
    LineReader other(s, {.max_line = Bytes{64}});
    other.restore(saved);
    CHECK(all(other) == Lines(wanted.begin() + 12345, wanted.end()));
  }
}
