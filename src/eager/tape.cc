#include "eager/tape.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "millpond/ops.h"
#include "ops/binary.h"

namespace millpond {
namespace eager {

namespace {

thread_local std::vector<Tape*> tapes;  // of this thread, the innermost last

const Op& adding() {
  static const Op op = std::make_shared<ops::Binary>(ops::Function::k_add);
  return op;
}

// While it lives, the tape does not see what is computed.
class Quiet {
 public:
  explicit Quiet(Tape& tape) : tape_(tape) { tape_.pause(); }
  ~Quiet() { tape_.go_on(); }
  Quiet(const Quiet&) = delete;

 private:
  Tape& tape_;
};

uint64_t id_of(const Ref& t) { return is_floating(t->type.dtype) ? t->id : 0; }

}  // namespace

Tape::Tape(const GradientTapeOptions& options) : options_(options) { tapes.push_back(this); }
Tape::~Tape() { std::erase(tapes, this); }

thread_local int silent = 0;
Tape::Silence::Silence() { ++silent; }
Tape::Silence::~Silence() { --silent; }

bool Tape::any() {
  return silent == 0 && std::ranges::any_of(tapes, [](const Tape* t) { return t->records(); });
}

// Variables that are used are watched from then on.
bool Tape::knows(std::span<const Ref> leaves) {
  bool known = false;
  for (const Ref& t : leaves) {
    if (!is_floating(t->type.dtype)) continue;
    if (watched_.has(t->id)) {
      known = true;
    } else if (t->trainable && options_.watch_accessed_variables) {
      watch(t);
      known = true;
    }
  }
  return known;
}

void Tape::add(Call call, std::span<const Ref> leaves, std::span<const Ref> outputs) {
  call.in.reserve(leaves.size());
  for (const Ref& t : leaves) call.in.push_back(id_of(t));
  call.out.reserve(outputs.size());
  for (const Ref& t : outputs) {
    call.out.push_back(id_of(t));
    if (call.out.back()) watched_.add(call.out.back());
  }
  calls_.push_back(std::move(call));
}

void Tape::note(const std::shared_ptr<Function>& f, std::span<const Ref> leaves, std::span<const Ref> outputs) {
  note([&] { return f; }, leaves, outputs);
}

void Tape::note(const std::function<std::shared_ptr<Function>()>& make_function, std::span<const Ref> leaves,
                std::span<const Ref> outputs) {
  if (silent || std::ranges::none_of(outputs, [](const Ref& t) { return is_floating(t->type.dtype); })) return;
  std::shared_ptr<Function> f;
  for (Tape* tape : tapes) {
    if (!tape->records() || !tape->knows(leaves)) continue;
    if (!f) f = make_function();
    const Function::Reads& reads = f->reads();
    Call call{f, nullptr, {}, {}, std::vector<Ref>(leaves.size()), std::vector<Ref>(outputs.size()), {}};
    for (size_t i = 0; i < leaves.size(); ++i)
      if (reads.leaves[i]) call.leaves[i] = leaves[i];
    for (size_t i = 0; i < outputs.size(); ++i)
      if (reads.outputs[i]) call.outputs[i] = outputs[i];
    tape->add(std::move(call), leaves, outputs);
  }
}

void Tape::note(const Own& own, std::span<const Ref> leaves, std::span<const Ref> outputs) {
  if (silent) return;
  std::shared_ptr<const Own> shared;
  for (Tape* tape : tapes) {
    if (!tape->records() || !tape->knows(leaves)) continue;
    if (!shared) shared = std::make_shared<const Own>(own);
    Call call{nullptr, shared, {}, {}, {}, {}, {}};
    for (const Ref& t : outputs) call.types.push_back(t->type);
    tape->add(std::move(call), leaves, outputs);
  }
}

void Tape::watch(const Ref& t) {
  if (!is_floating(t->type.dtype))
    throw Error(Code::kDType, format("GradientTape::watch: a tensor of {} has no gradient", t->type.dtype))
        .hint("cast it to a floating type first");
  if (watched_.has(t->id)) return;
  watched_.add(t->id);
  if (!t->variable.expired()) variables_.push_back(t->variable);
}

void Tape::reset() {
  calls_.clear();
  watched_.clear();
  variables_.clear();
  closed_ = false;
}

void Tape::expect_open(const char* what) const {
  if (closed_)
    throw Error(Code::kUsage, format("GradientTape::{}: the tape has answered once, and is not persistent", what))
        .hint("ask for all gradients at once, or make it with {.persistent = true}");
}

Variables Tape::watched() const {
  Variables all;
  for (const auto& weak : variables_)
    if (auto state = weak.lock()) all.emplace_back(std::move(state));
  return all;
}

std::vector<Ref> Tape::gradient(std::span<const Ref> targets, std::span<const Ref> sources, std::span<const Ref> seeds,
                                UnconnectedGradients unconnected, const char* what, bool last) {
  expect_open(what);
  const Quiet quiet(*this);
  std::unordered_map<uint64_t, Ref> gradients;
  const auto accumulate = [&](uint64_t id, Ref g) {
    Ref& sum = gradients[id];
    sum = sum ? apply(adding(), {sum, std::move(g)}) : std::move(g);
  };
  for (size_t i = 0; i < targets.size(); ++i) {
    const TensorType& t = targets[i]->type;
    if (!is_floating(t.dtype))
      throw Error(Code::kDType,
                  format("GradientTape::{}: target {} is {}, which has no gradient", what, i, to_string(t)))
          .hint("cast it to a floating type before anything is computed from it");
    if (!seeds.empty() && seeds[i] && seeds[i]->type != t)
      throw Error(seeds[i]->type.dtype == t.dtype ? Code::kShape : Code::kDType,
                  format("GradientTape::{}: output gradient {} is {}, but its target {}", what, i,
                         to_string(seeds[i]->type), to_string(t)));
    accumulate(targets[i]->id, !seeds.empty() && seeds[i] ? seeds[i] : filled(t, 1));
  }
  // What depends on a source, in the order of the calls.
  Ids depends, wanted;
  for (const Ref& s : sources)
    if (watched_.has(s->id)) depends.add(s->id), wanted.add(s->id);
  for (const Call& call : calls_)
    if (std::ranges::any_of(call.in, [&](uint64_t id) { return id && depends.has(id); }))
      for (const uint64_t id : call.out)
        if (id) depends.add(id);

  const auto go_back = [&](const Call& call) {
    std::vector<bool> wrt(call.in.size()), dys(call.out.size());
    bool any_in = false, any_out = false;
    for (size_t i = 0; i < wrt.size(); ++i) any_in |= wrt[i] = call.in[i] && depends.has(call.in[i]);
    for (size_t i = 0; i < dys.size(); ++i) any_out |= dys[i] = call.out[i] && gradients.contains(call.out[i]);
    if (!any_in || !any_out) return;
    std::vector<Ref> given(dys.size());
    for (size_t i = 0; i < dys.size(); ++i)
      if (dys[i]) {
        const auto at = gradients.find(call.out[i]);
        given[i] = at->second;
        if (!wanted.has(call.out[i])) gradients.erase(at);
      }
    if (call.own) {
      EagerTensors dy;
      for (size_t i = 0; i < given.size(); ++i) dy.push_back(outside(given[i] ? given[i] : filled(call.types[i], 0)));
      const EagerTensors dx = (*call.own)(dy);
      if (dx.size() != wrt.size())
        throw Error(Code::kUsage,
                    format("custom_gradient: the gradient gives {} tensors for {} arguments", dx.size(), wrt.size()));
      for (size_t i = 0; i < wrt.size(); ++i)
        if (wrt[i] && !dx[i].is_none()) accumulate(call.in[i], dx[i].impl());
      return;
    }
    const Function::Backward* back;
    {
      const std::lock_guard lock(Context::get().mutex);
      back = &call.function->backward(wrt, dys);
    }
    if (!back->function) return;
    std::vector<Ref> operands;
    operands.reserve(back->reads.size());
    for (const Function::Backward::Read& r : back->reads) {
      using From = Function::Backward::From;
      const size_t n = size_t(r.number);
      operands.push_back(r.from == From::kLeaf ? call.leaves[n] : r.from == From::kOutput ? call.outputs[n] : given[n]);
      MP_ASSERT(operands.back());
    }
    std::vector<Ref> made = eager::call(back->function, operands, false);
    for (size_t i = 0; i < made.size(); ++i) accumulate(call.in[size_t(back->gives[i])], std::move(made[i]));
  };
  if (last) {
    closed_ = true;  // and what backward has read goes at once
    for (std::vector<Call> calls = std::move(calls_); !calls.empty(); calls.pop_back()) go_back(calls.back());
    calls_.clear();
  } else {
    for (size_t i = calls_.size(); i-- > 0;) go_back(calls_[i]);
  }
  std::vector<Ref> results;
  for (const Ref& s : sources) {
    const auto found = wanted.has(s->id) ? gradients.find(s->id) : gradients.end();
    if (found != gradients.end())
      results.push_back(found->second);
    else
      results.push_back(unconnected == UnconnectedGradients::kZero ? filled(s->type, 0) : nullptr);
  }
  return results;
}

}  // namespace eager

GradientTape::GradientTape(GradientTapeOptions options) : tape_(std::make_unique<eager::Tape>(options)) {}
GradientTape::~GradientTape() = default;

void GradientTape::watch(const EagerTensor& t) { tape_->watch(eager::need(t, "GradientTape::watch")); }
void GradientTape::watch(const Sources& sources) {
  for (const EagerTensor& t : sources) watch(t);
}

GradientTape::Pause::Pause(eager::Tape& tape) : tape_(tape) { tape_.pause(); }
GradientTape::Pause::~Pause() { tape_.go_on(); }

void GradientTape::reset() { tape_->reset(); }

EagerTensors GradientTape::gradient(const EagerTensors& targets, const Sources& sources, const GradientOptions& o) {
  if (!o.output_gradients.empty() && o.output_gradients.size() != targets.size())
    throw Error(Code::kUsage, format("GradientTape::gradient: {} output gradients for {} targets",
                                     o.output_gradients.size(), targets.size()));
  std::vector<eager::Ref> seeds;
  for (const EagerTensor& g : o.output_gradients) seeds.push_back(g.impl());
  return eager::outside(tape_->gradient(eager::need(targets, "GradientTape::gradient"),
                                        eager::need(sources, "GradientTape::gradient"), seeds, o.unconnected_gradients,
                                        "gradient", !tape_->persistent()));
}
EagerTensors GradientTape::gradient(const EagerTensor& target, const Sources& sources, const GradientOptions& options) {
  return gradient(EagerTensors{target}, sources, options);
}
EagerTensor GradientTape::gradient(const EagerTensor& target, const EagerTensor& source,
                                   const GradientOptions& options) {
  return gradient(EagerTensors{target}, Sources{source}, options)[0];
}

// Row by row: the gradient of each element is one going back.
EagerTensor GradientTape::jacobian(const EagerTensor& target, const EagerTensor& source, const GradientOptions& o) {
  const eager::Ref& y = eager::need(target, "GradientTape::jacobian");
  const eager::Ref& x = eager::need(source, "GradientTape::jacobian");
  if (!o.output_gradients.empty())
    throw Error(Code::kUsage, "GradientTape::jacobian: output gradients are given, but it goes through all of them");
  const graph::TensorType type = y->type;
  const int64_t n = type.shape.size();
  std::vector<int64_t> dims(type.shape.begin(), type.shape.end());
  dims.insert(dims.end(), x->type.shape.begin(), x->type.shape.end());
  EagerTensors rows;
  for (int64_t i = 0; i < n; ++i) {
    const EagerTensor one =
        ops::reshape(ops::one_hot(EagerTensor::scalar(double(i), DType::kInt64), n, type.dtype), type.shape);
    const eager::Ref targets[] = {y}, sources[] = {x}, seeds[] = {one.impl()};
    const bool last = i + 1 == n && !tape_->persistent();
    eager::Ref row = tape_->gradient(targets, sources, seeds, o.unconnected_gradients, "jacobian", last)[0];
    if (!row) return {};
    rows.push_back(ops::reshape(eager::outside(std::move(row)), x->type.shape.with_front(1)));
  }
  if (rows.empty()) return ops::zeros(Shape(dims), type.dtype);
  return ops::reshape(ops::concatenate(rows, 0), Shape(dims));
}

Variables GradientTape::watched_variables() const { return tape_->watched(); }

EagerTensor stop_gradient(const EagerTensor& x) {
  const eager::Ref& r = eager::need(x, "stop_gradient");
  return eager::outside(eager::view(r, r->type.shape));
}

std::function<EagerTensors(const EagerTensors&)> custom_gradient(
    std::function<WithGradient(const EagerTensors&)> function) {
  return [f = std::move(function)](const EagerTensors& xs) {
    const std::vector<eager::Ref> leaves = eager::need(xs, "custom_gradient");
    WithGradient made;
    {
      const eager::Tape::Silence silence;
      made = f(xs);
    }
    // Values of its own: one that is handed through must not be the argument itself.
    std::vector<eager::Ref> outputs;
    for (const EagerTensor& y : made.values) {
      const eager::Ref& r = eager::need(y, "custom_gradient");
      outputs.push_back(eager::view(r, r->type.shape));
    }
    if (!made.gradient) throw Error(Code::kUsage, "custom_gradient: the function gives no gradient");
    const std::lock_guard lock(eager::Context::get().mutex);
    eager::Tape::note(made.gradient, leaves, outputs);
    return eager::outside(std::move(outputs));
  };
}

}  // namespace millpond
