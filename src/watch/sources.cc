#include "watch/sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "watch/processes.h"

namespace millpond::watch {
namespace {

constexpr size_t kMostFiles = 256, kMostAsked = 20'000;
constexpr int64_t kMostFile = 2 << 20, kMostRead = 32 << 20;
constexpr size_t kMostFunction = 16 << 10;
constexpr int64_t kForSampled =
    runfile::kMostSource * 3 / 4;  // the rest is kept for what the agent tells of, which comes later and matters more
constexpr int kAround = 8, kAroundLong = 60;
constexpr size_t kMostLine = 1000;

std::string read_file(const std::string& path, int64_t most) {
  // A pipe or a device could hold us up for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat facts{};
  std::string text;
  if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size <= most) {
    text.resize(size_t(facts.st_size));
    const ssize_t got = read(fd, text.data(), text.size());
    text.resize(got > 0 ? size_t(got) : 0);
  }
  if (fd >= 0) close(fd);
  return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

/// What a line of Python leaves open for the next.
struct Open {
  int brackets = 0;
  char quote = 0;       // of a text in three quotes
  bool joined = false;  // by a backslash
  bool any() const { return brackets > 0 || quote || joined; }
};

void follow(Open& open, std::string_view line) {
  open.joined = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const auto three = [&](char quote) {
      return i + 2 < line.size() && line[i] == quote && line[i + 1] == quote && line[i + 2] == quote;
    };
    if (open.quote) {
      if (c == '\\')
        ++i;
      else if (three(open.quote))
        open.quote = 0, i += 2;
    } else if (c == '#') {
      return;
    } else if (c == '"' || c == '\'') {
      if (three(c)) {
        open.quote = c, i += 2;
      } else {
        for (++i; i < line.size() && line[i] != c; ++i)
          if (line[i] == '\\') ++i;
      }
    } else if (c == '(' || c == '[' || c == '{') {
      ++open.brackets;
    } else if ((c == ')' || c == ']' || c == '}') && open.brackets > 0) {
      --open.brackets;
    } else if (c == '\\' && i + 1 == line.size()) {
      open.joined = true;
    }
  }
}

size_t indent_of(std::string_view line) {
  size_t columns = 0;
  for (const char c : line) {
    if (c == ' ')
      ++columns;
    else if (c == '\t')
      columns = (columns / 8 + 1) * 8;
    else
      break;
  }
  return columns;
}

/// In C and C++ a function begins and ends at the margin, or this is no file of that habit and the lines around must
/// do.
LineRange native_function(const std::vector<std::string_view>& lines, int line) {
  int first = line, last = line;
  const auto at_margin = [&](int n) {
    return !lines[size_t(n - 1)].empty() && !std::isspace(static_cast<unsigned char>(lines[size_t(n - 1)][0]));
  };
  const auto begins = [&](int n) {
    return at_margin(n) && std::string_view("{}#/").find(lines[size_t(n - 1)][0]) == std::string_view::npos;
  };
  while (first > 1 && line - first < kAroundLong && !begins(first)) --first;
  while (last < int(lines.size()) && last - line < kAroundLong &&
         !(at_margin(last) && lines[size_t(last - 1)][0] == '}'))
    ++last;
  return {first, last};
}

}  // namespace

