#include "ops/formula.h"

#include "base/assert.h"

namespace millpond::ops {

Formula::Formula(std::string name, const Before& before) : name_(std::move(name)), before_(before) {}

int Formula::add(Node node) {
  nodes_.push_back(node);
  return int(nodes_.size()) - 1;
}

Term Formula::once(int& node, Kind kind, bool each) {
  if (node < 0) node = add({kind, each});
  return {this, node};
}

Term Formula::weight() {
  if (weight_ >= 0) return {this, weight_};
  const Term raw = once(raw_weight_, Kind::kWeight, true);
  weight_ = raw.node;
  if (before_.weight_decay != 0) weight_ = (raw - learning_rate() * before_.weight_decay * raw).node;
  return {this, weight_};
}

Term Formula::gradient() {
  if (gradient_ >= 0) return {this, gradient_};
  Term g = once(raw_gradient_, Kind::kGradient, true);
  if (before_.scaled) g = g * once(scale_, Kind::kScale, false);
  if (before_.clip_value > 0) g = minimum(maximum(g, constant(-before_.clip_value)), constant(before_.clip_value));
  gradient_ = g.node;
  return g;
}

Term Formula::slot(std::string name, double initial) {
  MP_ASSERT(int(slots_.size()) < Rule::kMostSlots);
  slots_.push_back({std::move(name), initial});
  slot_.push_back(add({Kind::kSlot, true, int(slot_.size())}));
  slot_after_.push_back(slot_.back());
  return {this, slot_.back()};
}

Term Formula::number(std::string name, double initial) {
  numbers_.push_back({std::move(name), initial});
  number_.push_back(add({Kind::kNumber, false, int(number_.size())}));
  number_after_.push_back(number_.back());
  return {this, number_.back()};
}

Term Formula::learning_rate() { return once(rate_, Kind::kRate, false); }
Term Formula::step() { return once(step_, Kind::kStep, false); }

void Formula::becomes(Term kept, Term after) {
  MP_ASSERT(kept.formula == this && after.formula == this);
  if (kept.node == weight_) {
    MP_ASSERT(nodes_[after.node].each);
    weight_after_ = after.node;
    return;
  }
  const Node& n = nodes_[kept.node];
  MP_ASSERT(n.kind == Kind::kSlot || n.kind == Kind::kNumber);
  MP_ASSERT(nodes_[after.node].each == n.each);
  (n.kind == Kind::kSlot ? slot_after_ : number_after_)[size_t(n.index)] = after.node;
}

Term Formula::constant(double value) {
  Node n{Kind::kConstant, false};
  n.value = value;
  return {this, add(n)};
}

Term Formula::apply(Function f, Term a) {
  MP_ASSERT(arity(f) == 1 && a.formula == this);
  return {this, add({Kind::kFunction, nodes_[a.node].each, 0, f, a.node})};
}

Term Formula::apply(Function f, Term a, Term b) {
  MP_ASSERT(arity(f) == 2 && a.formula == this && b.formula == this);
  return {this, add({Kind::kFunction, nodes_[a.node].each || nodes_[b.node].each, 0, f, a.node, b.node})};
}

// Both expressions list their terms in the order in which the results want them, operands first: how the formula was
// written (and in which order a compiler evaluates operands) makes no difference, so equal formulas make equal rules.
Rule Formula::rule() const {
  MP_ASSERT(weight_after_ >= 0);
  Rule rule{name_, DType::kFloat32, slots_, numbers_, before_.scaled, {}, {}};
  std::vector<int> order;
  std::vector<bool> seen;
  const auto visit = [&](auto&& self, int node, const auto& stops) -> void {
    if (node < 0 || seen[size_t(node)]) return;
    seen[size_t(node)] = true;
    if (!stops(nodes_[size_t(node)]))
      self(self, nodes_[size_t(node)].a, stops), self(self, nodes_[size_t(node)].b, stops);
    order.push_back(node);
  };
  std::vector<int> place;  // register of each node
  const auto code = [&](Expression& e, bool each) {
    for (const int i : order) {
      const Node& n = nodes_[size_t(i)];
      if (n.kind != Kind::kConstant && (n.kind != Kind::kFunction || n.each != each)) continue;
      place[size_t(i)] = int(e.inputs.size() + e.code.size());
      if (n.kind == Kind::kConstant)
        e.code.push_back({Function::k_constant, -1, -1, -1, n.value});
      else
        e.code.push_back({n.function, int16_t(place[size_t(n.a)]), int16_t(n.b < 0 ? -1 : place[size_t(n.b)])});
    }
  };
  const auto input = [&](Expression& e, int node, Extent extent) {
    if (node >= 0) place[size_t(node)] = int(e.inputs.size());
    e.inputs.push_back(extent);
  };

  // For each element. A number that an element needs ends the search: it is handed in.
  std::vector<int> results{weight_after_};
  results.insert(results.end(), slot_after_.begin(), slot_after_.end());
  seen.assign(nodes_.size(), false);
  for (const int r : results) visit(visit, r, [](const Node& n) { return !n.each; });
  place.assign(nodes_.size(), -1);
  input(rule.update, raw_gradient_, Extent::kFull);
  input(rule.update, raw_weight_, Extent::kFull);
  for (const int s : slot_) input(rule.update, s, Extent::kFull);
  std::vector<int> scalars;
  for (const int i : order) {
    const Node& n = nodes_[size_t(i)];
    if (!n.each && n.kind != Kind::kConstant && n.kind != Kind::kScale)
      scalars.push_back(i), input(rule.update, i, Extent::kScalar);
  }
  if (before_.scaled) input(rule.update, scale_, Extent::kScalar);
  MP_ASSERT(rule.scalar_count() <= Rule::kMostScalars);
  code(rule.update, true);
  for (const int r : results) rule.update.results.push_back({int16_t(place[size_t(r)])});

  // Once a step.
  results = scalars;
  results.insert(results.end(), number_after_.begin(), number_after_.end());
  order.clear();
  seen.assign(nodes_.size(), false);
  for (const int r : results) visit(visit, r, [](const Node&) { return false; });
  place.assign(nodes_.size(), -1);
  input(rule.scalars, rate_, Extent::kScalar);
  input(rule.scalars, step_, Extent::kScalar);
  for (const int n : number_) input(rule.scalars, n, Extent::kScalar);
  code(rule.scalars, false);
  for (const int r : results) rule.scalars.results.push_back({int16_t(place[size_t(r)])});
  MP_ASSERT(violation(rule.update).empty() && violation(rule.scalars).empty());
  return rule;
}

Term operator+(Term a, Term b) { return a.formula->apply(Function::k_add, a, b); }
Term operator-(Term a, Term b) { return a.formula->apply(Function::k_subtract, a, b); }
Term operator*(Term a, Term b) { return a.formula->apply(Function::k_multiply, a, b); }
Term operator/(Term a, Term b) { return a.formula->apply(Function::k_divide, a, b); }
Term operator+(Term a, double b) { return a + a.formula->constant(b); }
Term operator-(Term a, double b) { return a - a.formula->constant(b); }
Term operator*(Term a, double b) { return a * a.formula->constant(b); }
Term operator/(Term a, double b) { return a / a.formula->constant(b); }
Term operator+(double a, Term b) { return b.formula->constant(a) + b; }
Term operator-(double a, Term b) { return b.formula->constant(a) - b; }
Term operator*(double a, Term b) { return b.formula->constant(a) * b; }
Term operator/(double a, Term b) { return b.formula->constant(a) / b; }
Term sqrt(Term x) { return x.formula->apply(Function::k_sqrt, x); }
Term square(Term x) { return x.formula->apply(Function::k_square, x); }
Term sign(Term x) { return x.formula->apply(Function::k_sign, x); }
Term abs(Term x) { return x.formula->apply(Function::k_abs, x); }
Term exp(Term x) { return x.formula->apply(Function::k_exp, x); }
Term log(Term x) { return x.formula->apply(Function::k_log, x); }
Term minimum(Term a, Term b) { return a.formula->apply(Function::k_minimum, a, b); }
Term maximum(Term a, Term b) { return a.formula->apply(Function::k_maximum, a, b); }
Term power(double base, Term exponent) {
  return exponent.formula->apply(Function::k_power, exponent.formula->constant(base), exponent);
}

}  // namespace millpond::ops
