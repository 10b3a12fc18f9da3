// RunRecord: a callback that records a training run in a file: the programs with their plans when it begins, and at the
// end of every epoch its phase, what each account holds and what the operating system says. The file is an SQLite
// database; docs/runfile.md tells how to read it.
//
//   model.fit(x, y, {.epochs = 10, .callbacks = {RunRecord("run.pond")}});
//
// Several trainings in turn may share one record. Nothing is written between epochs, so a step costs nothing; the end
// of an epoch takes some milliseconds. Memory: about 200 KiB, account runfile.
#pragma once
#include <memory>
#include <string>

#include "millpond/callbacks.h"

namespace millpond {

struct RunRecordOptions {
  bool force = false;  // replace a file that is there
};

class RunRecord : public Callback {
 public:
  /// The run begins now. Throws Error(kFile) when the file exists or cannot be made.
  explicit RunRecord(const std::string& path, const RunRecordOptions& options = {});
  RunRecord(RunRecord&&) noexcept;
  ~RunRecord() override;  // a training that has begun and not ended has failed, and the file says so

  void on_train_begin(const Logs&) override;
  void on_epoch_begin(int epoch, const Logs&) override;
  void on_epoch_end(int epoch, const Logs&) override;
  void on_train_end(const Logs&) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millpond
