// What every text for a terminal needs: names of strangers made harmless, and tables.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/bytes.h"

namespace millpond::report {

/// How many columns a text takes: its characters (wide ones count as one).
size_t columns(std::string_view text);

/// A name out of a run file, fit for a terminal: control characters, what is no UTF-8, and characters that are
/// invisible or turn the direction of writing become '?'. With `most` it takes at most so many columns and what is left
/// out is left out in the middle: both ends of a path tell most.
std::string shown(std::string_view text, size_t most = 0);
/// The same, but lines stay lines.
std::string shown_lines(std::string_view text);

/// A file as people know it: the last folders of a long path.
std::string short_path(std::string_view path, size_t most);

/// A function as people know it: a C++ one without its parameters and without "(anonymous namespace)::".
std::string short_function(std::string_view name, size_t most);

/// "+8.2 MiB", "-1.1 KiB", "0 B".
std::string signed_bytes(double bytes);

/// How far a sampled sum may be from the truth (95 %), where a block is taken with probability 1 - exp(-size /
/// interval) and stands for its share: 0 for blocks so large that all are taken, and without sampling.
double sampling_error(Bytes bytes, double blocks, double interval);
/// "44.5 MiB ± 1.2 MiB"; without an error worth naming the amount alone.
std::string with_error(Bytes bytes, double error);

/// The first `most` lines; where more were there, the last one ends with "...", within `width`. 0: all.
std::string clipped(const std::string& lines, size_t most, int width = 100);

/// Words broken into lines of `width`, each after `indent` spaces; the first begins at column `first_indent`. Breaks in
/// the text stay, and so does the indent of its own that a line has: code keeps its shape.
std::string wrapped(const std::string& text, int width, int indent, int first_indent);

/// Rows under a head; the columns take what their widest cell needs, and the last one is cut to the width of the
/// terminal.
class Table {
 public:
  /// A name that begins with '<' is aligned to the left, all others to the right.
  explicit Table(std::vector<std::string> head);
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string text(int width, int indent = 2) const;

 private:
  std::vector<std::string> head_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace millpond::report
