#include "runfile/reader.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "runfile/sqlite.h"
#include "runfile/support.h"

using namespace millpond;
using namespace millpond::runfile;
using namespace millpond::runfile::testing;
namespace fs = std::filesystem;

namespace {

/// Why a whole run file is refused after this was done to it.
std::string after(const char* sql) {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  Database(path, Database::Mode::kWrite).run(sql);
  return refusal([&] { read_all(Reader(path)); }, Code::kFormat);
}

}  // namespace

TEST_CASE("Reader: an empty file, garbage and another program's database are refused with what they are") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  const auto open = [&] { Reader r(path); };
  CHECK(refusal(open, Code::kFile) ==
        format("run file {} cannot be opened: No such file or directory; check the path", path));
  CHECK(holds(refusal([&] { Reader r(folder.path); }, Code::kFile), "is not a regular file"));
  put(path, "");
  CHECK(
      refusal(open, Code::kFormat) ==
      format("run file {} is no run file: its 0 B do not begin as one; check the path, or record the run again", path));
  put(path, std::string(5000, 'x'));
  CHECK(holds(refusal(open, Code::kFormat), "its 4.88 KiB do not begin as one"));
  fs::remove(path);
  Database(path, Database::Mode::kCreate).run("CREATE TABLE cakes (name TEXT)");
  CHECK(refusal(open, Code::kFormat) ==
        format("run file {} is an SQLite file, but no run file of Millpond; check the path", path));
}

TEST_CASE("Reader: a newer version is refused with both numbers") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  Database(path, Database::Mode::kWrite).run("PRAGMA user_version = 3");
  CHECK(
      refusal([&] { Reader r(path); }, Code::kFormat) ==
      format("run file {} has schema version 3, and this Millpond reads up to 2; open it with a newer Millpond", path));
}

TEST_CASE("Reader: tables and columns that a later Millpond adds do not disturb") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  Database(path, Database::Mode::kWrite)
      .run("CREATE TABLE later (id INTEGER); ALTER TABLE phases ADD COLUMN colour TEXT");
  CHECK(Reader(path).phases().size() == 4);
}

TEST_CASE("Reader: wrong types, negative sizes, dangling accounts, views and generated columns are refused") {
  CHECK(holds(after("UPDATE series SET bytes = 'many' WHERE rowid = 2"), "row 2 of"));
  CHECK(holds(after("UPDATE marks SET units = '1 x'"), "where numbers are expected"));
  CHECK(holds(after("UPDATE sites SET frames = '-1'"), "where numbers are expected"));
  CHECK(holds(after("DELETE FROM frames WHERE id = 2"), "lacks frame 2"));
  CHECK(holds(after("UPDATE series SET bytes = 'many'"), "bytes is a text, but must be an integer"));
  CHECK(holds(after("UPDATE plan_buffers SET size = -1"), "size is an integer, but must be 0 or more"));
  CHECK(holds(after("UPDATE os_series SET rss = 1.5"), "rss is a real number, but must be an integer"));
  CHECK(holds(after("UPDATE phases SET name = x'00'"), "name is a blob, but must be a text"));
  CHECK(holds(after("DELETE FROM accounts"), "speaks of account 3, which it does not have"));
  CHECK(holds(after("UPDATE series SET kind = 'guess'"), "has a series of the kind \"guess\""));
  CHECK(holds(after("DROP TABLE series"), "has no table series as Millpond makes it"));
  CHECK(holds(after("DROP TABLE series; CREATE VIEW series AS SELECT 1 t, 1 phase, 1 account, 'peak' kind, 1 bytes"),
              "computes with its rows"));
  CHECK(holds(after("DROP TABLE meta; CREATE TABLE meta (key TEXT, value TEXT AS (key || key))"), "has no table meta"));
  CHECK(holds(after("INSERT INTO meta VALUES ('big', printf('%.*c', 100000, 'x'))"), "too big"));
}

