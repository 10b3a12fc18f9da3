// Interrupt: while one lives, Ctrl-C sets a flag instead of ending the process; a second Ctrl-C ends it as ever.
#pragma once
#include <csignal>

namespace millpond::train {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  bool asked() const { return asked_ != 0; }

 private:
  static volatile std::sig_atomic_t asked_;
  static int nested_;
  struct sigaction before_ {};
};

}  // namespace millpond::train
