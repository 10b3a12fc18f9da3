// Model: layers that train together. Keras's words: compile, fit, evaluate, predict.
//
//   Sequential model{Input({224, 224, 3}), Conv2D(32, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(), Dense(10, softmax)};
//   model.compile({.optimizer = Adam(1e-3), .loss = SparseCategoricalCrossentropy(), .metrics = {Accuracy()}});
//   model.summary();                                   // layers, parameters, and the memory plan
//   History h = model.fit(x, y, {.batch_size = 32, .epochs = 10, .validation_split = 0.1});
//
// Memory: weights and slots, made when they are first needed; and one arena that all of the model's programs (train,
// evaluate, predict, each with its batch size) share. A step allocates nothing. Everything goes back to the operating system
// with the last copy of the model (a copy is a handle to the same model).
//
// Threads: different models may be built, trained and dropped by different threads at once, with the same results as one
// after the other. They divide the processors among them: a step for which no processor is left runs in its own thread
// alone, and fit says so in History::notes. One model may be used by several threads for predict, evaluate, get_weights and
// save_weights at once; each has a workspace (an arena) of its own, of which there are at most as many as processors, and who
// finds none waits. What changes a model (fit, train_on_batch, set_weights, load_weights, compile, add) has it for itself:
// while another thread uses it, either of the two calls throws Error(kUsage). Callbacks of fit may use the model, but not
// compile it. Models that share layers or an optimizer count as one model here, and nobody checks them.
#pragma once
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/callbacks.h"
#include "millpond/dataset.h"
#include "millpond/history.h"
#include "millpond/layers.h"
#include "millpond/losses.h"
#include "millpond/memory.h"
#include "millpond/memory_plan.h"
#include "millpond/metrics.h"
#include "millpond/optimizers.h"
#include "millpond/tensor.h"

namespace millpond {

namespace train {
struct ModelImpl;
}

/// One array for each input or output of a model. One alone converts to and from a Tensor.
struct Arrays : std::vector<Tensor> {
  Arrays() = default;
  Arrays(Tensor one) : std::vector<Tensor>{std::move(one)} {}
  Arrays(std::initializer_list<Tensor> many) : std::vector<Tensor>(many) {}
  Arrays(std::vector<Tensor> many) : std::vector<Tensor>(std::move(many)) {}
  operator Tensor() const;  // throws Error(kUsage) unless there is exactly one
};

struct CompileOptions {
  Optimizer optimizer = "adam";  // Keras's compile() takes "rmsprop" where none is named
  LossList loss = {};
  MetricList metrics = {};
  LossWeights loss_weights = {};
  /// What training should take in all (MemoryPlan::total). Where it would take more, values are made again in backward
  /// instead of being kept, those first that free most for what they cost; results stay the same, bit for bit. Where
  /// even that does not come down so far, training takes the least that it comes to, and History::notes say so. 0: none.
  Bytes memory_target = {};
};

struct ValidationData {
  Arrays x, y;
  explicit operator bool() const { return !x.empty(); }
};

struct FitOptions {
  int64_t batch_size = 32;
  int epochs = 1;
  int verbose = 1;  // 0 silent, 1 one line that moves, 2 a line for each epoch
  std::vector<CallbackRef> callbacks = {};
  double validation_split = 0;  // of the last samples, taken before shuffling
  ValidationData validation_data = {};
  std::optional<Dataset> validation = {};  // instead of validation_data: batches of (x..., y...)
  bool shuffle = true;
  int initial_epoch = 0;
  int64_t steps_per_epoch = 0;  // 0: all batches; otherwise the next epoch goes on where this one stopped
  int64_t validation_steps = 0;
  int64_t validation_batch_size = 0;  // 0: batch_size
  int validation_freq = 1;
  int threads = 0;           // 0: all that this process may use
  bool check_inputs = true;  // refuse NaN and infinity before the step that would learn from them
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  int64_t steps = 0;
  std::vector<CallbackRef> callbacks = {};
  int threads = 0;
  bool check_inputs = true;
};

struct PredictOptions {
  int64_t batch_size = 32;
  int verbose = 0;
  int64_t steps = 0;
  std::vector<CallbackRef> callbacks = {};
  int threads = 0;
  bool check_inputs = true;
  /// Instead of keeping the predictions: .npy files, one for each output, written as they come; and a function that is
  /// handed each batch (the tensors are good during the call) with the number of its first row. With either, predict
  /// returns no arrays: (void)model.predict(x, {.output_files = {"y.npy"}}).
  std::vector<std::string> output_files = {};
  std::function<void(int64_t first_row, std::span<const Tensor> outputs)> output = {};
};

struct PlanOptions {
  int64_t batch = 32;
  /// Shapes of one sample of each input, for a model that leaves dimensions to its data (Input({None})): {{100}} plans
  /// for sequences of 100.
  std::vector<Shape> inputs = {};
  std::string optimizer = "";  // instead of the compiled one; "none": plan predicting only
  std::string loss = "";       // instead of the compiled one
  int threads = 0;
  bool evaluate = true;         // also plan evaluate and predict
  bool largest_batch = true;    // also find the largest batch that fits in the memory free now
  bool passes = true;           // false: the graph as written, for comparison
  Bytes memory_target = {};     // instead of the compiled one; 0: the compiled one
  std::string backend = "cpu";  // "null": no kernels, no workspace; plans what could never run here
};

class Model {
 public:
  /// A functional model. Refuses outputs that cannot be computed from the inputs.
  Model(std::vector<SymbolicTensor> inputs, std::vector<SymbolicTensor> outputs, std::string name = "");
  template <std::derived_from<SymbolicTensor> X, std::derived_from<SymbolicTensor> Y>
  Model(const X& input, const Y& output, std::string name = "")
      : Model(std::vector<SymbolicTensor>{input}, std::vector<SymbolicTensor>{output}, std::move(name)) {}
  explicit Model(std::shared_ptr<train::ModelImpl> impl) : impl_(std::move(impl)) {}

