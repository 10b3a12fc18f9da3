#include "eager/context.h"

#include <atomic>

#include "base/format.h"
#include "eager/function.h"
#include "eager/tape.h"
#include "nn/layer.h"

namespace millpond::eager {

namespace {
std::atomic<Context*> made_context{nullptr};
constexpr EagerBounds kBounds;
}  // namespace

// Never destroyed: tensors of static life give their bytes back at the very end.
Context& Context::get() {
  static Context* const one = [] {
    auto* c = new Context();
    made_context = c;
    return c;
  }();
  return *one;
}
Context* Context::if_made() { return made_context; }

Context::Context()
    : backend(backend::default_backend()),
      threads(usable_threads()),
      pool(backend, kBounds.pool),
      operators(backend, threads, Bytes{kBounds.programs.value / 2}),
      alone_(threads, Team::WithoutHelpers()),
      kept_most_(Bytes{kBounds.programs.value / 2}) {
  if (!backend.runs())
    throw Error(Code::kUnsupported,
                format("the backend \"{}\" only plans: it cannot compute eager tensors", backend.name()));
  nn::on_clear_session([] { trim_eager(); });
}

Bytes trim_eager() {
  Context* const c = Context::if_made();
  return c ? c->trim() : Bytes{};
}

std::byte* Context::arena(Bytes wanted) {
  if (arena_.size() < wanted) {
    backend.wait();
    arena_ = {};  // first give back, then take: both are never there at once
    ++arena_version_;
    arena_ = backend.take(wanted, "eager/arena");
  }
  return arena_.address();
}

Context::Kept* Context::find(const graph::Key& key) {
  const auto at = kept_.find(key);
  if (at == kept_.end()) return nullptr;
  at->second.used = ++clock_;
  return &at->second;
}

Context::Kept& Context::keep(const graph::Key& key, Kept made) {
  made.used = ++clock_;
  Kept& placed = kept_.emplace(key, std::move(made)).first->second;
  make_room(&placed);
  return placed;
}

// A function grows when it is first run and when its gradient is asked for, so all are weighed anew.
void Context::make_room(const Kept* but) {
  kept_bytes_ = {};
  for (auto& [key, f] : kept_) kept_bytes_ += f.bytes = f.function->bytes();
  while (kept_bytes_ > kept_most_ && kept_.size() > (but ? 1 : 0)) {
    auto oldest = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (&it->second != but && (oldest == kept_.end() || it->second.used < oldest->second.used)) oldest = it;
    kept_bytes_ -= oldest->second.bytes;
    kept_.erase(oldest);
  }
}

void Context::set_bound(Bytes programs) {
  kept_most_ = Bytes{programs.value / 2};
  operators.set_most(kept_most_);
  make_room(nullptr);
}

Bytes Context::trim() {
  Bytes freed = pool.trim();
  const std::lock_guard lock(mutex);
  if (arena_) {
    backend.wait();
    freed += arena_.size();
    arena_ = {};
    ++arena_version_;
  }
  return freed;
}

std::vector<Ref> apply_all(const Op& op, std::span<const Ref> inputs) {
  Context& c = Context::get();
  thread_local std::vector<TensorType> types;
  types.clear();
  for (const Ref& x : inputs) types.push_back(x->type);
  std::vector<Ref> outputs;
  const bool looks = op->memory().view;
  if (looks) outputs.push_back(view(inputs[0], op->infer(types)[0].shape));
  if (looks && !Tape::any()) return outputs;
  const std::lock_guard lock(c.mutex);
  runtime::Eager::Entry& e = c.operators.get(op, types);
  if (!looks) {
    thread_local std::vector<std::byte*> operands;
    operands.clear();
    for (const Ref& x : inputs) operands.push_back(address_of(*x));
    outputs.reserve(e.outputs.size());
    for (const TensorType& t : e.outputs) {
      outputs.push_back(make(t));
      operands.push_back(outputs.back()->at);
    }
    if (e.executor->shared()) {
      const TeamLease lease(c.threads);
      c.operators.run(e, operands, *lease);
    } else {
      c.operators.run(e, operands, c.alone());
    }
    if (!c.backend.on_host()) c.backend.wait();
  }
  if (Tape::any())
    Tape::note(
        [&] {
          if (!e.beside) e.beside = Function::of(op, types);
          return std::static_pointer_cast<Function>(e.beside);
        },
        inputs, outputs);
  if (e.beside && e.weighed != c.functions_made) {
    c.operators.weigh(e, static_cast<Function*>(e.beside.get())->bytes());
    e.weighed = c.functions_made;
  }
  return outputs;
}

}  // namespace millpond::eager
