// LossImpl: a loss as a composition of operators. It says what labels it wants, so that staging can convert and check
// them.
#pragma once
#include "graph/builder.h"
#include "millpond/losses.h"
#include "nn/describe.h"

namespace millpond::nn {

using graph::Builder;
using graph::TensorType;
using graph::Value;

/// How labels are staged for one output.
struct Labels {
  DType dtype = DType::kFloat32;
  int64_t classes = 0;  // not 0: integers that must lie in [0, classes)
};

struct LossImpl : Described {
  std::string name;
  std::string type;  // Keras's class name

  /// What all losses have, then this loss's own.
  void describe(Describer& d) override;
  virtual void options(Describer&) {}
  virtual Labels labels(const TensorType& prediction) const { return {prediction.dtype, 0}; }
  /// Shape of the labels of one sample when no data says it (a plan).
  virtual Shape label_shape(const Shape& prediction) const { return prediction; }
  /// One loss for each sample (and position). `y` has the dtype of labels().
  virtual Value values(Builder& b, Value y, Value prediction) const = 0;
  /// "crossentropy" becomes the one that the shapes ask for; all others stay.
  virtual std::shared_ptr<const LossImpl> resolve(const Shape& /*y*/, const Shape& /*prediction*/) const {
    return nullptr;
  }
};

struct LossClass {
  std::string type;                // Keras's
  std::vector<std::string> names;  // that a user may say; the first is the shortest that is good to read
  std::shared_ptr<LossImpl> (*make)();
};
/// All there are. A new loss is a struct in the public header, and its Impl and a row of this list in losses.cc.
const std::vector<LossClass>& loss_classes();

/// Mean over everything: Keras's sum_over_batch_size. With a mask (bool, of the shape of the losses) over what
/// counts.
Value mean_loss(Builder& b, const LossImpl& loss, Value y, Value prediction, Value mask = {});

/// A prediction as losses and metrics want it: those of half types are computed in float32, as Keras's are. A loss looks
/// for the softmax or the sigmoid that made its prediction: it is made once more, of the same numbers.
Value wide(Builder& b, Value prediction);

/// Keras's squeeze_or_expand_to_same_rank: a last dimension of 1 comes or goes where the ranks differ by one.
void match_ranks(Builder& b, Value& y, Value& prediction);

/// What went into the softmax (or the function given) that made `v`, or a null Value.
Value logits_of_softmax(Value v);
Value logits_of_sigmoid(Value v);

/// Keras's rule for "accuracy" and "crossentropy".
enum class Labelling { kBinary, kSparse, kCategorical };
Labelling labelling(const Shape& y, const Shape& prediction);

}  // namespace millpond::nn
