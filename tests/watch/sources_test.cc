#include "watch/sources.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "runfile/reader.h"
#include "watch/notes.h"

using namespace millpond;
using namespace millpond::watch;
namespace fs = std::filesystem;

namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/millpond_sources_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
    return path + "/" + name;
  }
};

const char* const kProgram = R"py(import time
PASSWORD = "not a function's"

@decorated(
    1)
def outer(x):
    """A text that
goes back to the margin: def inner(
    """
    def inner():
        return [1,
2]

    return inner  # the last line of outer


class Keeper:
    def keep(self, x):
        # a comment
# and one at the margin
        self.seen.append('"""' + x)

    async def other(self): pass


def after(): return 1
for epoch in range(3):
    outer(epoch)
    print(epoch)
)py";

std::vector<runfile::SourceRow> stored(const std::string& file, std::vector<int> lines, bool on = true) {
  const Folder folder;
  runfile::Writer writer(folder.path + "/run.pond", {});
  Sources sources(writer, on, "/nowhere");
  for (const int line : lines) sources.want(file, "f", line, false, Sources::Why::kSampled);
  writer.commit();
  return runfile::Reader(folder.path + "/run.pond").sources();
}

}  // namespace

TEST_CASE(
    "sources: of a sampled line the whole function is stored, with its decorators, whatever its texts and brackets "
    "look like") {
  const Folder folder;
  const std::string file = folder.write("train.py", kProgram);
  const std::vector<runfile::SourceRow> outer = stored(file, {14});
  REQUIRE(outer.size() == 1);
  CHECK(outer[0].first == 4);
  CHECK(outer[0].text.starts_with("@decorated(\n    1)\ndef outer(x):\n"));
  CHECK(outer[0].text.ends_with("return inner  # the last line of outer\n"));
  const std::vector<runfile::SourceRow> inner = stored(file, {12});
  REQUIRE(inner.size() == 1);
  CHECK(inner[0].first == 10);
  CHECK(inner[0].text == "    def inner():\n        return [1,\n2]\n");
  const std::vector<runfile::SourceRow> keep = stored(file, {21});
  REQUIRE(keep.size() == 1);
  CHECK(keep[0].first == 18);
  CHECK(keep[0].text.ends_with("self.seen.append('\"\"\"' + x)\n"));
}

TEST_CASE(
    "sources: of code outside of functions the statement is stored, and what was no part of anything sampled is not") {
  const Folder folder;
  const std::string file = folder.write("train.py", kProgram);
  const std::vector<runfile::SourceRow> loop = stored(file, {28});
  REQUIRE(loop.size() == 1);
  CHECK(loop[0].text.find("for epoch in range(3):\n    outer(epoch)\n    print(epoch)\n") != std::string::npos);
  for (const runfile::SourceRow& s : stored(file, {14, 12, 21, 28}))
    CHECK(s.text.find("PASSWORD") == std::string::npos);
}

TEST_CASE(
    "sources: a function is stored once; with sources off, or for lines and files that are not there, nothing is") {
  const Folder folder;
  const std::string file = folder.write("train.py", kProgram);
  CHECK(stored(file, {18, 19, 21, 21}).size() == 1);
  CHECK(stored(file, {21}, false).empty());
  CHECK(stored(file, {0, -3, 4000}).empty());
  CHECK(stored(folder.path + "/gone.py", {3}).empty());
  CHECK(stored("/dev/zero", {3}).empty());
  CHECK(stored(folder.path, {3}).empty());
}

TEST_CASE(
    "sources: a run keeps at most 64 KiB, the lines that the agent tells of have room to the end, and what does not "
    "fit is counted") {
  const Folder folder;
  std::string text;
  for (int f = 0; f < 200; ++f)
    text += "def f" + std::to_string(f) + "():\n    return '" + std::string(900, 'x') + "'\n";
  const std::string file = folder.write("long.py", text);
  runfile::Writer writer(folder.path + "/run.pond", {});
  Sources sources(writer, true, folder.path);
  for (int f = 0; f < 180; ++f) sources.want(file, "f", 2 * f + 2, false, Sources::Why::kSampled);
  CHECK(sources.left_out() > 100);
  sources.want("long.py", "told", 2 * 199 + 2, false, Sources::Why::kTold);
  sources.take({"<cell 3>", "g", 1, "def g():\n    pass\n"});
  writer.commit();
  int64_t bytes = 0;
  std::string last_file;
  bool told = false;
  for (const runfile::SourceRow& s : runfile::Reader(folder.path + "/run.pond").sources())
    bytes += int64_t(s.text.size()), last_file = s.file, told = told || s.function == "told";
  CHECK(bytes <= runfile::kMostSource);
  CHECK(bytes > runfile::kMostSource / 2);
  CHECK(told);
  CHECK(last_file == "<cell 3>");
}

