// How to step from a frame to its caller, by the tables (.eh_frame) that every x86-64 module carries for exceptions.
// What the compiler emits in practice comes down to a rule of eight bytes; a rule is worked out once and kept.
// Memory: 256 KiB for the places that were met and 64 KiB for the different rules. A step with a known rule: about 20
// ns.
#pragma once
#include <stdint.h>

namespace millpond::probe::cfi {

// CFA: the stack pointer of the caller after the return. The return address lies below it.
enum class Cfa : uint8_t {
  kUnknown,    // an expression we do not read, a signal's frame: another unwinder must do it
  kEnd,        // the outermost frame, or code without tables
  kFromRsp,    // rsp + cfa_offset
  kFromRbp,    // rbp + cfa_offset
  kThroughRbp  // kept at rbp + cfa_offset: functions that align their stack
};
enum class Rbp : uint8_t {
  kSame,
  kFromCfa,  // the caller's is kept at CFA + rbp_offset
  kFromRbp   // at rbp + rbp_offset
};

struct Rule {
  Cfa cfa = Cfa::kUnknown;
  Rbp rbp = Rbp::kSame;
  int16_t rbp_offset = 0;
  int32_t cfa_offset = 0;
};

void start();  // looks for what the loader offers; not for hooks
// For a frame that is at `pc`, which is a return address. No locks.
Rule rule_at(uintptr_t pc);
void forget();  // code was unloaded: other code may lie at its place later

}  // namespace millpond::probe::cfi
