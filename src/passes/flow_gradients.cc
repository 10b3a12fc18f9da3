#include "passes/flow_gradients.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/assert.h"
#include "base/format.h"
#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/cond.h"
#include "ops/scan.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Phase;
using graph::TensorType;
using graph::Value;

namespace {

Value zeros(Builder& b, const TensorType& t) { return ops::broadcast_to(b, b.scalar(t.dtype, 0), t.shape); }

// A graph of its own that computes `outputs` of `from`, whose `inputs` become its inputs.
Graph extract(const Graph& from, std::span<const Value> inputs, std::span<const Value> outputs) {
  Graph g;
  Builder b(g);
  std::unordered_map<Value, Value, graph::ValueHash> made;
  for (size_t i = 0; i < inputs.size(); ++i)
    made.emplace(inputs[i], b.input(format("in{}", i), inputs[i].type()));  // one that comes twice is read once
  std::unordered_set<const Node*> needed;
  std::vector<const Node*> todo;
  const auto need = [&](Value v) {
    if (!made.count(v) && needed.insert(v.node).second) todo.push_back(v.node);
  };
  for (Value v : outputs) need(v);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    for (Value v : n->inputs) need(v);
  }
  for (const auto& n : from.nodes()) {
    if (!needed.count(n.get())) continue;
    MP_ASSERT(n->role != graph::Role::kInput);  // all that is read from outside is among the inputs
    Node copy = *n;
    for (Value& v : copy.inputs) v = made.at(v);
    Node* const own = g.add(std::move(copy));
    for (size_t o = 0; o < n->types.size(); ++o) made.emplace(n->output(int(o)), own->output(int(o)));
  }
  for (size_t i = 0; i < outputs.size(); ++i) g.outputs.push_back({format("out{}", i), made.at(outputs[i])});
  return g;
}

// Forward and backward of one step of a body in one graph, in which passes choose what is kept and what is made again.
class Joint {
 public:
  Joint(const Graph& body, const std::string& layer) : b_(graph_), layer_(layer) {
    graph_ = body.clone();
    for (const auto& n : graph_.nodes()) n->phase = Phase::kForward;
    for (const Node* n : graph_.inputs()) inputs.push_back(n->output());
    forward_ = graph_.outputs.size();
  }

  Value output(size_t i) const { return graph_.outputs[i].value; }
  Value input(const char* name, const TensorType& type) { return b_.input(name, type); }

  /// Appends the gradients with respect to `wrt` as outputs; zeros where nothing depends on one. Of a null Value: none.
  void differentiate(std::span<const Seeded> seeds, std::span<const Value> wrt) {
    std::vector<Value> asked;
    for (Value v : wrt)
      if (v) asked.push_back(v);
    const std::vector<Value> found = gradients(b_, seeds, asked);
    const Builder::Scope scope(b_, layer_, Phase::kBackward);
    for (size_t i = 0; i < asked.size(); ++i)
      graph_.outputs.push_back({"gradient", found[i] ? found[i] : zeros(b_, asked[i].type())});
  }
  Builder& builder() { return b_; }
  Graph& graph() { return graph_; }

  /// What backward reads of forward comes out smaller. The first `carries` outputs are not kept.
  void tidy(size_t carries) {
    graph_.sort();
    simplify(graph_), graph_.sort();
    common_subexpressions(graph_), graph_.sort();
    // A carry is gone after the next step: that it leaves this one does not keep it for backward.
    for (size_t i = 0; i < carries; ++i) {
      Value& v = graph_.outputs[i].value;
      v = b_.add(std::make_shared<ops::BroadcastTo>(v.shape()), {v});
    }
    graph_.sort();
    recompute(graph_);
    for (size_t i = 0; i < carries; ++i) graph_.outputs[i].value = graph_.outputs[i].value.node->inputs[0];
    graph_.sort();
  }

  /// What forward makes, and outputs behind its own read.
  std::vector<Value> read_across() const {
    std::unordered_set<const Node*> before;
    std::vector<const Node*> todo;
    for (size_t i = 0; i < forward_; ++i) todo.push_back(output(i).node);
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (!before.insert(n).second) continue;
      for (Value v : n->inputs) todo.push_back(v.node);
    }
    std::vector<Value> across;
    std::unordered_set<Value, graph::ValueHash> seen;
    const auto read = [&](Value v) {
      const bool outside = v.node->role == graph::Role::kInput;
      const bool made = v.node->role == graph::Role::kOperator && before.count(v.node);
      if ((outside || made) && seen.insert(v).second) across.push_back(v);
    };
    for (const auto& n : graph_.nodes())
      if (n->role == graph::Role::kOperator && !before.count(n.get()))
        for (Value v : n->inputs) read(v);
    for (size_t i = forward_; i < graph_.outputs.size(); ++i) read(output(i));
    return across;
  }

  std::vector<Value> inputs;

 private:
  Graph graph_;
  Builder b_;
  std::string layer_;
  size_t forward_ = 0;
};