PythonBlocks python_blocks(const std::vector<std::string_view>& lines) {
  struct Level {
    size_t indent;
    bool function;
    int first;
  };
  PythonBlocks blocks;
  std::vector<Level> levels;
  Open open;
  int last = 0, decorated = 0;  // the last line with content; where decorators began
  const auto leave = [&](size_t indent) {
    while (!levels.empty() && levels.back().indent >= indent) {
      const Level level = levels.back();
      levels.pop_back();
      if (level.function)
        blocks.functions.push_back({level.first, last});
      else if (levels.empty())
        blocks.statements.push_back({level.first, last});
    }
  };
  for (int n = 1; n <= int(lines.size()); ++n) {
    const std::string_view line = lines[size_t(n - 1)];
    const size_t text = line.find_first_not_of(" \t\f");
    if (open.any()) {
      follow(open, line);
      if (text != line.npos) last = n;
      continue;
    }
    if (text == line.npos || line[text] == '#') continue;
    const std::string_view words = line.substr(text);
    const size_t indent = indent_of(line);
    leave(indent);
    if (words[0] == '@') {
      if (!decorated) decorated = n;
    } else {
      const bool function = words.starts_with("def ") || words.starts_with("async def ");
      const bool body = function || words.starts_with("class ") || words.starts_with("for ") ||
                        words.starts_with("while ") || words.starts_with("with ") || words.starts_with("if ") ||
                        words.starts_with("try:") || words.starts_with("async ");
      if (function || (body && indent == 0)) levels.push_back({indent, function, decorated ? decorated : n});
      decorated = 0;
    }
    follow(open, line);
    last = n;
  }
  leave(0);
  std::ranges::sort(blocks.functions, [](const LineRange& a, const LineRange& b) {
    return std::pair(a.first, -a.last) < std::pair(b.first, -b.last);
  });
  return blocks;
}

Sources::File& Sources::open(const std::string& name, bool native) {
  const auto [at, fresh] = files_.try_emplace(name);
  File& file = at->second;
  if (!fresh || files_.size() > kMostFiles) return file;
  const int64_t most = std::min(kMostFile, kMostRead - read_bytes_);
  file.text = read_file(name.starts_with('/') ? name : folder_ + "/" + name, most);
  read_bytes_ += int64_t(file.text.size());
  file.lines = lines_of(file.text);
  if (!native) file.blocks = python_blocks(file.lines);
  return file;
}

void Sources::want(const std::string& name, const std::string& function, int line, bool native, Why why) {
  if (!on_ || line < 1 || asked_.size() >= kMostAsked || !asked_.emplace(name, line).second) return;
  File& file = open(name, native);
  if (line > int(file.lines.size())) return;
  if (std::ranges::any_of(file.stored, [&](const LineRange& r) { return r.has(line); })) return;
  const LineRange around{std::max(1, line - kAround), std::min(int(file.lines.size()), line + kAround)};
  LineRange range = around;
  if (native) {
    range = native_function(file.lines, line);
  } else {
    // The innermost: the last of those that begin before the line and hold it.
    bool found = false;
    for (const LineRange& f : file.blocks.functions)
      if (f.has(line)) range = f, found = true;
    if (!found)
      for (const LineRange& s : file.blocks.statements)
        if (s.has(line)) range = {std::max(1, s.first - 2), std::min(int(file.lines.size()), s.last + 2)};
  }
  const auto text_of = [&](const LineRange& r) {
    std::string text;
    for (int n = r.first; n <= r.last; ++n) text += clean(file.lines[size_t(n - 1)].substr(0, kMostLine)) + "\n";
    return text;
  };
  std::string text = text_of(range);
  if (text.size() > kMostFunction)
    range = {std::max(range.first, line - kAroundLong), std::min(range.last, line + kAroundLong)},
    text = text_of(range);
  if (text.size() > kMostFunction) range = around, text = text_of(range);
  file.stored.push_back(range);
  store({name, function, range.first, std::move(text)}, why);
}

void Sources::store(runfile::SourceRow row, Why why) {
  const int64_t size = int64_t(row.text.size());
  if (why == Why::kSampled && sampled_bytes_ + size > kForSampled) {
    ++left_out_;
    return;
  }
  row.file = clean(row.file), row.function = clean(row.function);
  if (!writer_.add(row)) {
    ++left_out_;
    return;
  }
  if (why == Why::kSampled) sampled_bytes_ += size;
}

void Sources::take(runfile::SourceRow row) {
  if (!on_ || row.first < 1 || asked_.size() >= kMostAsked ||
      !asked_.emplace(row.file, -int(std::min<int64_t>(row.first, 1 << 30))).second)
    return;
  row.text = clean(row.text);
  store(std::move(row), Why::kTold);
}

}  // namespace millpond::watch
