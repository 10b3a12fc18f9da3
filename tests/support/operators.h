// What tests of operators and kernels share: values of awkward shapes, one operator run on one backend between guard
// bytes, a fast kernel against its slow twin with a derived tolerance, and gradients against finite differences.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "graph/builder.h"

namespace millpond::test {

using graph::TensorType;
using graph::Value;

/// Uniform in [low, high); whole numbers for integer types; the same for the same seed.
Tensor random(const Shape& shape, uint64_t seed = 1, DType dtype = DType::kFloat32, double low = -1, double high = 1);
/// A tensor of these values.
Tensor values(const Shape& shape, std::vector<double> v, DType dtype = DType::kFloat32);
/// All elements as doubles.
std::vector<double> list(const Tensor& t);
/// Empty, all ones, primes, one past and one short of a vector, larger than a tile.
std::vector<Shape> awkward_shapes(int rank);
TensorType type(Shape shape, DType dtype = DType::kFloat32);

/// What the operator says to operands of these types; "" when it accepts them.
std::string refusal_of(const graph::Operator& op, const std::vector<TensorType>& types);

struct Run {
  int threads = 1;   // more than one: real threads, each taking the last block that is left
  int overlap = -1;  // which of memory().may_overwrite to use; -1: none
};
/// Runs one operator. Outputs, scratch and operands lie between guard bytes and begin as garbage; operands must come
/// out unchanged unless overwriting is their rule. Failures are reported to doctest.
std::vector<Tensor> run_operator(const backend::Backend& backend, const graph::Operator& op,
                                 const std::vector<Tensor>& inputs, Run how = {});

/// How far a fast kernel may be from the exact result. With u = 2^-24 (half the distance of 1 to the next float32):
///   exact     not at all: copies, comparisons, whole numbers
///   ulps{k}   2ku |exact|: k roundings, each of relative size 2u at most (a function good to one ulp counts as two)
///   terms{n}  2u (n + 2) S, S the same operator on absolute values: sums of n products. Any order of n additions, fused or
///             not, errs by at most gamma_n = nu / (1 - nu) of the sum of |terms| (Higham, Accuracy and Stability, ch. 3); the
///             two more are for the products and the store. S is computed in double by the reference.
///   scale{k}  2ku max(|output|, least): chains in which values of the output's size, or of `least`, cancel; k is counted at
///             the test
/// "Exact" is the reference run in float64 on the same operands, or in their own types where the operator has no wider form.
struct Tolerance {
  enum class Kind { kExact, kUlps, kTerms, kScale } kind = Kind::kExact;
  double k = 0;
  double least = 0;
};
inline Tolerance exact() { return {}; }
inline Tolerance ulps(double k) { return {Tolerance::Kind::kUlps, k, 0}; }
inline Tolerance terms(double n) { return {Tolerance::Kind::kTerms, n, 0}; }
inline Tolerance scale(double k, double least = 0) { return {Tolerance::Kind::kScale, k, least}; }

/// The fast kernel, on 1, 2 and 3 threads and with every allowed overlap, agrees with its twin. A second run on as many
/// threads, with other threads running other blocks, and a run with an overlap give the same bits. `only`: the outputs
/// to compare; empty: all.
void check_twin(const backend::Backend& fast, const graph::Operator& op, const std::vector<Tensor>& inputs,
                Tolerance tolerance, std::vector<int> only = {});

/// Runs the graph's nodes that `wanted` needs with reference kernels. `inputs` are the values of graph.inputs().
std::vector<Tensor> evaluate(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                             const std::vector<Value>& wanted);

/// A scalar of symbolic operands.
using Scalar = std::function<Value(graph::Builder&, std::span<const Value>)>;
/// passes::gradients of `f` agrees with central differences in float64, for every element of every floating operand.
void check_gradients_of(const Scalar& f, const std::vector<Tensor>& inputs);

struct Gradients {
  std::vector<int> outputs = {};  // that the loss reads; empty: all floating ones
  bool second = false;            // gradients of the gradients instead
};
/// The same for a weighted sum of an operator's outputs.
void check_gradients(const graph::Operator& op, const std::vector<Tensor>& inputs, const Gradients& what = {});

}  // namespace millpond::test