TEST_CASE("Reader: numbers that no run can have are refused, so that none that it gives out overflows a sum") {
  CHECK(holds(after("UPDATE marks SET rss = 9223372036854775807"),
              "rss is an integer, but must be an amount that together"));
  CHECK(holds(after("UPDATE site_states SET bytes = 300000000000000000"),
              "bytes is an integer, but must be an amount that together"));
  CHECK(holds(after("UPDATE site_states SET ages = '1125899906842624'"),
              "ages is a text, but must be an amount that together"));
  CHECK(holds(after("UPDATE marks SET \"index\" = -9223372036854775807"),
              "index is an integer, but must be within 2^53"));
  CHECK(holds(after("UPDATE marks SET t = 9e999"), "t is a real number, but must be within 1e18"));
  CHECK(holds(after("UPDATE os_series SET t = -1e10"), "t is a real number, but must be within 1e9 seconds"));
  CHECK(holds(after("UPDATE site_states SET blocks = 9e999"), "blocks is a real number, but must be within 1e18"));
}

TEST_CASE("Reader: more rows or bytes than the limits allow are refused") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  ReaderLimits few, small;
  few.rows = 3;
  small.file = 1_KiB;
  CHECK(holds(refusal([&] { Reader r(path, few); }, Code::kFormat), "has 5 rows in meta, and at most 3 are read"));
  CHECK(holds(refusal([&] { Reader r(path, small); }, Code::kFormat), "and at most 1.00 KiB are read"));
}

TEST_CASE("Reader: a small file cannot become large in memory, nor make SQLite compute") {
  const char* const many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) ";
  CHECK(holds(after(format("UPDATE accounts SET name = printf('%.*c', 60000, 'x') WHERE id = 3; {} INSERT INTO series "
                           "SELECT i, NULL, NULL, 1, 3, 'peak', 1 FROM n",
                           many)
                        .c_str()),
              "accounts with long names more often than 256 MiB hold"));
  CHECK(holds(after(format("{} INSERT INTO programs SELECT i + 9, 'p', 1, 1, 1, 1, 'm' FROM n", many).c_str()),
              "has more than 256 programs"));
  CHECK(holds(after("CREATE TABLE later (a TEXT CHECK (a LIKE '%a%b'))"), "computes with its rows"));
  CHECK(holds(after("CREATE INDEX later ON notes(text LIKE '%a%b')"), "computes with its rows"));
  CHECK(holds(after("CREATE INDEX later ON notes(t) WHERE text LIKE '%a%b'"), "computes with its rows"));
  CHECK(after("CREATE INDEX later ON notes(t, process)") == "not refused");
}

TEST_CASE("Reader: a file cut off anywhere, or with any bytes changed, is read or refused, and nothing worse") {
  const Folder folder;
  const std::string path = folder / "run.pond", broken = folder / "broken.pond";
  small_run(path);
  const std::string good = content(path);
  std::mt19937 random(1);
  int refused = 0, cut = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = good;
    const bool shorter = round % 4 == 0;
    if (shorter) bytes.resize(random() % bytes.size());
    for (unsigned k = 0; !shorter && k < 1 + random() % 20; ++k) bytes[random() % bytes.size()] = char(random());
    put(broken, bytes);
    try {
      read_all(Reader(broken));
    } catch (const Error& e) {
      ++refused;
      cut += shorter;
      CHECK((e.code() == Code::kFormat || e.code() == Code::kFile));
      CHECK(holds(e.text(), "broken.pond"));
    }
  }
  CHECK(cut == 100);
  CHECK(refused > 130);
  for (size_t pages = 1; pages * 4096 < good.size(); ++pages) {
    put(broken, good.substr(0, pages * 4096));
    CHECK(holds(refusal([&] { Reader r(broken); }, Code::kFormat), "is cut off: it has"));
  }
}

