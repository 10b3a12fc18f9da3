#include "report/source.h"

#include <map>
#include <memory>

namespace millpond::report {
namespace {

constexpr size_t kMostLine = 400;

}  // namespace

SourceLine stored_source(const std::vector<runfile::SourceRow>& sources, Indent indent) {
  auto lines = std::make_shared<std::map<std::pair<std::string, int64_t>, std::string>>();
  for (const runfile::SourceRow& s : sources) {
    std::string_view text = s.text;
    for (int64_t n = s.first; !text.empty(); ++n) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end).substr(0, kMostLine);
      if (indent == Indent::kStripped) line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      lines->try_emplace({s.file, n}, line);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
  }
  return [lines](const std::string& file, int line) {
    const auto at = lines->find({file, line});
    return at == lines->end() ? std::string() : at->second;
  };
}

}  // namespace millpond::report
