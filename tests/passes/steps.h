// Training steps written by hand, as graphs, for tests of passes and of the runtime.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/team.h"
#include "runtime/program.h"

namespace millpond::test {

/// A graph and the variables it is bound to. Initial values and the batch come from a fixed seed.
struct Step {
  graph::Graph graph;
  std::vector<std::unique_ptr<runtime::Variable>> variables;
  std::vector<std::pair<std::string, Tensor>> batch;  // values for the graph's inputs
};

struct StepOptions {
  int64_t rows = 8;
  std::vector<int64_t> widths{5, 7, 1};  // input, hidden..., output
  bool dropout = false;
  bool gelu = false;               // instead of relu
  std::string optimizer = "adam";  // sgd, momentum, adam, adamw, odd (support/rules.h)
};

/// Dense layers with relu between, sigmoid cross-entropy, accuracy, an optimiser.
Step mlp_step(const StepOptions& options);

/// Convolution, relu, max-pool (and once more when `deep`), flatten, dense, softmax cross-entropy. `scale`: of the
/// image's sides and the number of channels.
Step conv_step(bool deep, int64_t scale = 1, const std::string& optimizer = "adam");

/// Causal attention of two heads between projections, softmax cross-entropy.
Step attention_step();

struct RecurrentOptions {
  int64_t length = 5, rows = 3, inputs = 4, units = 6;
  std::string optimizer = "sgd";
};
/// An LSTM over a sequence, every step of it written out; the loss looks at the mean of all outputs and at the last
/// one.
Step unrolled_step(const RecurrentOptions& options);
/// The same as a scan.
Step scan_step(const RecurrentOptions& options);

/// A network drawn at random: dense layers, activations, normalisations with running statistics, dropout, sums and
/// products of values far apart, views, joined and cut values; each of them read by any later one.
Step random_step(uint64_t seed);

/// What is left after `steps` steps: all outputs, then all variables.
std::vector<Tensor> run_steps(const Step& step, const runtime::Options& options, int steps);

/// The largest difference between two results, relative to the largest magnitude of the pair compared.
double worst_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace millpond::test
