#include "base/temporary_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <vector>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond {

TemporaryFolder::TemporaryFolder(const char* who, In in) {
  const char* asked = getenv("TMPDIR");
  std::vector<std::string> places = {asked && *asked ? asked : "/tmp"};
  if (in == In::kMemory) places.insert(places.begin(), "/dev/shm");
  for (const std::string& place : places) {
    path_ = place + "/millpond-XXXXXX";
    if (mkdtemp(path_.data())) return;
  }
  throw Error(Code::kFile, format("{}: the folder for temporary files ({}) cannot be written", who, places.back()))
      .hint("set TMPDIR to a folder that can");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace millpond
