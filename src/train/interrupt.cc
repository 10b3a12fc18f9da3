#include "train/interrupt.h"

namespace millpond::train {

volatile std::sig_atomic_t Interrupt::asked_ = 0;
int Interrupt::nested_ = 0;

Interrupt::Interrupt() {
  if (nested_++ > 0) return;  // fit inside a callback of fit: the outer one ends too
  asked_ = 0;
  struct sigaction ours {};
  ours.sa_handler = [](int) { asked_ = 1; };
  ours.sa_flags = int(SA_RESETHAND);
  sigemptyset(&ours.sa_mask);
  sigaction(SIGINT, &ours, &before_);
}

Interrupt::~Interrupt() {
  if (--nested_ == 0) sigaction(SIGINT, &before_, nullptr);
}

}  // namespace millpond::train
