// Optimizer::apply: the update of all variables as one function of their gradients.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "eager/call.h"
#include "eager/live.h"
#include "eager/tape.h"
#include "millpond/ops.h"
#include "train/optimizer.h"

namespace millpond {
namespace train {
namespace {

/// What an optimizer keeps: a function for each set of slots that have a gradient.
struct Applying {
  static constexpr size_t kMost = 16;
  std::map<std::vector<bool>, std::shared_ptr<eager::Function>> functions;
};

// The slots of these variables, in their order. The first ones that an optimizer meets are those that it serves.
std::vector<size_t> slots_of(OptimizerImpl& o, const Variables& variables) {
  if (o.slots.empty()) {
    std::vector<nn::OwnedWeight> served;
    for (const Variable& v : variables)
      if (std::ranges::none_of(served, [&](const auto& w) { return w.weight == v.state(); }))
        served.push_back({v.state(), nullptr});
    o.build(served);
  }
  std::vector<size_t> at;
  at.reserve(variables.size());
  for (const Variable& v : variables) {
    // As a rule they come in the order of the slots.
    size_t i = at.size();
    if (i >= o.slots.size() || o.slots[i].weight != v.state())
      i = size_t(std::ranges::find(o.slots, v.state(), &OptimizerImpl::Slots::weight) - o.slots.begin());
    if (i == o.slots.size())
      throw Error(Code::kUsage, format("the optimizer \"{}\" does not serve the variable \"{}\"", o.name, v.path()))
          .hint(
              format("it has slots for {} variables, those of its first step: give each set of variables an optimizer "
                     "of its own",
                     o.slots.size()));
    at.push_back(i);
  }
  return at;
}

std::shared_ptr<eager::Function> function_of(OptimizerImpl& o, const std::vector<bool>& given) {
  if (!o.applying) o.applying = std::make_shared<Applying>();
  auto& functions = static_cast<Applying*>(o.applying.get())->functions;
  if (const auto found = functions.find(given); found != functions.end()) return found->second;
  graph::Graph g;
  graph::Builder b(g);
  std::vector<nn::OwnedWeight> trained;
  std::vector<graph::Value> weights, gradients;
  for (size_t i = 0; i < o.slots.size(); ++i) {
    const nn::Weight& w = o.slots[i].weight;
    trained.push_back({w, nullptr});
    weights.push_back(b.variable(w->variable.account(), w->variable.type(), &w->variable));
    gradients.push_back(given[i] ? b.input(format("g{}", i), w->variable.type()) : graph::Value{});
  }
  o.update(b, trained, weights, gradients);
  if (functions.size() >= Applying::kMost) functions.clear();
  return functions.emplace(given, std::make_shared<eager::Function>(std::move(g), 0)).first->second;
}

}  // namespace
}  // namespace train

void Optimizer::apply(const EagerTensors& gradients, const Variables& variables) {
  train::OptimizerImpl& o = *impl_;
  if (gradients.size() != variables.size())
    throw Error(Code::kUsage,
                format("{}: {} gradients are given for {} variables", o.name, gradients.size(), variables.size()));
  if (std::ranges::none_of(gradients, [](const EagerTensor& g) { return !g.is_none(); }))
    throw Error(Code::kUsage, format("{}: no variable has a gradient", o.name))
        .hint(
            "the loss must depend on the variables, and the tape must have recorded how: make it before the model is "
            "called");
  const eager::Tape::Silence silence;
  eager::Context& c = eager::Context::get();
  const std::lock_guard lock(c.mutex);
  const std::vector<size_t> slots = train::slots_of(o, variables);
  std::vector<bool> given(o.slots.size());
  std::vector<eager::Ref> by_slot(o.slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (gradients[i].is_none()) continue;
    eager::Ref g = gradients[i].impl();
    const graph::TensorType& want = variables[i].state()->variable.type();
    if (g->type.shape != want.shape)
      throw Error(Code::kShape, format("{}: the gradient of \"{}\" is {}, but the variable {}", o.name,
                                       variables[i].path(), to_string(g->type), to_string(want)));
    if (g->type.dtype != want.dtype) g = ops::cast(gradients[i], want.dtype).impl();
    eager::Ref& all = by_slot[slots[i]];
    all = all ? (eager::outside(all) + eager::outside(g)).impl() : std::move(g);
    given[slots[i]] = true;
  }
  const std::shared_ptr<eager::Function> f = train::function_of(o, given);
  if (!o.iterations.placed() ||
      std::ranges::any_of(o.slots, [](const auto& s) { return !s.weight->variable.placed(); })) {
    std::vector<nn::Weight> weights;
    for (const auto& s : o.slots) weights.push_back(s.weight);
    nn::materialize(weights);
    o.place({});
  }
  std::erase_if(by_slot, [](const eager::Ref& r) { return !r; });
  (void)eager::call(f, by_slot, false);
}

void Optimizer::apply_gradients(const std::vector<std::pair<EagerTensor, Variable>>& pairs) {
  EagerTensors gradients;
  Variables variables;
  for (const auto& [g, v] : pairs) gradients.push_back(g), variables.push_back(v);
  apply(gradients, variables);
}

EagerTensor Optimizer::scale_loss(const EagerTensor& loss) const {
  if (!impl_->loss_scale) return loss;
  impl_->place({});
  return loss * Numeral(impl_->loss_scale->scale.get<float>());
}

std::vector<std::pair<std::string, Tensor>> Optimizer::slots() const {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const auto& s : impl_->slots)
    for (const auto& v : s.variables)
      if (v->placed()) all.emplace_back(v->account(), v->copy("data/slots"));
  return all;
}

}  // namespace millpond
