// Graph: what a step computes, as operators on values. Everything a user can write is traced into one of these, and
// everything that runs was one. Values are symbolic: a type, never data.
//
// A graph reads inputs (the batch), variables (weights, slots, counters) and constants. It ends in named outputs and in
// updates: "after the step, this variable holds that value". A variable's old value is read by every node that names
// it; the schedule puts the node that overwrites it last.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "millpond/tensor.h"

namespace millpond::graph {

class Operator;
class Node;

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  Bytes bytes() const { return size_of(dtype) * shape.size(); }
  bool operator==(const TensorType&) const = default;
};
/// "float32[32, 10]"
std::string to_string(const TensorType& type);

/// One output of one node. A null Value means "none": no gradient flows there.
struct Value {
  Node* node = nullptr;
  int output = 0;

  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Value&) const = default;
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
};

enum class Role : uint8_t { kOperator, kInput, kVariable, kConstant };
enum class Phase : uint8_t { kForward, kLoss, kBackward, kUpdate };
std::string_view to_string(Phase phase);

class Node {
 public:
  int id = 0;     // unique in its graph; also the order of making
  int rank = 0;   // wish for a place in the order: its id, or the rank of the node it stands for
  int place = 0;  // its number in Graph::nodes() when the graph was last sorted or reordered; 0 for nodes made since
  Role role = Role::kOperator;
  std::shared_ptr<const Operator> op;  // null for inputs, variables and constants
  std::vector<Value> inputs;
  std::vector<TensorType> types;  // of the outputs
  std::string name;               // input, variable or constant: its name; otherwise empty
  std::string layer;              // the layer whose call made it; names the account of its memory
  Phase phase = Phase::kForward;
  Tensor constant;                 // role kConstant
  const void* variable = nullptr;  // role kVariable: what the runtime binds it to (not owned, compared only)

  Value input(int i) const { return inputs[i]; }
  Value output(int i = 0) const { return {const_cast<Node*>(this), i}; }
};

struct Output {
  std::string name;
  Value value;
};
struct Update {
  Value variable;  // a node of role kVariable
  Value value;     // what it holds after the step
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  /// A deep copy; operators are shared (they are immutable). `moved`, if given, maps old nodes to new ones.
  Graph clone(std::unordered_map<const Node*, Node*>* moved = nullptr) const;

  /// In topological order after sort(), new nodes at the end.
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  std::vector<Node*> inputs() const;     // in order of making
  std::vector<Node*> variables() const;  // in order of making
  std::vector<Output> outputs;
  std::vector<Update> updates;

  /// A node with rank 0 gets its id as rank.
  Node* add(Node node);
  /// The node of role kVariable with this identity, or null.
  Node* variable(const void* identity) const;
  /// Sorts topologically, by rank where it can, and drops what no output or update needs. Inputs stay.
  /// A node that overwrites an operand in place (Operator::memory().in_place) comes after every other reader of it.
  void sort();
  /// Gives the nodes the order `order` (all of them, each once).
  void reorder(const std::vector<Node*>& order);

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unordered_map<const void*, Node*> variables_;  // by identity
  int next_id_ = 0;
};

/// For tables that are asked by value.
struct ValueHash {
  size_t operator()(Value v) const { return std::hash<const void*>()(v.node) * 31 + size_t(v.output); }
};

/// The value whose bytes `v` is: itself, or what a chain of views (Operator::memory().view) looks at.
Value storage(Value v);

/// Is `value` made in the bytes of `variable` because its operator works in place, or is it the variable itself?
bool made_in_place(Value value, Value variable);

/// Pairs (reader, overwriter): the first must come before the second, which overwrites in place what the first reads.
std::vector<std::pair<Node*, Node*>> overwrite_edges(const std::vector<std::unique_ptr<Node>>& nodes);

/// Who reads each value, kept true while a pass changes the graph through replace() and appends nodes: what a change
/// costs goes by how many read the value, not by the size of the graph. Good until the graph is sorted; a pass that
/// writes to Node::inputs by itself tells read_instead().
class Uses {
 public:
  struct Use {
    Node* node;   // null: a graph output or update
    int operand;  // of a graph output: its number; of an update: ~ its number
  };
  explicit Uses(Graph& graph);
  /// In the order of the nodes when the uses were taken; later ones behind. It may change with replace().
  const std::vector<Use>& of(Value v) const;
  /// The one node that reads v, or null when there are more, none, or it leaves the graph.
  Node* only_reader(Value v) const;
  /// Every use of `from` (by nodes, outputs and updates) becomes a use of `to`, but for uses by `except`.
  void replace(Value from, Value to, const Node* except = nullptr);
  /// This operand of this node becomes `to`.
  void read_instead(Node* node, int operand, Value to);

 private:
  void follow();  // notes the nodes that have been appended since
  Graph& graph_;
  size_t seen_ = 0;  // nodes
  std::unordered_map<Value, std::vector<Use>, ValueHash> uses_;
};

/// One line a node: "%12 conv1/relu  float32[32, 222, 222, 32] = unary[relu](%11)".
std::string to_string(const Graph& graph);
std::string to_string(const Node& node);

/// One sentence for each broken invariant (types that no longer infer, cycles, dangling values, updates of
/// non-variables).
std::vector<std::string> violations(const Graph& graph);

}  // namespace millpond::graph
