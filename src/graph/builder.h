// Builder: appends nodes to a graph, inferring types, and stamps them with the layer and phase they belong to.
#pragma once
#include "graph/operator.h"

namespace millpond::graph {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }

  Value input(std::string name, TensorType type);
  /// `identity` is what the runtime will bind: two calls with one identity give one node.
  Value variable(std::string name, TensorType type, const void* identity);
  Value constant(Tensor value, std::string name = "constant");
  Value scalar(DType dtype, double value);

  /// The only output, or the first.
  Value add(std::shared_ptr<const Operator> op, std::vector<Value> inputs) {
    return add_all(std::move(op), std::move(inputs))[0];
  }
  std::vector<Value> add_all(std::shared_ptr<const Operator> op, std::vector<Value> inputs);
  /// The node computes what it did, by another operator that gives more outputs behind those it had. Its values stay
  /// good. For gradients of operators that must save what backward reads.
  void widen(Node& node, std::shared_ptr<const Operator> op);

  /// While it lives, new nodes belong to this layer and phase.
  class Scope {
   public:
    Scope(Builder& b, std::string layer, Phase phase) : Scope(b, std::move(layer), phase, 0) {}
    /// New nodes stand for `like`: its layer, phase and place in the order.
    Scope(Builder& b, const Node& like) : Scope(b, like.layer, like.phase, like.rank) {}
    ~Scope() { b_.layer_ = std::move(layer_), b_.phase_ = phase_, b_.rank_ = rank_; }
    Scope(const Scope&) = delete;

   private:
    Scope(Builder& b, std::string layer, Phase phase, int rank)
        : b_(b), layer_(std::move(b.layer_)), phase_(b.phase_), rank_(b.rank_) {
      b.layer_ = std::move(layer), b.phase_ = phase, b.rank_ = rank;
    }
    Builder& b_;
    std::string layer_;
    Phase phase_;
    int rank_;
  };
  const std::string& layer() const { return layer_; }
  Phase phase() const { return phase_; }

 private:
  Graph& graph_;
  std::string layer_;
  Phase phase_ = Phase::kForward;
  int rank_ = 0;
};

}  // namespace millpond::graph