  // A model is a layer too.
  SymbolicTensor operator()(const SymbolicTensor& x) const;
  operator Layer() const;
  /// On values, as Layer does: model(x), model(x, true). Inputs are converted to the dtypes that the model wants.
  EagerTensor operator()(const EagerTensor& x, CallOptions options = {}) const;
  EagerTensor operator()(const EagerTensor& x, bool training) const {
    return operator()(x, CallOptions{.training = training});
  }
  EagerTensor operator()(const EagerTensors& xs, CallOptions options = {}) const;
  [[nodiscard]] EagerTensors call_all(const EagerTensors& xs, CallOptions options = {}) const;

  const std::string& name() const;
  std::vector<Layer> layers() const;
  Layer get_layer(std::string_view name) const;
  Layer get_layer(int index) const;
  std::vector<SymbolicTensor> inputs() const;
  std::vector<SymbolicTensor> outputs() const;
  /// The layers that give the outputs: what compile() calls them, and what History's keys begin with where there are
  /// several.
  std::vector<std::string> output_names() const;
  int64_t count_params() const;

  void compile(CompileOptions options);
  void compile(Optimizer optimizer, LossList loss, MetricList metrics = {});
  bool compiled() const;
  /// The compiled one; throws Error(kUsage) before compile.
  Optimizer optimizer() const;

