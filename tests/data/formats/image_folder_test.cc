#include "data/formats/image_folder.h"

#include <filesystem>

#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;
namespace fs = std::filesystem;

namespace {
void touch(const Scratch& dir, const std::string& name) {
  fs::create_directories(fs::path(dir.path(name)).parent_path());
  dir.put(name, "x");
}
std::vector<std::string> listed(const ImageFolder& f, const std::string& folder) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < f.size(); ++i) {
    CHECK(f.path(i).starts_with(folder + "/"));
    out.push_back(f.path(i).substr(folder.size() + 1) + " " + std::to_string(f.label(i)));
  }
  return out;
}
}  // namespace

TEST_CASE("image folder: classes are the sorted folders, files sorted inside; the rest is counted") {
  Scratch dir;
  for (const char* name : {"tulip/b.JPG", "tulip/a.png", "daisy/2.jpeg", "daisy/10.jpeg", "daisy/more/x.png",
                           "daisy/a-b/y.jpg", "daisy/notes.txt", ".git/z.jpg", "top.jpg", "empty/readme"})
    touch(dir, name);
  const std::string root = dir.path("");
  const ImageFolder f(root);
  CHECK(f.class_names() == std::vector<std::string>{"daisy", "empty", "tulip"});
  CHECK(listed(f, root.substr(0, root.size() - 1)) ==
        std::vector<std::string>{"daisy/10.jpeg 0", "daisy/2.jpeg 0", "daisy/a-b/y.jpg 0", "daisy/more/x.png 0",
                                 "tulip/a.png 2", "tulip/b.JPG 2"});
  CHECK(f.ignored() == 2);
  CHECK(f.memory() < Bytes{1000});
  const ImageFolder some(root, {.class_names = {"tulip", "daisy"}});
  CHECK(some.label(0) == 0);
  CHECK(some.path(0).ends_with("tulip/a.png"));
  const ImageFolder flat(root, {.labels = false});
  CHECK(flat.size() == 8);
  CHECK(flat.class_names().empty());
}

TEST_CASE("image folder: a link up the tree does not go round for ever, one to elsewhere is followed") {
  Scratch dir, other;
  touch(dir, "a/1.jpg");
  touch(other, "in/2.jpg");
  fs::create_directory_symlink(dir.path("a"), dir.path("a/again"));
  fs::create_directory_symlink(other.path("in"), dir.path("a/there"));
  fs::create_symlink("nowhere", dir.path("a/3.jpg"));
  const ImageFolder f(dir.path("."));
  CHECK(f.size() == 2);
}

TEST_CASE("image folder: what cannot be listed is said clearly") {
  Scratch dir;
  CHECK(thrown([&] { ImageFolder f(dir.path("absent")); }).text() == dir.path("absent") + " is not there");
  touch(dir, "file");
  CHECK(thrown([&] { ImageFolder f(dir.path("file")); }).text() == dir.path("file") + " is not a folder");
  CHECK(thrown([&] { ImageFolder f(dir.path(".")); }).text().ends_with("holds no folder, so there are no classes"));
  touch(dir, "a/x.gif");
  CHECK(thrown([&] { ImageFolder f(dir.path(".")); })
            .text()
            .ends_with("holds no image: 1 files, none of them .jpg, .jpeg or .png"));
  touch(dir, "a/x.jpg");
  CHECK(thrown([&] { ImageFolder f(dir.path("."), {.class_names = {"b"}}); }).code() == Code::kFile);
  CHECK(thrown([&] { ImageFolder f(dir.path("."), {.class_names = {"../a"}}); }).code() == Code::kUsage);
  CHECK(thrown([&] { ImageFolder f(dir.path("."), {.max_names = Bytes{3}}); }).code() == Code::kMemory);
}
