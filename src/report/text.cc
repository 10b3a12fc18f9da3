#include "report/text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/utf8.h"

namespace millpond::report {
namespace {

bool harmful(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) ||  // control characters, C1 too: a terminal may obey them
         (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         c == 0x061c || c == 0x00ad || (c >= 0xe0000 && c <= 0xe0fff);  // unseen, or turning the line around
}

std::string clean(std::string_view text, bool lines) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    if (c.good && (!harmful(c.value) || (lines && c.value == '\n')))
      out.append(text.substr(0, c.size));
    else
      out += '?';
    text.remove_prefix(c.size);
  }
  return out;
}

/// The first `n` characters of a clean text.
std::string_view first_columns(std::string_view text, size_t n) {
  size_t at = 0;
  for (; n > 0 && at < text.size(); --n) at += first_character(text.substr(at)).size;
  return text.substr(0, at);
}

std::string_view last_columns(std::string_view text, size_t n) {
  const size_t all = columns(text);
  return all <= n ? text : text.substr(first_columns(text, all - n).size());
}

}  // namespace

size_t columns(std::string_view text) {
  size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(first_character(text).size);
  return n;
}

std::string shown(std::string_view text, size_t most) {
  // A name of 64 KiB is cut before it is looked at closely.
  std::string out = most && text.size() > 16 * most + 64 ? clean(text.substr(0, 8 * most), false) + "..." +
                                                               clean(text.substr(text.size() - 8 * most), false)
                                                         : clean(text, false);
  if (most == 0 || columns(out) <= most) return out;
  if (most < 8) return std::string(first_columns(out, most));
  const size_t head = (most - 3) / 2, tail = most - 3 - head;
  return std::string(first_columns(out, head)) + "..." + std::string(last_columns(out, tail));
}

std::string shown_lines(std::string_view text) { return clean(text, true); }

std::string short_path(std::string_view path, size_t most) {
  const std::string whole = shown(path, std::max<size_t>(most * 4, 256));
  if (columns(whole) <= most) return whole;
  for (size_t at = 0; (at = whole.find('/', at)) != whole.npos; ++at) {
    const std::string tail = ".../" + whole.substr(at + 1);
    if (columns(tail) <= most) return tail;
  }
  return shown(whole, most);
}

std::string short_function(std::string_view name, size_t most) {
  std::string text(name.substr(0, 4096));
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (size_t at; (at = text.find(kUnnamed)) != text.npos;) text.erase(at, kUnnamed.size());
  // The last group in parentheses holds the parameters, unless it is the name of a call operator.
  size_t open = text.rfind(')');
  for (int depth = 0; open != text.npos; --open) {
    depth += text[open] == ')' ? 1 : text[open] == '(' ? -1 : 0;
    if (depth == 0 || open == 0) break;
  }
  if (open != text.npos && open > 0 && text[open] == '(' && !text.substr(0, open).ends_with("operator"))
    text.resize(open);
  return shown(text, most);
}

std::string signed_bytes(double bytes) {
  const Bytes b{int64_t(std::clamp(bytes, -9e18, 9e18))};
  return (b.value > 0 ? "+" : "") + to_string(b);
}

double sampling_error(Bytes bytes, double blocks, double interval) {
  if (interval <= 0 || blocks <= 0 || bytes.value <= 0) return 0;
  const double size = double(bytes.value) / blocks, taken = -std::expm1(-size / interval);
  if (size >= interval) return 0;
  // Each block counts size / taken with probability `taken`: a sum over all of them varies by size^2 (1 - taken) /
  // taken for each.
  constexpr double kDeviations = 1.96;
  return kDeviations * size * std::sqrt(blocks * (1 - taken) / taken);
}

std::string with_error(Bytes bytes, double error) {
  constexpr double kErrorWorthNaming = 0.005;
  if (error < kErrorWorthNaming * double(bytes.value)) return to_string(bytes);
  return to_string(bytes) + " ± " + to_string(to_bytes(error));
}

std::string clipped(const std::string& lines, size_t most, int width) {
  size_t at = 0;
  for (size_t n = 0; n < most; ++n) {
    at = lines.find('\n', at);
    if (at == lines.npos || at + 1 == lines.size()) return lines;
    ++at;
  }
  if (most == 0) return lines;
  // The mark takes the place of words that would leave it no room.
  std::string head = lines.substr(0, at - 1);
  const size_t line = head.rfind('\n') + 1;
  while (columns(std::string_view(head).substr(line)) + 4 > size_t(width)) {
    const size_t space = head.rfind(' ');
    if (space == head.npos || space < line || head.find_first_not_of(' ', line) > space) break;  // a single word
    head.resize(head.find_last_not_of(' ', space) + 1);
  }
  return head + " ...\n";
}

std::string wrapped(const std::string& text, int width, int indent, int first_indent) {
  std::string out;
  size_t at = 0;
  bool first = true;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    const size_t own = std::min(line.find_first_not_of(' '), line.size());  // code keeps its shape
    int column = first ? first_indent : indent;
    if (!first) out += std::string(size_t(indent), ' ');
    out += line.substr(0, own);
    column += int(own);
    bool started = false;
    for (size_t w = own; w < line.size();) {
      const size_t stop = std::min(line.find(' ', w), line.size());
      const std::string_view word = std::string_view(line).substr(w, stop - w);
      const int length = int(columns(word));
      if (started && column + 1 + length > width) {
        out += "\n" + std::string(size_t(indent) + own, ' ');
        column = indent + int(own);
      } else if (started) {
        out += ' ';
        ++column;
      }
      out += word;
      column += length;
      started = true;
      w = stop + 1;
    }
    out += '\n';
    first = false;
    at = end + 1;
  }
  return out;
}

Table::Table(std::vector<std::string> head) : head_(std::move(head)) {
  for (std::string& name : head_) {
    left_.push_back(name.starts_with('<'));
    if (left_.back()) name.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(head_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(int width, int indent) const {
  std::vector<size_t> wide(head_.size());
  for (size_t i = 0; i < head_.size(); ++i) {
    wide[i] = columns(head_[i]);
    for (const auto& row : rows_) wide[i] = std::max(wide[i], columns(row[i]));
  }
  size_t before = size_t(indent);
  for (size_t i = 0; i + 1 < wide.size(); ++i) before += wide[i] + 2;
  const size_t rest = size_t(width) > before + 12 ? size_t(width) - before : 12;
  std::string out;
  const auto put = [&](const std::vector<std::string>& cells) {
    std::string line(size_t(indent), ' ');
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool last = i + 1 == cells.size();
      const std::string cell = last && columns(cells[i]) > rest ? shown(cells[i], rest) : cells[i];
      const size_t size = columns(cell), pad = wide[i] > size ? wide[i] - size : 0;
      if (!left_[i] && !last) line.append(pad, ' ');
      line += cell;
      if (left_[i] && !last) line.append(pad, ' ');
      if (!last) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  put(head_);
  for (const auto& row : rows_) put(row);
  return out;
}

}  // namespace millpond::report
