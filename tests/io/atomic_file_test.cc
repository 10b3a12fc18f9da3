#include "io/atomic_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>
#include <string>

#include "io/scratch.h"
#include "millpond/error.h"

using namespace millpond;
using namespace millpond::io;

namespace {
void write(AtomicFile& f, const std::string& text) { f.write(std::as_bytes(std::span(text))); }
}  // namespace

TEST_CASE("AtomicFile: the target changes at commit, all at once") {
  Scratch dir;
  dir.put("a", "old");
  {
    AtomicFile f(dir.path("a"));
    write(f, "new, ");
    write(f, "and longer");
    CHECK(dir.get("a") == "old");
    f.commit();
    CHECK(dir.get("a") == "new, and longer");
  }
  CHECK(dir.files() == 1);
}

TEST_CASE("AtomicFile: without commit the old file stays and nothing else is left") {
  Scratch dir;
  dir.put("a", "old");
  {
    AtomicFile f(dir.path("a"));
    write(f, "half of the");
  }
  {
    AtomicFile f(dir.path("never"));
  }
  CHECK(dir.get("a") == "old");
  CHECK(dir.files() == 1);
}

TEST_CASE("AtomicFile: a link stays a link, the file it points to is replaced and keeps its permissions") {
  Scratch dir;
  dir.put("real", "old");
  chmod(dir.path("real").c_str(), 0640);
  REQUIRE(symlink("real", dir.path("link").c_str()) == 0);
  AtomicFile f(dir.path("link"));
  write(f, "new");
  f.commit();
  CHECK(dir.get("real") == "new");
  struct stat s{};
  lstat(dir.path("link").c_str(), &s);
  CHECK(S_ISLNK(s.st_mode));
  stat(dir.path("real").c_str(), &s);
  CHECK((s.st_mode & 0777) == 0640);
}

TEST_CASE("AtomicFile: two writers of one target do not meet; the last commit wins") {
  Scratch dir;
  AtomicFile a(dir.path("x")), b(dir.path("x"));
  write(a, "first");
  write(b, "second");
  b.commit();
  a.commit();
  CHECK(dir.get("x") == "first");
}

TEST_CASE("AtomicFile: a folder, a device or a folder that is not there is refused with the cure") {
  Scratch dir;
  CHECK_THROWS_WITH_AS(AtomicFile("/dev/null"),
                       "/dev/null is not a plain file and will not be replaced; give the name of a file", Error);
  CHECK_THROWS_AS(AtomicFile(dir.path(".")), Error);
  const std::string file = dir.path("no/such/file");
  CHECK_THROWS_WITH_AS(AtomicFile{file},
                       (file + " cannot be written: No such file or directory; does the folder " + dir.path("no/such") +
                        " exist, and may you write there?")
                           .c_str(),
                       Error);
  CHECK(dir.empty());
}
