// TensorImpl: what an EagerTensor points to: a type and bytes, which are its own (a block of the pool), those of another
// tensor (a view), or those of a variable as long as it holds the same values (eager/live.h).
#pragma once
#include <memory>
#include <vector>

#include "eager/pool.h"
#include "graph/graph.h"
#include "millpond/eager.h"

namespace millpond {

namespace nn {
struct WeightState;
}

namespace eager {

using graph::TensorType;

struct TensorImpl {
  TensorImpl(const TensorType& t, uint64_t number) : type(t), id(number) {}
  TensorImpl(const TensorImpl&) = delete;
  ~TensorImpl();

  TensorType type;
  uint64_t id;              // tells values apart on tapes: never used twice, but all reads of one variable have one
  std::byte* at = nullptr;  // of a view: ask address_of
  Pool::Block block;        // its own
  std::shared_ptr<const TensorImpl> whole;   // or: whose bytes it looks at
  backend::Memory memory;                    // or: the variable's
  std::weak_ptr<nn::WeightState> variable;   // whose value it is or was
  bool trainable = false;                    // that variable is, so that tapes watch it by themselves
  std::shared_ptr<TensorImpl> mask, logits;  // which steps count; what went into the softmax or sigmoid that made it
  bool softmax = false;                      // it was a softmax
};
using Ref = std::shared_ptr<TensorImpl>;

/// Bytes of the pool, undefined.
Ref make(const TensorType& type);
/// The same bytes under another shape, a value of its own.
Ref view(const Ref& of, const Shape& shape);
/// From values on the host.
Ref from_host(const void* values, const TensorType& type);
Ref filled(const TensorType& type, double value);
void read(const TensorImpl& t, void* to);
std::byte* address_of(const TensorImpl& t);
uint64_t next_id();

/// Throws Error(kUsage) for an empty tensor; `what` is the function.
const Ref& need(const EagerTensor& t, const char* what);
std::vector<Ref> need(const EagerTensors& ts, const char* what);
inline EagerTensor outside(Ref r) { return EagerTensor(std::move(r)); }
EagerTensors outside(std::vector<Ref> refs);

}  // namespace eager
}  // namespace millpond
