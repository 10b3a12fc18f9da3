#include <doctest/doctest.h>

#include "report/text.h"

using namespace millpond;
using namespace millpond::report;

TEST_CASE("shown: control characters, broken UTF-8 and characters that turn the line around become question marks") {
  CHECK(shown("a\033[31mb\nc\td\x7f") == "a?[31mb?c?d?");
  CHECK(shown("C1: \xc2\x9b"
              "31m") == "C1: ?31m");
  CHECK(shown("\xff\xc0\xaf"
              "ok\xe2\x82") == "???ok??");
  CHECK(shown("\xe2\x80\xae"
              "evil \xe2\x80\x8b"
              "\xef\xbb\xbf") == "?evil ??");
  CHECK(shown("naïve λ 数") == "naïve λ 数");
  CHECK(shown_lines("a\nb\rc") == "a\nb?c");
}
TEST_CASE("shown: a long name keeps both ends and no character is cut in two") {
  CHECK(shown("0123456789abcdef", 11) == "0123...cdef");
  CHECK(shown("ääääääääääääääää", 9) == "äää...äää");
  CHECK(columns(shown(std::string(1 << 16, 'x'), 40)) == 40);
  CHECK(columns(shown(std::string(1 << 16, '\xff'), 40)) == 40);
  CHECK(shown("short", 40) == "short");
}
TEST_CASE("short_path: whole folders go from the left") {
  CHECK(short_path("project/a/project/models/train.py", 24) == ".../models/train.py");
  CHECK(short_path("train.py", 24) == "train.py");
  CHECK(columns(short_path("/" + std::string(500, 'y'), 24)) == 24);
}
TEST_CASE("short_function: a C++ function without its parameters, a Python one as it is") {
  CHECK(short_function("(anonymous namespace)::remember()", 40) == "remember");
  CHECK(short_function(
            "pond::Cache<int (*)(long)>::put(std::function<void (int)>, (anonymous namespace)::Key const&) const",
            60) == "pond::Cache<int (*)(long)>::put");
  CHECK(short_function("Each::operator()(int) const", 40) == "Each::operator()");
  CHECK(short_function("Each::operator()", 40) == "Each::operator()");
  CHECK(short_function("Trainer.fit.<locals>.<lambda>", 40) == "Trainer.fit.<locals>.<lambda>");
  CHECK(short_function("(", 40) == "(");
  CHECK(short_function(")", 40) == ")");
  CHECK(short_function("()", 40) == "()");
}
TEST_CASE("signed_bytes: shows the sign") {
  CHECK(signed_bytes(8 << 20) == "+8.00 MiB");
  CHECK(signed_bytes(-1536) == "-1.50 KiB");
  CHECK(signed_bytes(0) == "0 B");
  CHECK(signed_bytes(1e300).starts_with("+"));
}
TEST_CASE("Table: numbers stand right, text left, and the last column is cut to the width") {
  Table t({"bytes", "<line", "<text"});
  t.add({"8 B", "a.py:1", "x"});
  t.add({"1.00 MiB", "λ.py:10", std::string(60, 'y')});
  CHECK(t.text(40) ==
        "     bytes  line     text\n"
        "       8 B  a.py:1   x\n"
        "  1.00 MiB  λ.py:10  yyyyyyyy...yyyyyyyy\n");
}
