// GradientTape: records what is computed with eager tensors, and tells gradients.
//
//   GradientTape tape;
//   EagerTensor loss = loss_fn(y, model(x, true));
//   EagerTensors gradients = tape.gradient(loss, model.trainable_variables());
//   optimizer.apply(gradients, model.trainable_variables());
//
// A tape records from its making until its gradient is asked for, or it goes. A persistent one goes on, and may be asked
// again; while it answers, it records nothing itself, but tapes around it do: gradients of gradients need one tape for
// each order.
//
//   GradientTape outer, inner;
//   outer.watch(x), inner.watch(x);
//   EagerTensor slope = inner.gradient(x * x * x, x);   // 3 x^2
//   EagerTensor curve = outer.gradient(slope, x);       // 6 x
//
// Memory: of each operator those operands and results that its gradient reads, until the tape has answered or goes; of a
// layer that is called, what its backward reads and cannot cheaply make again. A tape belongs to the thread that made it.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "millpond/eager.h"
#include "millpond/variable.h"

namespace millpond {

namespace eager {
class Tape;
}

struct GradientTapeOptions {
  bool persistent = false;
  bool watch_accessed_variables = true;  // trainable ones that are used
};

/// What gradients are wanted of: tensors that are watched, and variables. {x, w}; a Variables; an EagerTensors.
struct Sources : EagerTensors {
  Sources(std::initializer_list<EagerTensor> sources) : EagerTensors(sources) {}
  Sources(const EagerTensors& sources) : EagerTensors(sources) {}
  Sources(const Variables& variables) {
    for (const Variable& v : variables) push_back(v.value());
  }
};

enum class UnconnectedGradients : uint8_t { kNone, kZero };

struct GradientOptions {
  EagerTensors output_gradients = {};  // one for each target; none: ones
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

class GradientTape {
 public:
  explicit GradientTape(GradientTapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// Tensors that nobody watches have no gradient. Throws Error(kDType) for whole numbers.
  void watch(const EagerTensor& tensor);
  void watch(const Sources& sources);

  /// Nothing is recorded while it lives: `const auto pause = tape.stop_recording();`
  class Pause {
   public:
    explicit Pause(eager::Tape& tape);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    eager::Tape& tape_;
  };
  [[nodiscard]] Pause stop_recording() { return Pause(*tape_); }
  /// Forgets everything, also what is watched.
  void reset();

  /// Of the sum of the target over all its elements, or of target * output_gradient. None (or zeros) where the
  /// target does not depend on a source. Throws Error(kUsage) when a tape that is not persistent is asked twice,
  /// Error(kShape) for an output gradient that does not fit, Error(kUnsupported) naming an operator without a gradient.
  EagerTensor gradient(const EagerTensor& target, const EagerTensor& source, const GradientOptions& options = {});
  EagerTensors gradient(const EagerTensor& target, const Sources& sources, const GradientOptions& options = {});
  /// Of the sum of several targets.
  EagerTensors gradient(const EagerTensors& targets, const Sources& sources, const GradientOptions& options = {});
  /// The gradient of each element of the target: the shape is that of the target and then that of the source. Goes back
  /// once for each element.
  EagerTensor jacobian(const EagerTensor& target, const EagerTensor& source, const GradientOptions& options = {});

  /// Those that were used so far, in the order of their first use.
  Variables watched_variables() const;

 private:
  std::unique_ptr<eager::Tape> tape_;
};

/// The same value, through which no gradient flows.
EagerTensor stop_gradient(const EagerTensor& x);

/// What a function of one's own gives: values, and the gradient of each argument for those of the values.
struct WithGradient {
  EagerTensors values;
  std::function<EagerTensors(const EagerTensors& gradients)> gradient;
};
/// A function whose gradient you say yourself. What it computes inside is not recorded; what `gradient` computes is, by
/// the tapes around the one that asks.
///
///   auto clipped = custom_gradient([](const EagerTensors& x) -> WithGradient {
///     return {{x[0]}, [](const EagerTensors& dy) -> EagerTensors { return {ops::clip(dy[0], -1, 1)}; }};
///   });
///   EagerTensor y = clipped({x})[0];
std::function<EagerTensors(const EagerTensors&)> custom_gradient(
    std::function<WithGradient(const EagerTensors&)> function);

}  // namespace millpond
