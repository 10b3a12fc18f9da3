// Progress: what fit and evaluate print. Verbose 1: one line that moves (on a terminal; otherwise as 2); verbose 2: a
// line for each epoch. Prints into a buffer of its own: no allocation, no lock, and the clock is asked about a thousand
// times a second at most, however short a step is.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "millpond/bytes.h"
#include "millpond/history.h"

namespace millpond::train {

class Progress {
 public:
  Progress(int verbose, std::FILE* to = stdout);

  bool moving() const { return moving_; }
  bool silent() const { return verbose_ == 0; }
  /// `epochs` 0: no epochs (evaluate).
  void begin(int epoch, int epochs, int64_t steps);
  /// Is it time to draw? Almost always no, at the cost of a comparison.
  bool due(int64_t step) { return moving_ && step >= next_ && look(step); }
  void draw(int64_t step, const Logs& logs);
  /// The finished line.
  void end(int64_t step, const Logs& logs);
  void note(const char* text);

  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  bool look(int64_t step);
  void print(int64_t step, const Logs& logs, bool last);
  size_t columns() const;  // of the terminal

  int verbose_;
  std::FILE* to_;
  bool moving_;
  int epoch_ = 0, epochs_ = 0;
  int64_t steps_ = 0, next_ = 0, stride_ = 1, seen_ = 0;
  size_t shown_ = 0;  // columns of the line that stands there
  Clock::time_point start_, looked_, drawn_;
};

}  // namespace millpond::train
