// Loop: control flow of a script, on the host: who gives each step of a body its operands.
#pragma once
#include <vector>

#include "backend/host/executor.h"

namespace millpond::backend::host {

struct Loop {
  /// `arguments` of the call, which are read anew at every run: they may be handed over, too.
  Loop(Flow flow, const Arguments& arguments, int threads);

  /// All of it on the calling thread.
  void alone();
  /// A member's part of a scan; only where the body has shared stages.
  void member(int m, int64_t round) noexcept;
  bool shared() const { return flow.kind == Flow::Kind::kScan && bodies[0]->shared; }
  void reset();

  Flow flow;  // without its scripts, which the bodies have
  Arguments arguments;
  std::vector<std::unique_ptr<Sequence>> bodies;

 private:
  void begin();
  void begin_step(int64_t t);
  void end_step(int64_t t);
  void scan();
  void while_loop();
  void cond();
  int64_t element(int64_t t) const { return flow.reverse ? flow.length - 1 - t : t; }
  std::byte* in(size_t i) const { return static_cast<std::byte*>(arguments.in[i]); }
  std::byte* out(size_t i) const { return static_cast<std::byte*>(arguments.out[i]); }

  std::vector<std::byte*> operands_;                 // of the step that comes next: inputs, then outputs
  alignas(64) std::atomic<int64_t> steps_begun_{0};  // ever: a member waits here until member 0 has set the operands
};

}  // namespace millpond::backend::host
