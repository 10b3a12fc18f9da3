// What is measured while a model trains: time and resident memory at the end of each epoch, allocations between. It
// asks for all of its own memory before training begins, and reads through buffers on the stack, so that it measures
// itself as nothing.
#pragma once
#include <optional>
#include <vector>

#include "cli/self.h"
#include "millpond/callbacks.h"

namespace millpond::cli {

class Measure : public Callback {
 public:
  explicit Measure(int epochs);

  void on_train_begin(const Logs&) override;
  void on_epoch_begin(int epoch, const Logs&) override;
  void on_epoch_end(int epoch, const Logs&) override;

  Bytes rss_start;                    // before the first step
  std::vector<Bytes> rss_per_epoch;   // at the end of each
  std::vector<double> epoch_seconds;  // from on_epoch_begin to on_epoch_end, as the peers measure theirs
  double first_epoch_s = 0;           // from the start of the process to the end of the first epoch

  struct Allocations {
    double calls_per_step = 0;     // that take memory
    double balanced_per_step = 0;  // of blocks taken and given back again
  };
  /// Between the end of the first epoch and the end of the last; absent when nothing was counted or there was only one.
  std::optional<Allocations> allocations() const;

 private:
  double began_ = 0;
  int64_t steps_ = 0;
  std::optional<Counted> after_first_, last_;
};

}  // namespace millpond::cli
