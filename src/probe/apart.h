// Work in a child of which the program sees nothing. It is made by clone alone, so no handler of fork runs; it ends
// without a signal, and only we can wait for it; it has none of the program's descriptors, no signal but a fatal one
// reaches it, and it works when the processors have nothing else to do. What it finds it writes into memory that is
// shared with it.
#pragma once
#include <stdint.h>

namespace millpond::probe::apart {

class Child {
 public:
  // False: none could be made. `work` says whether it was done.
  bool start(bool (*work)(void*), void* argument);
  // 0: it is at work; 1: it is done, or there is none; -1: it died.
  int state();
  void end();                  // whatever it does
  void forget() { pid_ = 0; }  // in a child by fork: it is the parent's

 private:
  long pid_ = 0;
  uint64_t began_ns_ = 0;
};

// Whether the page tables of a child would take no more than 1 % of the memory that is free.
bool has_room();

}  // namespace millpond::probe::apart