TEST_CASE("Reader: leaves the file as it was, to the byte") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  const std::string before = content(path);
  read_all(Reader(path));
  CHECK(content(path) == before);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("Reader: opens the file for reading only") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  const Reader r(path);
  int seen = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry, error) != fs::path(path)) continue;
    ++seen;
    std::ifstream info("/proc/self/fdinfo/" + entry.path().filename().string());
    for (std::string line; std::getline(info, line);)
      if (line.starts_with("flags:")) CHECK((std::stol(line.substr(6), nullptr, 8) & O_ACCMODE) == O_RDONLY);
  }
  CHECK(seen > 0);
}

TEST_CASE("Reader: what a killed program left half written is put right in a copy, and the files stay as they are") {
  const Folder folder;
  const std::string path = folder / "run.pond";
  const pid_t child = fork();
  if (child == 0) {
    Writer w(path, {});
    epoch(w, {}, 1, 1_MiB);
    for (int i = 0; i < 3000; ++i)
      w.begin_phase("epoch", std::string(3000, 'x'), i, {},
                    0);  // more than the cache holds: pages of the file are written
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(fs::file_size(path + "-journal") > 0);
  const std::string file = content(path), journal = content(path + "-journal");
  CHECK(Reader(path).phases().size() == 1);
  CHECK(content(path) == file);
  CHECK(content(path + "-journal") == journal);
}

TEST_CASE("Reader: a journal that names a further file is refused, and that file is neither opened nor removed") {
  const Folder folder;
  const std::string path = folder / "run.pond", thesis = folder / "thesis.txt";
  small_run(path);
  put(thesis, "my thesis");
  // A journal of one page with a good header, and at its end a "super-journal": SQLite would follow the name, and
  // remove the file when it is done.
  const std::string good = content(path);
  const auto number = [](uint32_t n) { return std::string{char(n >> 24), char(n >> 16), char(n >> 8), char(n)}; };
  const std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  std::string journal =
      magic + number(0) + number(1) + number(uint32_t(good.size() / 4096)) + number(512) + number(4096);
  journal.resize(512, '\0');
  uint32_t sum = 0;
  for (const char c : thesis) sum += uint32_t(static_cast<unsigned char>(c));
  journal += number(uint32_t(0x40000000 / 4096 + 1)) + thesis + number(uint32_t(thesis.size())) + number(sum) + magic;
  put(path + "-journal", journal);
  CHECK(holds(refusal([&] { Reader r(path); }, Code::kFormat), "has a journal beside it that names another file"));
  CHECK(content(thesis) == "my thesis");
}

TEST_CASE("Reader: a write-ahead log, in the file or beside it, is refused") {
  CHECK(holds(after("PRAGMA journal_mode = WAL"), "is written in another way"));
  const Folder folder;
  const std::string path = folder / "run.pond";
  small_run(path);
  put(path + "-wal", "something");
  CHECK(holds(refusal([&] { Reader r(path); }, Code::kFormat), "has a write-ahead log beside it"));
  CHECK(content(path + "-wal") == "something");
}

TEST_CASE("Reader: processes, spaces and sources that Millpond does not write are refused") {
  CHECK(holds(after("UPDATE processes SET seen = 'through a glass'"), "was seen \"through a glass\""));
  CHECK(holds(after("UPDATE process_series SET space = 77"), "speaks of memory space 77"));
  CHECK(holds(after("UPDATE spaces SET name = printf('%.*c', 100, 'x') WHERE id = 2"), "which is none"));
  CHECK(holds(after("INSERT INTO sources VALUES (8, 'a', 'b', 1, printf('%.*c', 40000, 'x')), (9, 'a', 'b', 1, "
                    "printf('%.*c', 40000, 'x'))"),
              "has sources that Millpond does not write"));
  CHECK(holds(after("UPDATE sources SET first = -4"), "has sources that Millpond does not write"));
  CHECK(holds(after("UPDATE process_series SET resident = -1"), "must be 0 or more"));
}
