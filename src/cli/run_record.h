// RunRecord: writes a training run into a run file: at the end of the first epoch the programs with their plans, and at the end of
// every epoch its phase, the accounts and what the operating system says. Nothing is written between, so a step costs nothing.
// Memory: that of the run file's writer, account runfile.
#pragma once
#include <string>

#include "cli/models.h"
#include "millpond/callbacks.h"
#include "millpond/memory_plan.h"
#include "runfile/writer.h"

namespace millpond::cli {

class RunRecord : public Callback {
 public:
  /// Throws Error(kFile) when the file exists or cannot be made. Borrows model and data for as long as it lives.
  RunRecord(const std::string& path, const OpenedModel& opened, const ModelData& data, const MemoryPlan& plan);

  void on_train_begin(const Logs&) override;
  void on_epoch_begin(int epoch, const Logs&) override;
  void on_epoch_end(int epoch, const Logs&) override;
  void on_train_end(const Logs&) override;
  /// "ended", "interrupted" or "failed".
  void finish(const std::string& status);

 private:
  void add_now(runfile::RowId phase);
  const OpenedModel& opened_;
  const ModelData& data_;
  runfile::Writer writer_;
  runfile::RowId run_, fit_;
  double epoch_began_ = 0;
  bool programs_written_ = false;
};

}  // namespace millpond::cli