  History fit(const Arrays& x, const Arrays& y, const FitOptions& options = {});
  Results evaluate(const Arrays& x, const Arrays& y, const EvaluateOptions& options = {}) const;
  [[nodiscard]] Arrays predict(const Arrays& x, const PredictOptions& options = {}) const;
  /// From a dataset of batches: elements (x..., y...), as many tensors as the model has inputs and outputs, each with
  /// the batch in front. Its own batches count; batch_size, shuffle and validation_split are the arrays' and must be
  /// left alone. Without steps_per_epoch an epoch goes through the dataset once (shuffled anew); with it the next epoch
  /// goes on where the last one stopped, and data that runs out ends the epoch with a note, as in Keras.
  History fit(const Dataset& data, const FitOptions& options = {});
  Results evaluate(const Dataset& data, const EvaluateOptions& options = {}) const;
  /// Elements may hold y as well; it is not looked at.
  [[nodiscard]] Arrays predict(const Dataset& data, const PredictOptions& options = {}) const;
  /// One step on one batch, of whatever size.
  Results train_on_batch(const Arrays& x, const Arrays& y);
  Results test_on_batch(const Arrays& x, const Arrays& y) const;
  [[nodiscard]] Arrays predict_on_batch(const Arrays& x) const;
  /// Ends fit after the epoch (from a batch hook: after the batch). For callbacks, and for other threads.
  void stop_training(bool stop = true);
  bool stopping() const;

  /// Copies, in Keras's order.
  [[nodiscard]] std::vector<Tensor> get_weights() const;
  /// Refuses another number of arrays or another shape, naming the weight.
  void set_weights(const std::vector<Tensor>& weights);
  /// "dense/kernel", ... in the order of get_weights.
  std::vector<std::string> weight_names() const;
  /// The weights themselves, for tapes and optimizers: all; those that training changes, in the order in which fit has
  /// them; and the rest.
  Variables variables() const;
  Variables trainable_variables() const;
  Variables non_trainable_variables() const;
  /// The live values, in the order of get_weights: a step changes them, and changing them changes the model. Throws
  /// Error(kUnsupported) where the weights lie in a device's memory, which the host cannot see.
  std::vector<Tensor> weight_views();
  /// Keras's .weights.h5; loading refuses a file that does not fit, naming the weight, before it changes any.
  void save_weights(const std::string& path) const;
  void load_weights(const std::string& path);

  /// What Keras's to_json() writes: keras.models.model_from_json and model_from_json open it. `indent` as in Python's
  /// json: letters a level, or all on one line. Throws Error(kUsage) before the model is built.
  [[nodiscard]] std::string to_json(int indent = -1) const;

  /// What the model holds now, by account: "weights/dense/kernel", "slots/adam.m/dense/kernel", "constants", "arena",
  /// and "programs", about what the programs take beside these (calls and plans; an estimate, and not in `taken`). Not
  /// while another thread trains it.
  [[nodiscard]] MemoryReport memory() const;
  /// The memory that training will take; touches none. Throws Error(kUsage) where it depends on a dimension that is None
  /// and options.inputs does not say.
  [[nodiscard]] MemoryPlan plan(const PlanOptions& options = {}) const;
  /// The operators of the training step (or of predict, when not compiled) after each pass, as text.
  std::string print_passes(const PlanOptions& options = {}) const;
  /// Layers, shapes, parameters and the memory plan (as far as the options say for which data), to stdout.
  void summary(const PlanOptions& options = {}) const;
  std::string summary_text(const PlanOptions& options = {}) const;

  const std::shared_ptr<train::ModelImpl>& impl() const { return impl_; }

 protected:
  std::shared_ptr<train::ModelImpl> impl_;
};

/// Layers one after the other. Without an Input in front it is built by the first data it sees. A model is a layer too:
/// Sequential b{a} is a model that has a for its one layer, Sequential b(a) another handle to a.
class Sequential : public Model {
 public:
  Sequential(std::initializer_list<Layer> layers = {}, std::string name = "");
  explicit Sequential(const std::vector<Layer>& layers, std::string name = "");
  void add(Layer layer);
  /// Of one sample, for a model without Input.
  void build(Shape input_shape);
};

/// Makes the model that Keras's model.to_json() describes, Sequential or functional, with weights of its own. Throws
/// Error(kFormat) on text that is no such JSON, Error(kUnsupported) naming a layer or option that is not here.
Model model_from_json(std::string_view json);

}  // namespace millpond
