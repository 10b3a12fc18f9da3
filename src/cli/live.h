// --live: the page of a run that goes on, for `watch` and `train`. A process of its own serves it: the training's
// memory stays what was planned, and whatever a browser does cannot hold up the run.
#pragma once
#include <sys/types.h>

#include <string>

namespace millpond::cli {

class Live {
 public:
  /// Starts this program again to serve the run file, and it says on standard error where to look. Throws Error(kFile).
  explicit Live(const std::string& file);
  ~Live() { finish(); }
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  /// The file is whole: pages get the end of it. The server goes, or stays for a page that is open until that is
  /// closed, for an hour at most; nobody waits for it.
  void finish();

 private:
  pid_t child_ = -1;
  int line_ = -1;  // its end says that the run is over; so does our death
};

}  // namespace millpond::cli
