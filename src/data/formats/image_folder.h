// A folder of images with a folder for each class:
//
//   flowers/daisy/1.jpg  flowers/daisy/more/2.png  flowers/tulip/3.jpg     classes: daisy 0, tulip 1
//
// Classes are the sorted names of the folders, as in keras.utils.image_dataset_from_directory; inside a class files
// come folder by folder, sorted. Files whose names do not end in .jpg, .jpeg or .png (any case) are counted and left
// alone. Memory: the names, one after the other, and 16 bytes for each file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/bytes.h"
#include "millpond/error.h"

namespace millpond::data {

struct ImageFolderOptions {
  bool labels = true;                         // false: all files below the folder, label 0, no classes
  std::vector<std::string> class_names = {};  // these folders in this order, instead of all of them sorted
  Bytes max_names = Bytes{int64_t{1} << 30};  // of all names together
};

class ImageFolder {
 public:
  /// Throws Error(kFile): the folder is not there, holds no class or no image.
  explicit ImageFolder(const std::string& folder, const ImageFolderOptions& options = {});

  int64_t size() const { return int64_t(entries_.size()); }
  const std::vector<std::string>& class_names() const { return class_names_; }
  int32_t label(int64_t i) const { return entries_[size_t(i)].label; }
  /// The path into `to`, whose memory is used again.
  void path(int64_t i, std::string& to) const;
  std::string path(int64_t i) const;
  /// Files that are no images by their names.
  int64_t ignored() const { return ignored_; }
  Bytes memory() const;

 private:
  struct Entry {
    uint64_t at = 0;  // of the name in names_, which ends with a zero byte
    int32_t label = 0;
  };
  void add(const std::string& below, int32_t label, int64_t max_names);
  std::string folder_, names_;
  std::vector<Entry> entries_;
  std::vector<std::string> class_names_;
  int64_t ignored_ = 0;
};

}  // namespace millpond::data
