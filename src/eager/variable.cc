#include "millpond/variable.h"

#include "base/format.h"
#include "base/seed.h"
#include "eager/context.h"
#include "eager/live.h"
#include "eager/tape.h"
#include "millpond/ops.h"

namespace millpond {

namespace {

std::shared_ptr<nn::WeightState> state_of(graph::TensorType type, const Initializer& initializer, VariableOptions o) {
  if (!type.shape.known())
    throw Error(Code::kShape, format("Variable \"{}\": a variable cannot have the shape {}", o.name, type.shape));
  std::string account = format("variables/{}", o.name);
  return std::shared_ptr<nn::WeightState>(new nn::WeightState{
      std::move(o.name), "", "", o.trainable, initializer, initializer.own_seed ? *initializer.own_seed : draw_seed(),
      runtime::Variable(std::move(account), type)});
}

void place(nn::WeightState& w) {
  if (w.variable.placed()) return;
  runtime::Variable* const one[] = {&w.variable};
  runtime::place(one, w.variable.account(), eager::Context::get().backend);
}

// The bytes of an eager tensor become the variable's.
void become(nn::WeightState& w, const eager::TensorImpl& value) {
  eager::Context& c = eager::Context::get();
  const backend::Backend& backend = c.backend;
  const Bytes size = value.type.bytes();
  const std::lock_guard lock(c.mutex);  // nobody reads it meanwhile
  w.variable.changing();
  if (backend.on_host() && w.variable.memory().host()) {
    backend.write(w.variable.memory().address(), eager::address_of(value), size);
    return;
  }
  std::vector<std::byte> host(size_t(size.value));
  eager::read(value, host.data());
  w.variable.memory().write(host.data());
}

}  // namespace

Variable::Variable(const EagerTensor& initial, VariableOptions options) {
  const eager::Ref& r = eager::need(initial, "Variable");
  state_ = state_of(r->type, "zeros", std::move(options));
  place(*state_);
  become(*state_, *r);
}

Variable::Variable(const Initializer& initializer, Shape shape, DType dtype, VariableOptions options)
    : state_(state_of({dtype, shape}, initializer, std::move(options))) {
  place(*state_);
  nn::fill(*state_);
}

EagerTensor Variable::value() const {
  if (!state_->variable.placed()) {
    const nn::Weight one[] = {state_};
    nn::materialize(one);
  }
  return EagerTensor(eager::live(state_));
}

void Variable::assign(const EagerTensor& value) {
  const eager::Ref& r = eager::need(value, "Variable::assign");
  if (r->type.shape != shape())
    throw Error(Code::kShape, format("Variable::assign: \"{}\" is {}, but is assigned {}", path(),
                                     to_string(state_->variable.type()), to_string(r->type)))
        .hint("reshape or broadcast the value first");
  const eager::Tape::Silence silence;
  if (!state_->variable.placed()) (void)this->value();
  become(*state_, *ops::cast(value, dtype()).impl());
}
void Variable::assign_add(const EagerTensor& value) {
  const eager::Tape::Silence silence;
  const std::lock_guard lock(eager::Context::get().mutex);  // two threads' changes both count
  assign(this->value() + ops::cast(value, dtype()));
}
void Variable::assign_sub(const EagerTensor& value) {
  const eager::Tape::Silence silence;
  const std::lock_guard lock(eager::Context::get().mutex);  // two threads' changes both count
  assign(this->value() - ops::cast(value, dtype()));
}

std::string Variable::name() const { return state_->name; }
std::string Variable::path() const {
  return state_->owner.empty() ? state_->path() : state_->owner + "/" + state_->path();
}
DType Variable::dtype() const { return state_->variable.type().dtype; }
const Shape& Variable::shape() const { return state_->variable.type().shape; }
bool Variable::trainable() const { return state_->trainable; }

}  // namespace millpond
