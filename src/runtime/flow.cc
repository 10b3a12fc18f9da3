#include "runtime/flow.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "ops/cond.h"
#include "ops/scan.h"
#include "ops/while_loop.h"
#include "runtime/lower.h"

namespace millpond::runtime {

LoweredFlow::LoweredFlow() = default;
LoweredFlow::~LoweredFlow() = default;

namespace {

constexpr Bytes kAlignment{64};

// Which calls of a lowered body touch an operand of its caller.
class Touches {
 public:
  explicit Touches(const Lowered& body) : body_(body) {}

  /// Once its last reader has run, or by that reader itself, may `out` be made where `in` lies?
  bool may_overwrite(int in, int out) const {
    const auto is = [](const Place& p, int index) { return p.kind == Place::Kind::kCaller && p.index == index; };
    int made = -1;
    for (int c = 0; c < int(body_.calls.size()); ++c) {
      const Call& call = body_.calls[size_t(c)];
      const graph::MemoryFacts facts = call.memory();
      for (size_t o = 0; o < call.out.size(); ++o)
        if (is(call.out[o], out)) {
          if (made >= 0) return false;
          made = c;
          for (size_t i = 0; i < call.in.size(); ++i)
            if (is(call.in[i], in) && std::ranges::none_of(facts.may_overwrite, [&](const graph::Overlap& p) {
                  return p.output == int(o) && p.input == int(i);
                }))
              return false;
        }
      if (made >= 0 && made < c && std::ranges::any_of(call.in, [&](const Place& p) { return is(p, in); }))
        return false;
    }
    return made >= 0;
  }

 private:
  const Lowered& body_;
};

class Maker {
 public:
  Maker(const graph::Node& node, const Options& options) : node_(node), options_(options) {}

  std::unique_ptr<LoweredFlow> make() {
    for (const graph::Graph* g : node_.op->bodies()) {
      Options inner = options_;
      inner.caller_operands = true;
      inner.memory_target.reset();  // a body has no memory of its own
      f_->bodies.push_back(std::make_unique<Lowered>(lower(g->clone(), inner)));
    }
    if (const auto* op = dynamic_cast<const ops::Scan*>(node_.op.get()))
      scan(*op);
    else if (const auto* loop = dynamic_cast<const ops::WhileLoop*>(node_.op.get()))
      while_loop(*loop);
    else
      cond();
    Bytes most;
    for (const auto& b : f_->bodies) most = std::max(most, b->plan.size);
    f_->arena = take(most);
    f_->scratch = top_;
    return std::move(f_);
  }

 private:
  Bytes take(Bytes size) {
    const Bytes at = top_;
    top_ += round_up(size, kAlignment);
    return at;
  }

  void scan(const ops::Scan& op) {
    f_->kind = backend::Flow::Kind::kScan;
    f_->length = op.length;
    f_->reverse = op.reverse;
    const int inputs = int(node_.inputs.size()), stacks = op.stacks();
    f_->shared = inputs - op.carries - op.sequences;
    const Touches touches(*f_->bodies[0]);
    for (int k = 0; k < op.carries; ++k) {
      LoweredFlow::Carry c{node_.types[size_t(k)].bytes(), touches.may_overwrite(k, inputs + k)};
      if (!c.in_place)
        for (int turn = 0; turn < 2 && turn < op.length - 1; ++turn) c.places[turn] = take(c.size);
      if (c.in_place || op.length > 1) f_->may_overwrite.push_back({k, k});
      f_->carries.push_back(c);
    }
    const auto elements = [&](Bytes whole) {
      LoweredFlow::Elements e{Bytes{whole.value / op.length}};
      if (e.stride.value % kAlignment.value != 0 && op.length > 1) e.bounce = take(e.stride);
      return e;
    };
    for (int i = 0; i < op.sequences; ++i)
      f_->sequences.push_back(elements(node_.inputs[size_t(op.carries + i)].type().bytes()));
    for (int i = 0; i < stacks; ++i) {
      f_->stacks.push_back(elements(node_.types[size_t(op.carries + i)].bytes()));
      for (int s = 0; s < op.sequences; ++s)  // element for element; bounces have been filled before
        if (f_->stacks.back().stride == f_->sequences[size_t(s)].stride &&
            (f_->sequences[size_t(s)].bounce.value >= 0 ||
             touches.may_overwrite(op.carries + s, inputs + op.carries + i)))
          f_->may_overwrite.push_back({op.carries + i, op.carries + s});
    }
  }

  void while_loop(const ops::WhileLoop& op) {
    f_->kind = backend::Flow::Kind::kWhile;
    f_->length = op.most;
    f_->shared = int(node_.inputs.size()) - op.carries;
    for (int k = 0; k < op.carries; ++k) {
      LoweredFlow::Carry c{node_.types[size_t(k)].bytes()};
      for (Bytes& place : c.places) place = take(c.size);
      f_->carries.push_back(c);
      f_->may_overwrite.push_back({k, k});  // it is written when the loop is over
    }
    f_->answer = take(Bytes{1});
  }

  void cond() {
    f_->kind = backend::Flow::Kind::kCond;
    f_->shared = int(node_.inputs.size()) - 1;
    for (const graph::TensorType& t : node_.types) f_->stacks.push_back({t.bytes()});
  }

  const graph::Node& node_;
  const Options& options_;
  std::unique_ptr<LoweredFlow> f_ = std::make_unique<LoweredFlow>();
  Bytes top_;
};

}  // namespace

std::unique_ptr<LoweredFlow> lower_flow(const graph::Node& node, const Options& options) {
  return Maker(node, options).make();
}

}  // namespace millpond::runtime
