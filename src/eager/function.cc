#include "eager/function.h"

#include <algorithm>
#include <unordered_set>

#include "base/assert.h"
#include "base/format.h"
#include "eager/live.h"
#include "eager/tape.h"
#include "passes/passes.h"

namespace millpond::eager {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Role;
using graph::Value;

namespace {

using Values = std::unordered_set<Value, graph::ValueHash>;

// A graph of its own that computes values of another. Values of the boundary become its inputs when they are first met,
// in the order of `read`; other inputs and variables stay what they are.
class Extract {
 public:
  explicit Extract(Values boundary = {}) : boundary_(std::move(boundary)), b_(graph) {}

  void keep(Value input) { made_.emplace(input, b_.input(input.node->name, input.type())); }
  Value copy(Value v) {
    if (!reach(v)) todo_.push_back(v.node);
    while (!todo_.empty()) {
      const Node* const n = todo_.back();
      const size_t before = todo_.size();
      for (const Value x : n->inputs)
        if (!reach(x)) todo_.push_back(x.node);
      if (todo_.size() > before) continue;
      todo_.pop_back();
      if (copied_.insert(n).second) copy(*n);
    }
    return made_.at(v);
  }

  Graph graph;
  std::vector<Value> read;

 private:
  bool reach(Value v) {
    if (made_.count(v)) return true;
    if (!boundary_.count(v)) return false;
    made_.emplace(v, b_.input(format("in{}", read.size()), v.type()));
    read.push_back(v);
    return true;
  }
  void copy(const Node& n) {
    Node twin = n;
    for (Value& x : twin.inputs) x = made_.at(x);
    twin.rank = 0;
    twin.phase = graph::Phase::kForward;
    Node* const own = graph.add(std::move(twin));
    for (size_t o = 0; o < n.types.size(); ++o) made_.emplace(n.output(int(o)), own->output(int(o)));
  }

  Values boundary_;
  Builder b_;
  std::unordered_map<Value, Value, graph::ValueHash> made_;
  std::unordered_set<const Node*> copied_;
  std::vector<const Node*> todo_;
};

std::vector<Value> leaves_of(const Graph& g) {
  std::vector<Value> all;
  for (Node* n : g.inputs()) all.push_back(n->output());
  for (Node* n : g.variables()) all.push_back(n->output());
  return all;
}

// Nodes that these values are made of, themselves among them; not through what `stop` has.
std::unordered_set<const Node*> below(std::span<const Value> values, const std::unordered_set<const Node*>& stop = {}) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> todo;
  for (const Value v : values) todo.push_back(v.node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (stop.count(n) || !seen.insert(n).second) continue;
    for (const Value v : n->inputs) todo.push_back(v.node);
  }
  return seen;
}

std::string output_name(size_t i) { return format("out{}", i); }

}  // namespace

Function::Function(Graph g, size_t results) : graph_(std::move(g)), results_(results) {
  for (const Node* n : graph_.inputs()) inputs_.push_back(n->types[0]);
  for (const Node* n : graph_.variables())
    variables_.push_back(static_cast<runtime::Variable*>(const_cast<void*>(n->variable)));
  for (const graph::Output& o : graph_.outputs) outputs_.push_back(o.value.type());
  for (const graph::Update& u : graph_.updates)
    changed_.push_back(static_cast<runtime::Variable*>(const_cast<void*>(u.variable.node->variable)));
}

std::shared_ptr<Function> Function::of(const Op& op, std::span<const TensorType> inputs) {
  Graph g;
  Builder b(g);
  std::vector<Value> xs;
  for (size_t i = 0; i < inputs.size(); ++i) xs.push_back(b.input(format("x{}", i), inputs[i]));
  const std::vector<Value> ys = b.add_all(op, std::move(xs));
  for (size_t i = 0; i < ys.size(); ++i) g.outputs.push_back({output_name(i), ys[i]});
  return std::make_shared<Function>(std::move(g), ys.size());
}

