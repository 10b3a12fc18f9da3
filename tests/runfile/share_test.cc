#include "runfile/share.h"

#include <sys/stat.h>

#include "runfile/sqlite.h"
#include "runfile/support.h"

using namespace millpond;
using namespace millpond::runfile;
using namespace millpond::runfile::testing;
namespace fs = std::filesystem;

namespace {
const Private kPerson{"/home/zaphod/work/my project", {"/home/zaphod"}, {"zaphod"}, {"heart-of-gold"}};
std::string plain(const std::string& text) { return without_private(text, kPerson); }
}  // namespace

TEST_CASE(
    "share: paths become relative to the project or to site-packages, others keep their last part, the system's stay") {
  CHECK(plain("/home/zaphod/work/my project/nn/train.py") == "nn/train.py");
  CHECK(plain("/home/zaphod/.venv/lib/python3.11/site-packages/keras/src/trainer.py") ==
        "site-packages/keras/src/trainer.py");
  CHECK(plain("/home/zaphod/.pyenv/versions/3.11.7/lib/python3.11/threading.py") == "/lib/python3.11/threading.py");
  CHECK(plain("/usr/lib/x86_64-linux-gnu/libc.so.6") == "/usr/lib/x86_64-linux-gnu/libc.so.6");
  CHECK(plain("/mnt/secret-customer/data.csv") == "data.csv");
  CHECK(plain("/home/zaphod/.venv/bin/python3 /home/zaphod/work/my project/train.py --data /mnt/customer/x.csv "
              "--epochs 3") == "python3 train.py --data x.csv --epochs 3");
  CHECK(plain(R"({"cwd": "/home/zaphod/work/my project", "file": "/home/zaphod/work/other/a.py"})") ==
        R"({"cwd": ".", "file": "a.py"})");
  CHECK(plain("ran on heart-of-gold as zaphod") == "ran on host as user");
}

TEST_CASE("share: of a path with spaces no folder stays, with quotes around it or without") {
  CHECK(plain("/mnt/Acme Corp/x.csv") == "x.csv");
  CHECK(plain("/mnt/Acme Corp Private Holding/2026 plans/x.csv was read") == "x.csv was read");
  CHECK(plain("open(\"/mnt/Acme Corp (old), Ltd/x y.csv\", 'r')") == "open(\"x y.csv\", 'r')");
  CHECK(plain("read /mnt/customer/x.csv and /mnt/other one/y.csv --out /tmp/a b/c") == "read x.csv and y.csv --out c");
  CHECK(plain("/mnt/customer/x.csv is not there") == "x.csv is not there");
  CHECK(plain("at '/mnt/a\nb' /mnt/c/d") == "at 'a\nb' d");
}

TEST_CASE("share: arithmetic, addresses and names of accounts are no paths") {
  for (const char* text : {"y = a/b/c", "y = f(a)/b/c", "https://example.org/a/b", "weights/dense_1/kernel", "<a/b/c>",
                           "// a comment", "50 % / 3", "/", "//", "/x"})
    CHECK(plain(text) == text);
}

TEST_CASE("share: nothing private is in the bytes of the copy, and all numbers are the same") {
  const Folder folder;
  const std::string path = folder / "run.pond", to = folder / "public.pond";
  small_run(path);
  {
    Database db(path, Database::Mode::kWrite);
    db.run(
        "UPDATE frames SET file = '/home/zaphod/work/my project/' || file; UPDATE processes SET command = "
        "'/home/zaphod/bin/python x.py', name = 'zaphod';"
        "UPDATE sources SET file = '/home/zaphod/work/my project/train.py', text = "
        "'open(\"/home/trillian/towel.csv\")';"
        "INSERT INTO notes VALUES (1, 1, '{\"cwd\": \"/home/zaphod/work/my project\", \"host\": \"heart-of-gold\"}');"
        "INSERT INTO meta VALUES ('command', 'python /home/zaphod/work/my project/train.py'), ('remarks', "
        "'/home/zaphod/x is zaphod''s');"
        "UPDATE accounts SET name = 'callback//home/zaphod/' || name WHERE id = 1; UPDATE phases SET name = "
        "'/home/zaphod/x/y.py:3'; UPDATE marks SET name = '/home/zaphod/x/y.py:3';"
        // What was deleted still lies in the file.
        "INSERT INTO meta VALUES ('gone', '/home/zaphod/deleted'); DELETE FROM meta WHERE key = 'gone';"
        "CREATE TABLE later (a TEXT); INSERT INTO later VALUES ('zaphod'); ALTER TABLE phases ADD COLUMN zaphod TEXT");
  }
  const Reader before(path);
  share(before, to, kPerson);
  const std::string bytes = content(to);
  for (const char* word : {"zaphod", "heart-of-gold", "/home", "my project", "trillian"})
    CHECK(bytes.find(word) == bytes.npos);
  CHECK((fs::status(to).permissions() & fs::perms::mask) == (fs::perms::owner_read | fs::perms::owner_write));
  const Reader after(to);
  read_all(after);
  CHECK(after.meta().at("command") == "python train.py");
  CHECK(after.frames()[1].file == "train.py");
  CHECK(after.series().size() == before.series().size());
  CHECK(after.series()[3].bytes == before.series()[3].bytes);
  CHECK(after.site_states().size() == before.site_states().size());
  CHECK(after.process_series().size() == before.process_series().size());
  CHECK(after.gpu_series()[1].space == "gpu:1");
  CHECK(after.marks()[1].rss == before.marks()[1].rss);
  CHECK(after.sources()[0].text == "open(\"towel.csv\")");
  CHECK(holds(refusal([&] { share(before, to, kPerson); }, Code::kFile), "exists already"));
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 2);
}