bool floating(Value v) { return is_floating(v.dtype()); }

class ScanGradient {
 public:
  ScanGradient(Builder& b, Node& node, const ops::Scan& op, std::span<const Value> dys, const std::vector<bool>& wanted)
      : b_(b),
        node_(node),
        op_(op),
        dys_(dys.begin(), dys.end()),
        wanted_(wanted),
        joint_(op.body->graph, node.layer) {}

  std::vector<Value> run() {
    differentiate();
    joint_.tidy(size_t(op_.carries));
    split();
    return backward();
  }

 private:
  int carries() const { return op_.carries; }
  int shared_at() const { return op_.carries + op_.sequences; }

  void differentiate() {
    std::vector<Seeded> seeds;
    std::vector<Value> wrt;
    for (int k = 0; k < carries(); ++k) {
      const Value x = joint_.inputs[size_t(k)];
      if (!floating(x)) continue;
      carry_.push_back(k);
      dcarry_.push_back(joint_.input("dcarry", x.type()));
      seeds.push_back({joint_.output(size_t(k)), dcarry_.back()});
      wrt.push_back(x);
    }
    for (size_t i = size_t(carries()); i < dys_.size(); ++i)
      if (dys_[i]) {
        stack_.push_back(int(i));
        dstack_.push_back(joint_.input("dstack", joint_.output(i).type()));
        seeds.push_back({joint_.output(i), dstack_.back()});
      }
    for (int i = carries(); i < int(joint_.inputs.size()); ++i)
      if (const Value x = joint_.inputs[size_t(i)]; wanted_[size_t(i)] && floating(x)) {
        (i < shared_at() ? sequence_ : shared_).push_back(i);
        wrt.push_back(x);
      }
    first_gradient_ = joint_.graph().outputs.size();
    joint_.differentiate(seeds, wrt);
    // The gradient of what every step reads is summed up over the steps, in a carry of its own.
    const Builder::Scope scope(joint_.builder(), node_.layer, Phase::kBackward);
    for (size_t j = 0; j < shared_.size(); ++j) {
      graph::Output& o = joint_.graph().outputs[first_gradient_ + carry_.size() + sequence_.size() + j];
      sum_.push_back(joint_.input("sum", o.value.type()));
      o.value = ops::add(joint_.builder(), sum_.back(), o.value);
    }
  }

  // The forward step gets what backward reads as further outputs.
  void split() {
    std::unordered_set<Value, graph::ValueHash> own;  // inputs that only backward has
    for (const auto* list : {&dcarry_, &dstack_, &sum_}) own.insert(list->begin(), list->end());
    std::vector<Value> outputs;
    for (size_t i = 0; i < dys_.size(); ++i) outputs.push_back(joint_.output(i));
    for (Value v : joint_.read_across()) {
      if (own.count(v)) continue;
      const auto given = std::ranges::find(joint_.inputs, v);
      const int at = int(given - joint_.inputs.begin());
      if (given != joint_.inputs.end() && at >= carries()) {
        (at < shared_at() ? read_sequences_ : read_shared_).push_back({v, node_.inputs[size_t(at)]});
        continue;
      }
      const auto stacked = std::find(outputs.begin() + carries(), outputs.end(), v);
      read_sequences_.push_back({v, node_.output(int(stacked - outputs.begin()))});
      if (stacked == outputs.end()) outputs.push_back(v);
    }
    if (outputs.size() > dys_.size()) {
      auto body = std::make_shared<ops::Body>(extract(joint_.graph(), joint_.inputs, outputs));
      b_.widen(node_,
               std::make_shared<ops::Scan>(std::move(body), op_.carries, op_.sequences, op_.length, op_.reverse));
    }
  }