TEST_CASE("sources: of a function without end, or a line without end, a piece is stored") {
  const Folder folder;
  std::string text = "def endless():\n";
  for (int i = 0; i < 5000; ++i) text += "    x = " + std::to_string(i) + "\n";
  const std::vector<runfile::SourceRow> piece = stored(folder.write("endless.py", text), {2500});
  REQUIRE(piece.size() == 1);
  CHECK(piece[0].text.size() < (16 << 10));
  CHECK(piece[0].text.find("x = 2498\n") != std::string::npos);
  const std::vector<runfile::SourceRow> wide = stored(folder.write("wide.py", std::string(1 << 20, '(')), {1});
  REQUIRE(wide.size() == 1);
  CHECK(wide[0].text.size() <= 1001);
}

TEST_CASE(
    "notes: an exception loses its text; lines and arguments are left out where that is asked; what is no note is "
    "none") {
  const NoteRules all, none{.source = false, .arguments = false};
  CHECK(read_note(R"({"note": "end", "exception": "OperationalError: postgres://user:PASSWORD@db"})", all)->text ==
        R"({"note":"end","exception":"OperationalError"})");
  CHECK(read_note(R"({"note": "end", "exception": null})", all)->text == R"({"note":"end","exception":null})");
  const std::string start = R"({"note":"start","argv":["--token","TOKEN"],"cwd":"/x"})";
  CHECK(read_note(start, all)->text == start);
  CHECK(read_note(start, none)->text == R"({"note":"start","cwd":"/x"})");
  const std::string holders =
      R"js({"note":"holders","containers":[{"type":"list","file":"a.py","line":3,"function":"f","text":"kept.append(SECRET)"}]})js";
  const std::optional<ReadNote> told = read_note(holders, all);
  CHECK(told->text == holders);
  REQUIRE(told->lines.size() == 1);
  CHECK(told->lines[0].file == "a.py");
  CHECK(told->lines[0].line == 3);
  CHECK(read_note(holders, none)->text.find("SECRET") == std::string::npos);
  for (const char* text : {"", "7", "[1]", "{", "null", "{\"note\": \"source\"}",
                           "{\"note\": \"source\", \"file\": 1, \"text\": \"x\", \"first\": 1}"})
    CHECK_FALSE(read_note(text, all));
  std::string deep = R"({"note": )";
  for (int i = 0; i < 100000; ++i) deep += "[";
  CHECK_FALSE(read_note(deep, all));
  for (int i = 0; i < 100000; ++i) deep += "]";
  CHECK_FALSE(read_note(deep + "}", all));
}

TEST_CASE("notes: what a pool has of a device is no text to store, and only names of devices are memory spaces") {
  const std::optional<ReadNote> note = read_note(
      R"({"note": "gpu", "pool": "torch", "devices": [{"space": "gpu:2", "in_use": 5, "reserved": 20, "retries": 3}, {"space": "/etc", "in_use": 5}, {"space": "gpu:1"}, {"space": "gpu:0", "in_use": -4}, 7]})",
      {});
  REQUIRE(note);
  CHECK(note->text.empty());
  REQUIRE(note->pools.size() == 1);
  CHECK(note->pools[0].space == "gpu:2");
  CHECK(note->pools[0].pool == "torch");
  CHECK(note->pools[0].in_use == Bytes{5});
  CHECK(note->pools[0].reserved == Bytes{20});
  CHECK_FALSE(note->pools[0].peak.has_value());
  CHECK(note->pools[0].retries == 3);
  CHECK(read_note(R"({"note":"gpu","pool":"torch","refused":"why"})", {})->text ==
        R"({"note":"gpu","pool":"torch","refused":"why"})");
}

TEST_CASE("notes: a text that lies in no file comes as a note and is stored as a source") {
  const std::optional<ReadNote> note = read_note(
      R"({"note": "source", "file": "<cell 3>", "function": "f", "first": 4, "text": "def f():\n  pass\n"})", {});
  REQUIRE(note);
  CHECK(note->text.empty());
  REQUIRE(note->source);
  CHECK(note->source->first == 4);
  CHECK(note->source->text == "def f():\n  pass\n");
}
