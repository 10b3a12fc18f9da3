#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "operators.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "passes/passes.h"

namespace millpond::test {

std::vector<Tensor> evaluate(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                             const std::vector<Value>& wanted) {
  const std::vector<graph::Node*> leaves = graph.inputs();
  REQUIRE(leaves.size() == inputs.size());
  std::set<const graph::Node*> needed;
  std::vector<const graph::Node*> todo;
  for (const Value& v : wanted) todo.push_back(v.node);
  while (!todo.empty()) {
    const graph::Node* n = todo.back();
    todo.pop_back();
    if (!needed.insert(n).second) continue;
    for (const Value& v : n->inputs) todo.push_back(v.node);
  }
  std::map<const graph::Node*, std::vector<Tensor>> known;
  for (size_t i = 0; i < leaves.size(); ++i) known[leaves[i]] = {inputs[i]};
  for (const auto& n : graph.nodes()) {
    if (!needed.count(n.get()) || n->role == graph::Role::kInput) continue;
    if (n->role == graph::Role::kConstant) {
      known[n.get()] = {n->constant};
      continue;
    }
    REQUIRE(n->role == graph::Role::kOperator);
    std::vector<Tensor> operands;
    for (const Value& v : n->inputs) operands.push_back(known.at(v.node)[v.output]);
    known[n.get()] = run_operator(backend::reference_backend(), *n->op, operands);
  }
  std::vector<Tensor> results;
  for (const Value& v : wanted) results.push_back(known.at(v.node)[v.output]);
  return results;
}

void check_gradients_of(const Scalar& f, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> x;
  for (const Tensor& t : inputs) x.push_back(is_floating(t.dtype()) ? t.astype(DType::kFloat64) : t);
  graph::Graph graph;
  graph::Builder b(graph);
  std::vector<Value> operands, wrt;
  for (size_t i = 0; i < x.size(); ++i) {
    operands.push_back(b.input("x" + std::to_string(i), {x[i].dtype(), x[i].shape()}));
    if (is_floating(x[i].dtype())) wrt.push_back(operands.back());
  }
  const Value loss = f(b, operands);
  const std::vector<Value> grads = passes::gradients(b, loss, wrt);
  std::vector<Value> present;
  for (const Value& g : grads)
    if (g) present.push_back(g);
  const std::vector<Tensor> found = evaluate(graph, x, present);

  // Central differences err by h^2/6 of the third derivative plus the rounding of the loss over h: about 1e-9 here.
  const double h = 3e-6;
  size_t next = 0, which = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!is_floating(x[i].dtype())) continue;
    const bool there = bool(grads[which++]);
    const Tensor* analytic = there ? &found[next++] : nullptr;
    if (there) CHECK(analytic->shape() == x[i].shape());
    for (int64_t e = 0; e < x[i].size(); ++e) {
      double& place = x[i].values<double>()[e];
      const double was = place;
      place = was + h;
      const double up = evaluate(graph, x, {loss})[0].at(0);
      place = was - h;
      const double down = evaluate(graph, x, {loss})[0].at(0);
      place = was;
      const double numeric = (up - down) / (2 * h), got = there ? analytic->at(e) : 0;
      CHECK_MESSAGE(std::abs(got - numeric) <= 2e-7 * (1 + std::abs(numeric)),
                    "operand " << i << " element " << e << ": the gradient is " << got << ", the difference quotient "
                               << numeric);
    }
  }
}

void check_gradients(const graph::Operator& op, const std::vector<Tensor>& inputs, const Gradients& what) {
  // the operator outlives the graph: a pointer that owns nothing
  const std::shared_ptr<const graph::Operator> shared(std::shared_ptr<void>(), &op);
  auto weighted = [](graph::Builder& b, Value total, Value v, uint64_t seed) {
    const Value term = ops::sum(b, ops::multiply(b, v, b.constant(random(v.shape(), seed, v.dtype(), 0.5, 1.5))));
    return total ? ops::add(b, total, term) : term;
  };
  check_gradients_of(
      [&](graph::Builder& b, std::span<const Value> x) {
        const std::vector<Value> ys = b.add_all(shared, {x.begin(), x.end()});
        // no gradient in, none out: one null for each operand
        CHECK(op.backward(b, *ys[0].node, std::vector<Value>(ys.size())) == std::vector<Value>(x.size()));
        Value loss;
        for (size_t k = 0; k < ys.size(); ++k)
          if (is_floating(ys[k].dtype()) && (what.outputs.empty() || std::ranges::count(what.outputs, int(k))))
            loss = weighted(b, loss, ys[k], 100 + k);
        if (!what.second) return loss;
        std::vector<Value> wrt;
        for (const Value& v : x)
          if (is_floating(v.dtype())) wrt.push_back(v);
        Value again;
        uint64_t seed = 200;
        for (const Value& g : passes::gradients(b, loss, wrt))
          if (g) again = weighted(b, again, g, ++seed);
        return again;
      },
      inputs);
}

}  // namespace millpond::test
