#include "ops/flow.h"

#include <atomic>

#include "base/format.h"

namespace millpond::ops {
namespace {
std::atomic<int64_t> bodies_made{0};

Graph sorted(Graph g) {
  g.sort();
  return g;
}
}  // namespace

Body::Body(Graph g) : graph(sorted(std::move(g))), number(++bodies_made) {}

std::vector<TensorType> Body::inputs() const {
  std::vector<TensorType> types;
  for (const Node* n : graph.inputs()) types.push_back(n->types[0]);
  return types;
}
std::vector<TensorType> Body::outputs() const {
  std::vector<TensorType> types;
  for (const graph::Output& o : graph.outputs) types.push_back(o.value.type());
  return types;
}

void expect_inputs(const Body& body, std::span<const TensorType> wanted, const std::string& who) {
  const std::vector<TensorType> has = body.inputs();
  if (has.size() != wanted.size())
    throw Error(Code::kShape, format("{} has {} inputs, but is given {}", who, has.size(), wanted.size()));
  for (size_t i = 0; i < has.size(); ++i)
    if (has[i] != wanted[i])
      throw Error(Code::kShape, format("{} was written for {} as input {}, but is given {}", who, to_string(has[i]), i,
                                       to_string(wanted[i])));
}

double flops_of(const Graph& graph) {
  double sum = 0;
  for (const auto& n : graph.nodes()) {
    if (n->role != graph::Role::kOperator) continue;
    std::vector<TensorType> inputs;
    for (Value v : n->inputs) inputs.push_back(v.type());
    sum += n->op->flops(inputs, n->types);
  }
  return sum;
}

BodyRef write_body(const std::string& layer, std::span<const TensorType> inputs, const Write& write) {
  Graph g;
  Builder b(g);
  const Builder::Scope scope(b, layer, graph::Phase::kForward);
  std::vector<Value> xs;
  for (size_t i = 0; i < inputs.size(); ++i) xs.push_back(b.input(format("in{}", i), inputs[i]));
  const std::vector<Value> ys = write(b, xs);
  for (size_t i = 0; i < ys.size(); ++i) g.outputs.push_back({format("out{}", i), ys[i]});
  return std::make_shared<Body>(std::move(g));
}

}  // namespace millpond::ops
