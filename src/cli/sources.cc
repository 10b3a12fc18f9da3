#include "cli/sources.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "verdict/notes.h"

namespace millpond::cli {
namespace {

constexpr std::uintmax_t kMostBytes = 8 << 20;
constexpr size_t kMostLine = 400;
constexpr size_t kMostFiles = 200;

std::vector<std::string> lines_of(const std::string& path) {
  std::error_code error;
  // A device or a pipe could hold us up for ever.
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > kMostBytes || error) return {};
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line.substr(0, kMostLine));
  return lines;
}

}  // namespace

report::SourceLine source_reader(const verdict::Evidence& evidence, Indent indent) {
  const std::string folder = verdict::read_notes(evidence).folder;
  auto files = std::make_shared<std::map<std::string, std::vector<std::string>>>();
  return [files, folder, indent](const std::string& file, int line) -> std::string {
    auto at = files->find(file);
    if (at == files->end()) {
      if (files->size() >= kMostFiles) return "";
      std::vector<std::string> lines;
      if (!file.starts_with('/') && !folder.empty()) lines = lines_of(folder + "/" + file);
      if (lines.empty()) lines = lines_of(file);
      at = files->emplace(file, std::move(lines)).first;
    }
    if (line < 1 || size_t(line) > at->second.size()) return "";
    const std::string& text = at->second[size_t(line - 1)];
    return indent == Indent::kKept ? text : text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  };
}

}  // namespace millpond::cli