// Forward and backward in one graph, in which passes choose what is kept and what is made again, as in a training step.
std::shared_ptr<Function> Function::saving() {
  if (saves_nothing_) return shared_from_this();
  if (saving_) return saving_;
  Graph joint = graph_.clone();
  Builder b(joint);
  const std::vector<graph::Update> updates = std::move(joint.updates);
  joint.updates.clear();
  std::vector<Value> wrt;
  for (const Value v : leaves_of(joint))
    if (is_floating(v.dtype())) wrt.push_back(v);
  std::vector<passes::Seeded> seeds;
  for (size_t i = 0; i < results_; ++i) {
    const Value y = joint.outputs[i].value;
    if (is_floating(y.dtype())) seeds.push_back({y, b.input(format("dy{}", i), y.type())});
  }
  MP_ASSERT(joint.outputs.size() == results_);
  const size_t forward = results_ + updates.size(), inputs = inputs_.size();
  for (const graph::Update& u : updates) joint.outputs.push_back({"update", u.value});
  bool any = false;
  try {
    for (const Value g : passes::gradients(b, seeds, wrt))
      if (g) joint.outputs.push_back({"gradient", g}), any = true;
  } catch (const Error& e) {
    if (e.code() != Code::kUnsupported) throw;  // whoever asks for the gradient is told
  }
  if (!any) {
    saves_nothing_ = true;
    return shared_from_this();
  }
  joint.sort();
  passes::simplify(joint), joint.sort();
  passes::common_subexpressions(joint), joint.sort();
  passes::recompute(joint), joint.sort();

  std::vector<Value> kept, gradients;
  for (size_t i = 0; i < joint.outputs.size(); ++i) (i < forward ? kept : gradients).push_back(joint.outputs[i].value);
  const std::unordered_set<const Node*> before = below(kept);
  Values known(kept.begin(), kept.begin() + int64_t(results_));
  std::vector<Value> saved;
  const auto read = [&](Value v) {
    if (!before.count(v.node)) return;
    v = graph::storage(v);
    if (v.node->role != Role::kOperator || !known.insert(v).second) return;
    const Value one[] = {v};  // what depends on nothing is a constant, and made again
    if (std::ranges::any_of(below(one),
                            [](const Node* n) { return n->role == Role::kInput || n->role == Role::kVariable; }))
      saved.push_back(v);
  };
  const std::unordered_set<const Node*> behind = below(gradients, before);
  for (const auto& n : joint.nodes())
    if (behind.count(n.get()))
      for (const Value v : n->inputs) read(v);
  for (const Value g : gradients) read(g);

  Extract e;
  const std::vector<Node*> all = joint.inputs();
  for (size_t i = 0; i < inputs; ++i) e.keep(all[i]->output());
  for (size_t i = 0; i < results_; ++i) e.graph.outputs.push_back({output_name(i), e.copy(kept[i])});
  for (const Value v : saved) e.graph.outputs.push_back({output_name(e.graph.outputs.size()), e.copy(v)});
  Builder made(e.graph);
  for (size_t i = 0; i < updates.size(); ++i) {
    const Node& v = *graph_.updates[i].variable.node;  // in the joint graph it may have gone: nobody reads it
    e.graph.updates.push_back({made.variable(v.name, v.types[0], v.variable), e.copy(kept[results_ + i])});
  }
  saving_ = std::make_shared<Function>(std::move(e.graph), results_);
  return saving_;
}

const Function::Reads& Function::reads() {
  if (reads_) return *reads_;
  Reads r{std::vector<bool>(leaves()), std::vector<bool>(outputs_.size())};
  std::vector<bool> wrt(leaves()), dys(outputs_.size());
  for (size_t i = 0; i < leaves(); ++i) wrt[i] = floating(i);
  for (size_t i = 0; i < results_; ++i) dys[i] = is_floating(outputs_[i].dtype);
  try {
    for (const Backward::Read& read : backward(wrt, dys).reads) {
      if (read.from == Backward::From::kLeaf) r.leaves[size_t(read.number)] = true;
      if (read.from == Backward::From::kOutput) r.outputs[size_t(read.number)] = true;
    }
  } catch (const Error& e) {
    if (e.code() != Code::kUnsupported) throw;  // whoever asks for the gradient is told
  }
  // Gradients of some outputs alone, or of what is saved (a second derivative), may read something else.
  if (outputs_.size() > 1) {
    for (size_t i = 0; i < leaves(); ++i)
      if (floating(i) || i < inputs_.size()) r.leaves[i] = true;
    r.outputs.assign(outputs_.size(), true);
  }
  return reads_.emplace(std::move(r));
}

const Function::Backward& Function::backward(const std::vector<bool>& wrt, const std::vector<bool>& dys) {
  const auto found = backwards_.find({wrt, dys});
  if (found != backwards_.end()) return found->second;
  return backwards_.emplace(std::pair(wrt, dys), make_backward(wrt, dys)).first->second;
}

