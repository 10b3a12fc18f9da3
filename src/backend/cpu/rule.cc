#include "backend/cpu/rule.h"

#include "base/assert.h"
#include "ops/formula.h"

namespace millpond::backend::cpu {
namespace {

using ops::Formula;
using ops::Function;
using ops::Term;

// A formula that is written out in rule_simd.h. Its constants are numbered 1, 2, ... in the order of `constants`; which
// numbers a rule has there makes no difference, nor what its scalars are made of.
struct Pattern {
  Written rule;
  std::vector<float RuleStep::*> constants;
  ops::Expression update;
};

void finish(Pattern& p, const Formula& f) {
  p.update = f.rule().update;
  if (p.rule.decay) p.rule.scalars[p.rule.scalar_count++] = &RuleStep::decay;
  p.rule.scalars[p.rule.scalar_count++] = &RuleStep::step;
}

Pattern sgd(bool decay) {
  Formula f("", {.weight_decay = double(decay)});
  const Term w = f.weight();
  f.becomes(w, w - f.step() * f.gradient());
  Pattern p{{WrittenRule::kSgd, false, decay}, {}, {}};
  finish(p, f);
  return p;
}

Pattern momentum(bool nesterov, bool decay) {
  Formula f("", {.weight_decay = double(decay)});
  const Term w = f.weight(), v = f.slot("");
  const Term along = f.step() * f.gradient(), after = 1 * v - along;
  f.becomes(v, after);
  f.becomes(w, nesterov ? w + (2 * after - along) : w + after);
  Pattern p{{WrittenRule::kMomentum, nesterov, decay}, {&RuleStep::momentum, &RuleStep::momentum}, {}};
  finish(p, f);
  return p;
}

Pattern adam(bool decay) {
  Formula f("", {.weight_decay = double(decay)});
  const Term w = f.weight(), g = f.gradient(), m = f.slot(""), v = f.slot("");
  const Term first = m + (g - m) * 1, second = v + (square(g) - v) * 2;
  f.becomes(m, first);
  f.becomes(v, second);
  f.becomes(w, w - f.step() * first / (sqrt(second) + 3));
  Pattern p{{WrittenRule::kAdam, false, decay}, {&RuleStep::toward1, &RuleStep::toward2, &RuleStep::epsilon}, {}};
  finish(p, f);
  return p;
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all{sgd(false),
                                        sgd(true),
                                        momentum(false, false),
                                        momentum(false, true),
                                        momentum(true, false),
                                        momentum(true, true),
                                        adam(false),
                                        adam(true)};
  return all;
}

std::optional<Written> match(const Pattern& p, const ops::Expression& e) {
  if (e.inputs != p.update.inputs || e.results != p.update.results || e.code.size() != p.update.code.size()) return {};
  Written found = p.rule;
  std::vector<bool> known(p.constants.size());
  for (size_t i = 0; i < e.code.size(); ++i) {
    ops::Instruction mine = e.code[i], theirs = p.update.code[i];
    if (mine.function == Function::k_constant && theirs.function == Function::k_constant) {
      float& value = found.constants.*p.constants[size_t(theirs.immediate) - 1];
      // momentum occurs twice in Nesterov's form
      for (size_t k = 0; k < p.constants.size(); ++k)
        if (known[k] && p.constants[k] == p.constants[size_t(theirs.immediate) - 1] && value != float(mine.immediate))
          return {};
      value = float(mine.immediate);
      known[size_t(theirs.immediate) - 1] = true;
      mine.immediate = theirs.immediate;
    }
    if (mine != theirs) return {};
  }
  return found;
}

void as_expression(const RuleStep& s, const float* g, int64_t ldg, float* const* parameter, int64_t at, int64_t,
                   int64_t rows, int64_t cols) {
  void* in[1 + 1 + ops::Rule::kMostSlots + ops::Rule::kMostScalars];
  void* out[1 + ops::Rule::kMostSlots];
  in[0] = nullptr;  // the gradient is the product
  for (int k = 0; k < s.state; ++k) in[1 + k] = out[k] = parameter[k] + at;
  for (int k = 0; k < s.scalar_count; ++k) in[1 + s.state + k] = const_cast<float*>(s.scalars + k);
  ExpressionCall call{in, out, s.own, nullptr};
  call.product = g;
  call.product_ld = ldg;
  s.expression->tile(call, {0, rows, 0, cols});
}

}  // namespace

std::optional<Written> written(const ops::Rule& rule) {
  for (const Pattern& p : patterns())
    if (auto found = match(p, rule.update)) return found;
  return {};
}

PreparedRule::PreparedRule(const ops::Rule& rule, int64_t rows, int64_t cols, bool by_hand)
    : slots_(rule.slot_count()), scalars_(rule.scalar_count()) {
  if (by_hand) written_ = written(rule);
  if (written_) {
    pass = rule_kernels().pass(written_->kind, written_->nesterov, written_->decay);
    return;
  }
  const graph::TensorType each{DType::kFloat32, {rows, cols}};
  std::vector<graph::TensorType> operands(size_t(2 + slots_), each);
  operands.insert(operands.end(), size_t(scalars_), graph::TensorType{DType::kFloat32, {}});
  const std::vector<graph::TensorType> results(size_t(1 + slots_), each);
  expression_ = ExpressionKernel::make(rule.update, operands, results, {rows, cols}, true);
  if (expression_) pass = as_expression;
}

RuleStep PreparedRule::step(const float* scalars, std::byte* own) const {
  if (!written_) {
    RuleStep s{};
    s.expression = expression_.get();
    s.scalars = scalars, s.own = own;
    s.state = 1 + slots_, s.scalar_count = scalars_;
    return s;
  }
  RuleStep s = written_->constants;
  for (int i = 0; i < written_->scalar_count; ++i) s.*written_->scalars[i] = scalars[i];
  return s;
}

}  // namespace millpond::backend::cpu
