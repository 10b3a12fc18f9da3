#include "watch/limits.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "base/format.h"

namespace millpond::watch {
namespace {

/// The first number behind a text; nothing where the text is not there or a word follows it ("unlimited").
std::optional<int64_t> number_behind(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return {};
  size_t begin = at + key.size();
  while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc{} && value >= 0 ? std::optional(value) : std::nullopt;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::optional<OwnLimit> parse_own_limit(std::string_view limits, std::string_view status) {
  const std::optional<int64_t> resident = number_behind(status, "VmRSS:");
  std::optional<OwnLimit> nearest;
  struct Kind {
    const char *name, *limit, *used;
  };
  for (const Kind& kind :
       {Kind{"RLIMIT_AS", "Max address space", "VmSize:"}, Kind{"RLIMIT_DATA", "Max data size", "VmData:"}}) {
    const std::optional<int64_t> limit = number_behind(limits, kind.limit), used = number_behind(status, kind.used);
    if (!limit || !used || !resident) continue;
    const Bytes reached{*resident * 1024 + std::max<int64_t>(0, *limit - *used * 1024)};
    if (!nearest || reached < nearest->resident) nearest = OwnLimit{kind.name, reached};
  }
  return nearest;
}

std::optional<OwnLimit> own_limit(Pid pid) {
  return parse_own_limit(content(format("/proc/{}/limits", pid.value)), content(format("/proc/{}/status", pid.value)));
}

}  // namespace millpond::watch
