// Attention without the score matrix: matmul(softmax(mask(scale q k^T)), v) becomes one operator that works in tiles.
// The mask is none, or causal: every constant form of it (select against a very negative number, or adding one) is
// recognised by its values.
#include "ops/attention.h"

#include "ops/broadcast_to.h"
#include "ops/matmul.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;
using ops::Function;

namespace {

constexpr double kNever = -1e4;  // added to a score or put in its place, it leaves no weight in float32 (exp(-1e4) = 0)

// Does the constant [.., length, length] hold `on` where the column may be seen by the row, and `off` elsewhere?
template <class On, class Off>
bool is_causal(Value mask, On on, Off off) {
  while (as<ops::BroadcastTo>(mask)) mask = mask.node->inputs[0];
  if (mask.node->role != graph::Role::kConstant || mask.shape().rank() < 2) return false;
  const int64_t length = mask.shape().back();
  if (mask.shape()[-2] != length || mask.shape().size() != length * length) return false;
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < length; ++j) {
      const double v = mask.node->constant.at(i * length + j);
      if (j <= i ? !on(v) : !off(v)) return false;
    }
  return true;
}

struct Scores {
  Value q, k;
  double scale = 1;
  bool causal = false;
};

// A number that multiplies everything, and what it multiplies.
Value unscaled(Value v, double& scale) {
  for (;;) {
    if (is(v, Function::k_multiply) || is(v, Function::k_divide)) {
      const auto c = uniform_constant(v.node->inputs[1]);
      const auto d = is(v, Function::k_multiply) ? uniform_constant(v.node->inputs[0]) : std::nullopt;
      if (c && v.node->inputs[0].shape() == v.shape())
        scale *= is(v, Function::k_multiply) ? *c : 1 / *c, v = v.node->inputs[0];
      else if (d && v.node->inputs[1].shape() == v.shape())
        scale *= *d, v = v.node->inputs[1];
      else
        return v;
    } else {
      return v;
    }
  }
}

std::optional<Scores> match_scores(Value s) {
  Scores found;
  if (as<ops::Select>(s)) {
    const auto never = uniform_constant(s.node->inputs[2]);
    if (!never || *never > kNever ||
        !is_causal(s.node->inputs[0], [](double v) { return v != 0; }, [](double v) { return v == 0; }))
      return {};
    found.causal = true;
    s = s.node->inputs[1];
  } else if (is(s, Function::k_add)) {
    const auto masks = [&](Value m) {
      return is_causal(m, [](double v) { return v == 0; }, [](double v) { return v <= kNever; });
    };
    const int side = masks(s.node->inputs[1]) ? 1 : masks(s.node->inputs[0]) ? 0 : -1;
    if (side < 0) return {};
    found.causal = true;
    s = s.node->inputs[1 - side];
  }
  s = unscaled(s, found.scale);
  const auto* product = as<ops::MatMul>(s);
  if (!product || product->transpose_a || !product->transpose_b || !product->epilogue.empty()) return {};
  found.q = unscaled(s.node->inputs[0], found.scale);
  found.k = unscaled(s.node->inputs[1], found.scale);
  return found;
}

}  // namespace

void attention(graph::Graph& graph) {
  graph::Builder b(graph);
  graph::Uses uses(graph);
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node& n = *graph.nodes()[i];
    const auto* product = as<ops::MatMul>(&n);
    if (!product || product->transpose_a || product->transpose_b || !as<ops::Softmax>(n.inputs[0])) continue;
    const Value v = n.inputs[1];
    const std::optional<Scores> s = match_scores(n.inputs[0].node->inputs[0]);
    if (!s || v.shape().rank() != 4 || s->q.type() != v.type() || s->k.type() != v.type()) continue;
    const graph::Builder::Scope scope(b, n);
    uses.replace(n.output(), ops::attention(b, s->q, s->k, v, s->causal, s->scale)[0]);
  }
}

}  // namespace millpond::passes
