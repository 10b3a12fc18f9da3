// News of a run for the person who waits, shown only where it cannot touch what the program itself writes or asks:
//
//   a line that is written over   on standard error, where that is a terminal which is none of the standard streams of the program and its children
//   otherwise the window's title  through the controlling terminal, where there is one that has titles; the title of before comes back
//   otherwise nowhere
//
// No terminal is put between the program and the user's: nothing of the program's passes through us.
#pragma once
#include <string>

#include "base/process.h"

namespace millpond::cli {

class News {
 public:
  /// `line`: where a line may be written; -1: nowhere, nothing is ever shown.
  explicit News(int line);
  ~News();  // what was shown is taken away
  News(const News&) = delete;
  News& operator=(const News&) = delete;

  void tell(Pid program, const std::string& text);

 private:
  void write_line(const std::string& text);
  void write_title(const std::string& text);

  int line_, terminal_ = -1;
  bool line_shown_ = false, title_shown_ = false, looked_ = false;
};

/// True when a standard stream of the process is this terminal, or may be.
bool uses_terminal(Pid process, int terminal);

/// True for the name of a terminal (TERM) whose windows have titles.
bool has_titles(const std::string& term);

}  // namespace millpond::cli
