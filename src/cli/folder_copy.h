// folder_copy: a folder for a program to run in that is a copy of another, so that what it writes there touches nothing
// of the user's.
//
// Files are cloned where the file system can (no room, no time), otherwise copied; none is linked, because a program
// that writes into a linked file would write into the original. Run files, and the folders .git, .venv and the like,
// are needed by no program and may be large: a link to the original folder stands for those, which is said. What a
// program reaches by an absolute path, or by a link that leads out of the folder, is not protected.
#pragma once
#include <string>
#include <vector>

#include "millpond/bytes.h"

namespace millpond::cli {

struct FolderCopy {
  Bytes size;
  int64_t files = 0;
  std::vector<std::string>
      linked;  // folders that are links to the original: what is written into them is not protected
};

/// Throws Error(kUnsupported), before anything is copied, when the folder has more than `most`, and names its size;
/// Error(kFile) when a file cannot be read.
FolderCopy copy_folder(const std::string& from, const std::string& to, Bytes most);

/// What copy_folder would copy. Throws as it does.
FolderCopy measure_folder(const std::string& from, Bytes most);

/// Where a program that is named like this is to be found from the copy: a relative path stays as it is, an absolute
/// one that lies in `from` leads into `to`.
std::string in_copy(const std::string& word, const std::string& from, const std::string& to);

}  // namespace millpond::cli
