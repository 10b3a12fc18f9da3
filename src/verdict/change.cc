#include "verdict/change.h"

#include <array>
#include <cstdint>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::verdict {
namespace {

constexpr int kAround = 3;  // lines of a diff before and after an edit

uint32_t crc32(std::string_view bytes) {  // of zlib and Python's binascii
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  uint32_t c = 0xFFFFFFFFu;
  for (const char byte : bytes) c = table[(c ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (c >> 8);
  return ~c;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0;;) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) return lines;
    at = end + 1;
  }
}

/// One edit found again in the lines of the text.
struct Hunk {
  size_t first = 0, count = 0;
  std::vector<std::string_view> after;
};

std::vector<Hunk> hunks(const Change& change, std::string_view text, const std::vector<std::string_view>& lines) {
  if (change.edits.empty())
    throw Error(Code::kUnsupported, "fix: this fix is not an edit of a file").hint("read what the report says of it");
  const auto changed = [](const std::string& how) {
    return Error(Code::kFile, format("fix: the file is not what it was when the program ran: {}", how))
        .hint("watch the program again, and take the fix of that run");
  };
  if (digest(text) != change.digest) throw changed(format("its digest is {}, not {}", digest(text), change.digest));
  std::vector<Hunk> found;
  for (const Edit& edit : change.edits) {
    const std::vector<std::string_view> before = lines_of(edit.before);
    const size_t first = edit.line > 0 ? size_t(edit.line - 1) : lines.size();
    if (first + before.size() > lines.size() || (!found.empty() && first < found.back().first + found.back().count))
      throw changed(format("it has no line {} to change", edit.line));
    for (size_t i = 0; i < before.size(); ++i)
      if (lines[first + i] != before[i]) throw changed(format("line {} reads otherwise", first + i + 1));
    found.push_back({first, before.size(), lines_of(edit.after)});
  }
  return found;
}

}  // namespace

std::string digest(std::string_view text) { return format("{}:{:08x}", text.size(), crc32(text)); }

std::string carried_out(const Change& change, std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<std::string_view> out;
  size_t at = 0;
  for (const Hunk& hunk : hunks(change, text, lines)) {
    out.insert(out.end(), lines.begin() + long(at), lines.begin() + long(hunk.first));
    out.insert(out.end(), hunk.after.begin(), hunk.after.end());
    at = hunk.first + hunk.count;
  }
  out.insert(out.end(), lines.begin() + long(at), lines.end());
  return format("{}", fmt::join(out, "\n"));
}

std::string unified_diff(const Change& change, std::string_view text, const std::string& name) {
  std::vector<std::string_view> lines = lines_of(text);
  const std::vector<Hunk> all = hunks(change, text, lines);
  if (lines.back().empty()) lines.pop_back();  // what follows the last newline is no line
  std::string out = format("--- {0}\n+++ {0}\n", name);
  long shift = 0;  // by how many lines the edits before moved what follows
  for (size_t i = 0; i < all.size();) {
    // Edits whose surroundings touch stand in one block.
    size_t last = i;
    while (last + 1 < all.size() && all[last + 1].first <= all[last].first + all[last].count + 2 * kAround) ++last;
    const size_t from = all[i].first > kAround ? all[i].first - kAround : 0;
    const size_t to = std::min(lines.size(), all[last].first + all[last].count + kAround);
    std::string body;
    long added = 0;
    size_t at = from;
    for (size_t k = i; k <= last; ++k) {
      for (; at < all[k].first; ++at) body += format(" {}\n", lines[at]);
      const Hunk& hunk = all[k];
      // Lines that stay stand as such, so that what was added is seen.
      size_t same = 0;
      while (same < hunk.count && same < hunk.after.size() && lines[at + same] == hunk.after[same])
        body += format(" {}\n", hunk.after[same++]);
      size_t tail = 0;
      while (tail < hunk.count - same && tail < hunk.after.size() - same &&
             lines[at + hunk.count - 1 - tail] == hunk.after[hunk.after.size() - 1 - tail])
        ++tail;
      for (size_t n = same; n < hunk.count - tail; ++n) body += format("-{}\n", lines[at + n]);
      for (size_t n = same; n < hunk.after.size() - tail; ++n) body += format("+{}\n", hunk.after[n]);
      for (size_t n = hunk.count - tail; n < hunk.count; ++n) body += format(" {}\n", lines[at + n]);
      at += hunk.count;
      added += long(hunk.after.size()) - long(hunk.count);
    }
    for (; at < to; ++at) body += format(" {}\n", lines[at]);
    out +=
        format("@@ -{},{} +{},{} @@\n{}", from + 1, to - from, long(from) + 1 + shift, long(to - from) + added, body);
    shift += added;
    i = last + 1;
  }
  return out;
}

}  // namespace millpond::verdict
