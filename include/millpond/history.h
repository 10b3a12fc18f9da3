// Logs and History: what training tells, batch by batch and epoch by epoch.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millpond/bytes.h"
#include "millpond/memory.h"

namespace millpond {

/// Names and values in order, borrowed from the one who trains: good during the call that hands it over. Costs no
/// memory.
class Logs {
 public:
  struct Entry {
    std::string_view name;
    double value = 0;
  };
  Logs() = default;
  explicit Logs(std::span<const Entry> entries) : entries_(entries) {}

  const Entry* begin() const { return entries_.data(); }
  const Entry* end() const { return entries_.data() + entries_.size(); }
  size_t size() const { return entries_.size(); }
  bool has(std::string_view name) const;
  /// Throws Error(kUsage) naming what there is.
  double operator[](std::string_view name) const;

 private:
  std::span<const Entry> entries_;
};

/// What evaluate gives: "loss" first, then the metrics.
struct Results : std::vector<std::pair<std::string, double>> {
  using std::vector<std::pair<std::string, double>>::operator[];
  bool has(std::string_view name) const;
  /// Throws Error(kUsage) naming what there is.
  double operator[](std::string_view name) const;
};

/// What training from a Dataset had to do with its data.
struct DataReport {
  double seconds_waited = 0;                              // by training steps, for their batch
  double share = 0;                                       // of the time of all training steps
  std::string slowest;                                    // the stage that took longest for what it gave
  int64_t budget = 0, peak = 0;                           // bytes of the pipeline: its bound, and the most it held
  std::vector<std::pair<std::string, int64_t>> accounts;  // pipeline/<stage>, and the most bytes it held
  std::string table;                                      // Dataset::explain at the end
};

/// One value for each epoch of "loss", each metric, "val_loss", ...
struct History {
  std::vector<int> epoch;  // numbered from 0, as in Keras
  std::vector<std::pair<std::string, std::vector<double>>> history;
  std::vector<double> seconds;        // of each epoch, validation included
  std::vector<double> train_seconds;  // of its training steps alone
  int64_t steps = 0;                  // training steps taken
  std::vector<std::string> notes;     // what the user should know, e.g. a batch larger than the data
  DataReport data;                    // of a fit from a Dataset
  std::vector<Bytes> resident;        // of the process at the end of each epoch, after its callbacks
  MemoryReport memory;                // at the end of training
  /// By Ctrl-C: the weights are those after the last step. A fit that begins after that throws Error(kInterrupted), so
  /// that a loop of trainings ends too, until clear_interrupt() is called.
  bool interrupted = false;

  bool has(std::string_view name) const;
  /// Throws Error(kUsage) naming what there is.
  const std::vector<double>& operator[](std::string_view name) const;
};

/// Forgets a Ctrl-C that ended a fit: the next one trains again.
void clear_interrupt();

}  // namespace millpond