  std::vector<Value> backward() {
    std::vector<Value> inputs, operands, outputs;
    const auto add = [&](Value inside, Value outside) { inputs.push_back(inside), operands.push_back(outside); };
    const auto gradient = [&](size_t i) { return joint_.output(first_gradient_ + i); };
    for (size_t i = 0; i < carry_.size(); ++i) {
      const Value dy = dys_[size_t(carry_[i])];
      add(dcarry_[i], dy ? dy : zeros(b_, dcarry_[i].type()));
      outputs.push_back(gradient(i));
    }
    const size_t sums = carry_.size() + sequence_.size();
    for (size_t j = 0; j < shared_.size(); ++j) {
      add(sum_[j], zeros(b_, sum_[j].type()));
      outputs.push_back(gradient(sums + j));
    }
    const int carried = int(inputs.size());
    for (size_t i = 0; i < stack_.size(); ++i) add(dstack_[i], dys_[size_t(stack_[i])]);
    for (const auto& [inside, outside] : read_sequences_) add(inside, outside);
    const int sequences = int(inputs.size()) - carried;
    for (const auto& [inside, outside] : read_shared_) add(inside, outside);
    for (size_t i = 0; i < sequence_.size(); ++i) outputs.push_back(gradient(carry_.size() + i));

    auto body = std::make_shared<ops::Body>(extract(joint_.graph(), inputs, outputs));
    const std::vector<Value> made = b_.add_all(
        std::make_shared<ops::Scan>(std::move(body), carried, sequences, op_.length, !op_.reverse), operands);
    std::vector<Value> result(node_.inputs.size());
    for (size_t i = 0; i < carry_.size(); ++i) result[size_t(carry_[i])] = made[i];
    for (size_t j = 0; j < shared_.size(); ++j) result[size_t(shared_[j])] = made[carry_.size() + j];
    for (size_t i = 0; i < sequence_.size(); ++i) result[size_t(sequence_[i])] = made[size_t(carried) + i];
    return result;
  }

  struct Read {
    Value inside, outside;  // in the joint graph, and in the parent's
  };
  Builder& b_;
  Node& node_;
  const ops::Scan op_;  // a copy: the node's own may be replaced by a wider one
  const std::vector<Value> dys_;
  const std::vector<bool>& wanted_;
  Joint joint_;
  std::vector<int> carry_, stack_, sequence_, shared_;  // which operands or outputs of the scan the following are for
  std::vector<Value> dcarry_, dstack_, sum_;            // inputs of the backward step
  size_t first_gradient_ = 0;                           // among the outputs: of carries, sequences, shared
  std::vector<Read> read_sequences_, read_shared_;
};

std::vector<Value> cond_backward(Builder& b, const Node& node, const ops::Cond& op, std::span<const Value> dys,
                                 const std::vector<bool>& wanted) {
  std::vector<Value> operands = node.inputs;
  std::vector<int> asked;
  for (size_t i = 1; i < operands.size(); ++i)
    if (wanted[i] && floating(operands[i])) asked.push_back(int(i));
  std::vector<Value> result(node.inputs.size());
  if (asked.empty()) return result;
  for (Value dy : dys)
    if (dy) operands.push_back(dy);
  std::vector<ops::BodyRef> bodies;
  for (const Graph* body : op.bodies()) {
    Joint joint(*body, node.layer);
    std::vector<Value> inputs = joint.inputs, wrt, outputs;
    std::vector<Seeded> seeds;
    for (size_t i = 0; i < dys.size(); ++i)
      if (dys[i]) {
        inputs.push_back(joint.input("dy", dys[i].type()));
        seeds.push_back({joint.output(i), inputs.back()});
      }
    for (int i : asked) wrt.push_back(joint.inputs[size_t(i) - 1]);
    joint.differentiate(seeds, wrt);
    for (size_t i = 0; i < wrt.size(); ++i) outputs.push_back(joint.output(dys.size() + i));
    bodies.push_back(std::make_shared<ops::Body>(extract(joint.graph(), inputs, outputs)));
  }
  const std::vector<Value> made = b.add_all(std::make_shared<ops::Cond>(bodies[0], bodies[1]), operands);
  for (size_t i = 0; i < asked.size(); ++i) result[size_t(asked[i])] = made[i];
  return result;
}

}  // namespace

std::vector<Value> flow_backward(Builder& b, Node& node, std::span<const Value> dys, const std::vector<bool>& wanted) {
  if (const auto* op = as<ops::Scan>(&node)) return ScanGradient(b, node, *op, dys, wanted).run();
  if (const auto* op = as<ops::Cond>(&node)) return cond_backward(b, node, *op, dys, wanted);
  return node.op->backward(b, node, dys);
}

}  // namespace millpond::passes
