#include "data/formats/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/format.h"
#include "data/formats/source.h"

namespace millpond::data {

namespace fs = std::filesystem;

namespace {
bool is_image(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  std::string end(name.substr(dot + 1));
  for (char& c : end) c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  return end == "jpg" || end == "jpeg" || end == "png";
}

Error cannot(const std::string& folder, const std::error_code& why) {
  return Error(Code::kFile, format("{} cannot be read: {}", folder, why.message())).with("file", folder);
}

struct Listing {
  std::vector<std::string> files, folders;  // links are followed
};
Listing list(const std::string& folder) {
  Listing l;
  std::error_code why;
  fs::directory_iterator it(folder, why);
  if (why) throw cannot(folder, why);
  for (; it != fs::directory_iterator(); it.increment(why)) {
    std::error_code unseen;  // a link that points nowhere is neither
    std::string name = it->path().filename().string();
    if (it->is_directory(unseen))
      l.folders.push_back(std::move(name));
    else if (it->is_regular_file(unseen))
      l.files.push_back(std::move(name));
  }
  if (why) throw cannot(folder, why);
  std::sort(l.folders.begin(), l.folders.end());
  return l;
}
}  // namespace

ImageFolder::ImageFolder(const std::string& folder, const ImageFolderOptions& options) : folder_(folder) {
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  std::error_code why;
  if (!fs::is_directory(folder_, why))
    throw Error(Code::kFile, why || !fs::exists(folder_) ? format("{} is not there", folder_)
                                                         : format("{} is not a folder", folder_))
        .hint("give a folder that holds a folder of images for each class")
        .with("file", folder_);
  if (!options.labels) {
    add("", 0, options.max_names.value);
  } else {
    class_names_ = options.class_names;
    if (class_names_.empty()) {
      for (std::string& name : list(folder_).folders)
        if (name[0] != '.') class_names_.push_back(std::move(name));
    }
    if (class_names_.empty())
      throw Error(Code::kFile, format("{} holds no folder, so there are no classes", folder_))
          .hint("put the images of each class into a folder of its own, or ask for images without labels")
          .with("file", folder_);
    for (size_t i = 0; i < class_names_.size(); ++i) {
      const std::string& name = class_names_[i];
      if (name.empty() || name.find('/') != std::string::npos || name == "..")
        throw Error(Code::kUsage, format("\"{}\" cannot be the name of a class", shown(name)));
      if (!fs::is_directory(folder_ + "/" + name, why))
        throw Error(Code::kFile, format("{} has no folder for the class \"{}\"", folder_, shown(name)))
            .with("file", folder_);
      add(name, int32_t(i), options.max_names.value);
    }
  }
  if (entries_.empty())
    throw Error(Code::kFile, format("{} holds no image: {} files, none of them .jpg, .jpeg or .png", folder_, ignored_))
        .with("file", folder_);
  names_.shrink_to_fit();
  entries_.shrink_to_fit();
}

void ImageFolder::add(const std::string& below, int32_t label, int64_t max_names) {
  // Folders sorted by their paths, files of each sorted: the order of keras.utils.
  std::map<std::string, std::vector<std::string>> found;
  std::set<std::string> seen;  // a link up the tree would go round for ever
  std::vector<std::string> left{below};
  while (!left.empty()) {
    const std::string here = std::move(left.back());
    left.pop_back();
    const std::string full = here.empty() ? folder_ : folder_ + "/" + here;
    std::error_code why;
    const std::string real = fs::canonical(full, why).string();
    if (why) throw cannot(full, why);
    if (!seen.insert(real).second) continue;
    Listing l = list(full);
    const auto images =
        std::partition(l.files.begin(), l.files.end(), [](const std::string& f) { return is_image(f); });
    ignored_ += l.files.end() - images;
    l.files.erase(images, l.files.end());
    std::sort(l.files.begin(), l.files.end());
    for (const std::string& name : l.folders) left.push_back(here.empty() ? name : here + "/" + name);
    if (!l.files.empty()) found.emplace(here, std::move(l.files));
  }
  for (const auto& [here, files] : found)
    for (const std::string& name : files) {
      if (int64_t(names_.size() + here.size() + name.size() + 2) > max_names)
        throw Error(Code::kMemory, format("the names of the images in {} take more than {}", folder_, Bytes{max_names}))
            .hint("raise max_names");
      entries_.push_back({names_.size(), label});
      if (!here.empty()) (names_ += here) += '/';
      names_ += name;
      names_ += '\0';
    }
}

void ImageFolder::path(int64_t i, std::string& to) const {
  to.assign(folder_);
  to += '/';
  to += names_.c_str() + entries_[size_t(i)].at;
}
std::string ImageFolder::path(int64_t i) const {
  std::string p;
  path(i, p);
  return p;
}
Bytes ImageFolder::memory() const { return Bytes{int64_t(names_.capacity() + entries_.capacity() * sizeof(Entry))}; }

}  // namespace millpond::data
