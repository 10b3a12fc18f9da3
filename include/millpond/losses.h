// Losses: what training makes small, by Keras's name ("mse") or as an object. The loss of a batch is the mean over
// samples (and over positions, where a sample has several). Memory: a prediction that comes from its own activation
// (sigmoid for binary, softmax for the other crossentropies) is not needed itself: the loss works on what went into it,
// which is also more exact.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millpond/eager.h"

namespace millpond {

namespace nn {
struct LossImpl;
}

class Loss {
 public:
  Loss() = default;  // none: an output without a loss
  /// "mse", "mean_squared_error", "mae", "binary_crossentropy", "sparse_categorical_crossentropy", ...; also
  /// "crossentropy", which chooses by the shapes. Throws Error(kUsage) naming the known ones.
  Loss(std::string_view name);
  Loss(const char* name) : Loss(std::string_view(name)) {}
  Loss(const std::string& name) : Loss(std::string_view(name)) {}
  explicit Loss(std::shared_ptr<const nn::LossImpl> impl) : impl_(std::move(impl)) {}

  explicit operator bool() const { return impl_ != nullptr; }
  /// The loss of these predictions, a scalar: the mean, as fit has it, over what the predictions' mask lets count. Where a
  /// layer's softmax or sigmoid made them, it works on what went into that. Labels are converted to what it wants. Throws
  /// Error(kValue) for a class that is not there. Make a loss once, before the loop: what runs it is kept with it.
  EagerTensor operator()(const EagerTensor& y, const EagerTensor& prediction) const;
  const std::string& name() const;
  /// Keras's class name: "MeanSquaredError".
  std::string_view type() const;
  /// The options as Keras's get_config() gives them, as JSON; and a loss of them. Throws Error(kUnsupported) naming a
  /// class or option that is not here and the nearest one that is, Error(kFormat) or Error(kUsage) for a value that is
  /// not allowed.
  std::string get_config() const;
  static Loss from_config(std::string_view type, std::string_view config);
  const std::shared_ptr<const nn::LossImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const nn::LossImpl> impl_;
};

namespace losses {

/// mean((y - prediction)^2) over the last axis
struct MeanSquaredError : Loss {
  explicit MeanSquaredError(std::string name = "mean_squared_error");
};
/// mean(|y - prediction|) over the last axis
struct MeanAbsoluteError : Loss {
  explicit MeanAbsoluteError(std::string name = "mean_absolute_error");
};

struct CrossentropyOptions {
  bool from_logits = false;    // predictions are not probabilities yet
  double label_smoothing = 0;  // not for sparse labels
  std::string name = "";
};
/// For labels 0 and 1.
struct BinaryCrossentropy : Loss {
  explicit BinaryCrossentropy(CrossentropyOptions options = {});
};
/// For one-hot labels.
struct CategoricalCrossentropy : Loss {
  explicit CategoricalCrossentropy(CrossentropyOptions options = {});
};
/// For labels that are the number of the class. One that is out of range is refused before its step changes a weight.
struct SparseCategoricalCrossentropy : Loss {
  explicit SparseCategoricalCrossentropy(CrossentropyOptions options = {});
};

}  // namespace losses
using losses::BinaryCrossentropy, losses::CategoricalCrossentropy, losses::CrossentropyOptions,
    losses::MeanAbsoluteError, losses::MeanSquaredError, losses::SparseCategoricalCrossentropy;

/// One loss for each output of a model, in the order of the outputs or by their names: "mse", MeanSquaredError(),
/// {"mse", "binary_crossentropy"}, {{"size", "mse"}, {"kind", "binary_crossentropy"}}. An output without a loss has
/// Loss().
struct LossList : std::vector<Loss> {
  LossList() = default;
  LossList(Loss loss) : std::vector<Loss>{std::move(loss)} {}
  LossList(const char* name) : LossList(Loss(name)) {}
  LossList(const std::string& name) : LossList(Loss(name)) {}
  LossList(std::initializer_list<Loss> losses) : std::vector<Loss>(losses) {}
  LossList(std::vector<Loss> losses) : std::vector<Loss>(std::move(losses)) {}
  LossList(std::initializer_list<std::pair<std::string, Loss>> by_name) {
    for (const auto& [output, loss] : by_name) push_back(loss), names.push_back(output);
  }
  std::vector<std::string> names;  // of the outputs that the losses are for; none: by position
};

/// One number for each output of a model, by which its loss counts in the sum: {1, 0.5}, or by the outputs' names:
/// {{"size", 1}, {"kind", 0.5}}. None: all 1.
struct LossWeights : std::vector<double> {
  LossWeights() = default;
  LossWeights(std::initializer_list<double> weights) : std::vector<double>(weights) {}
  LossWeights(std::vector<double> weights) : std::vector<double>(std::move(weights)) {}
  LossWeights(std::initializer_list<std::pair<std::string, double>> by_name) {
    for (const auto& [output, weight] : by_name) push_back(weight), names.push_back(output);
  }
  std::vector<std::string> names;
};

}  // namespace millpond
