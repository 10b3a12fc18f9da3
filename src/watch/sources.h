// Sources: the text of the user's functions, read while the program is watched and stored in the run file, so that no
// reader ever opens a file that a run file names.
//
// A function is stored whole when a line of it was sampled or told of by the agent; of code outside of any function,
// and of functions beyond 16 KiB, the lines around. At most kMostSource bytes of a run, of which a part is kept for the
// lines that the agent tells of; what does not fit is counted. Costs: each file is read once (up to 2 MiB of it), and
// the places of its functions are remembered.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "runfile/writer.h"

namespace millpond::watch {

/// Lines from 1, both included.
struct LineRange {
  int first = 1, last = 0;
  bool has(int line) const { return first <= line && line <= last; }
};

/// The functions of a Python source with their decorators, outer ones first, and the statements outside of them that
/// have a body of their own (a loop, a class). Not a parser: brackets, strings and indents are followed, so a text that
/// Python itself would refuse gives something, too.
struct PythonBlocks {
  std::vector<LineRange> functions, statements;
};
PythonBlocks python_blocks(const std::vector<std::string_view>& lines);

class Sources {
 public:
  /// `on`: false stores none. `folder`: where the program was started, for relative names.
  Sources(runfile::Writer& writer, bool on, std::string folder)
      : writer_(writer), on_(on), folder_(std::move(folder)) {}

  enum class Why { kSampled, kTold };
  /// The function around this line of a file of the user's.
  void want(const std::string& file, const std::string& function, int line, bool native, Why why);
  /// A text that the agent sends, because it lies in no file: a cell of a notebook.
  void take(runfile::SourceRow source);

  int64_t left_out() const { return left_out_; }  // functions that did not fit

 private:
  struct File {
    std::string text;
    std::vector<std::string_view> lines;  // of text
    PythonBlocks blocks;
    std::vector<LineRange> stored;
  };
  File& open(const std::string& name, bool native);
  void store(runfile::SourceRow row, Why why);

  runfile::Writer& writer_;
  bool on_;
  std::string folder_;
  std::map<std::string, File> files_;
  std::set<std::pair<std::string, int>> asked_;
  int64_t sampled_bytes_ = 0, read_bytes_ = 0, left_out_ = 0;
};

}  // namespace millpond::watch
