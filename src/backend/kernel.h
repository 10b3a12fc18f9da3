// Kernel: one operator made ready for given types by a backend. Made once, when a graph is lowered. It only describes:
// what scratch a call wants, and whether the plan should call it slow. How it runs is known to the backend that made
// it, whose executor runs it (backend/executor.h).
#pragma once
#include <vector>

#include "graph/operator.h"

namespace millpond::backend {

using graph::TensorType;

struct Request {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  int threads = 1;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch wanted for the duration of a call.
  virtual Bytes workspace() const { return Bytes{0}; }
  /// Memory that it keeps beside that from when it can be run on: machine code.
  virtual Bytes held() const { return Bytes{0}; }
  /// A plain loop where a fast kernel is missing; plans say so.
  virtual bool slow() const { return false; }
};

}  // namespace millpond::backend