Function::Backward Function::make_backward(const std::vector<bool>& wrt, const std::vector<bool>& dys) const {
  Graph g = graph_.clone();
  Builder b(g);
  std::vector<Value> outputs;
  for (const graph::Output& o : g.outputs) outputs.push_back(o.value);
  g.outputs.clear();
  g.updates.clear();
  const std::vector<Value> leaves = leaves_of(g);
  std::unordered_map<Value, Backward::Read, graph::ValueHash> known;
  Values boundary;
  const auto know = [&](Value v, Backward::From from, size_t number) {
    if (known.emplace(v, Backward::Read{from, int(number)}).second) boundary.insert(v);
  };
  for (size_t i = 0; i < leaves.size(); ++i) know(leaves[i], Backward::From::kLeaf, i);
  for (size_t i = 0; i < outputs.size(); ++i) know(outputs[i], Backward::From::kOutput, i);
  std::vector<passes::Seeded> seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!dys[i]) continue;
    seeds.push_back({outputs[i], b.input(format("dy{}", i), outputs[i].type())});
    know(seeds.back().seed, Backward::From::kGradient, i);
  }
  std::vector<Value> wanted;
  std::vector<int> which;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (wrt[i]) wanted.push_back(leaves[i]), which.push_back(int(i));
  const std::vector<Value> found = passes::gradients(b, seeds, wanted);

  Backward result;
  Extract e(std::move(boundary));
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    e.graph.outputs.push_back({output_name(result.gives.size()), e.copy(found[i])});
    result.gives.push_back(which[i]);
  }
  if (result.gives.empty()) return result;
  for (const Value v : e.read) result.reads.push_back(known.at(v));
  const size_t count = e.graph.outputs.size();
  result.function = std::make_shared<Function>(std::move(e.graph), count);
  return result;
}

void Function::run(Context& c, std::span<std::byte* const> operands) {
  MP_CHECK(operands.size() == inputs_.size() + outputs_.size());
  if (!program_) {
    runtime::Options options;
    options.backend = &c.backend;
    options.threads = c.threads;
    options.caller_operands = true;
    options.passes = options.offered_passes();
    program_.emplace("eager", graph_.clone(), options);
    ++c.functions_made;
  }
  std::byte* const arena = c.arena(program_->arena_bytes());
  if (bound_ != c.arena_version()) {
    program_->bind(arena);
    bound_ = c.arena_version();
  }
  for (const runtime::Variable* v : changed_) v->changing();
  program_->hand_over(operands);
  if (program_->shared()) {
    const TeamLease lease(c.threads);
    program_->run(*lease);
  } else {
    program_->run(c.alone());
  }
  if (!c.backend.on_host()) program_->wait();
}

Bytes Function::bytes() const {
  constexpr Bytes kNode{1024}, kCall{4096};
  Bytes sum = kNode * int64_t(graph_.nodes().size());
  if (program_) {
    sum += kCall * int64_t(program_->lowered().calls.size());
    for (const Tensor& t : program_->lowered().constants) sum += t.bytes();
  }
  if (saving_) sum += saving_->bytes();
  for (const auto& [key, b] : backwards_)
    if (b.function) sum += b.function->bytes();
  return sum;
}

std::vector<Ref> call(const std::shared_ptr<Function>& plain, std::span<const Ref> inputs, bool save) {
  Context& c = Context::get();
  const bool taped = Tape::any() && !plain->outputs().empty();
  std::vector<Ref> outputs, leaves;
  std::vector<std::byte*> operands;
  const std::lock_guard lock(c.mutex);
  const std::shared_ptr<Function> f = taped && save ? plain->saving() : plain;
  outputs.reserve(f->outputs().size());
  operands.reserve(inputs.size() + f->outputs().size());
  for (const Ref& x : inputs) operands.push_back(address_of(*x));
  for (const TensorType& t : f->outputs()) {
    outputs.push_back(make(t));
    operands.push_back(outputs.back()->at);
  }
  if (taped) {
    leaves.assign(f->leaves(), nullptr);
    std::ranges::copy(inputs, leaves.begin());
    const Function::Reads& reads = f->reads();
    for (size_t i = inputs.size(); i < leaves.size(); ++i)
      if (reads.leaves[i]) leaves[i] = live(*f->variables()[i - inputs.size()]);
  }
  f->run(c, operands);
  if (taped) {
    // Of a state that the run changes and backward does not read, only the id is wanted: nobody keeps its old values.
    for (size_t i = inputs.size(); i < leaves.size(); ++i)
      if (!leaves[i]) leaves[i] = live(*f->variables()[i - inputs.size()]);
    Tape::note(f, leaves, outputs);
  }
  outputs.resize(f->results());
  return outputs;
}

}  // namespace millpond::eager
