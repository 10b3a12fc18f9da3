#include "runtime/program.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/format.h"

namespace millpond::runtime {

namespace {
void add_constants(const Lowered& l, std::vector<const Tensor*>& all) {
  for (const Tensor& t : l.constants) all.push_back(&t);
  for (const Call& c : l.calls)
    if (c.flow)
      for (const auto& body : c.flow->bodies) add_constants(*body, all);
}
}  // namespace

// A backend that computes on the host reads constants where they are; any other has them once more in its own memory.
void Program::place_constants() {
  if (backend().on_host() || !constant_memory_.empty()) return;
  constexpr Bytes kAlignment{64};
  std::vector<const Tensor*> constants;
  add_constants(lowered_, constants);
  Bytes total;
  for (const Tensor* t : constants) total += round_up(t->bytes(), kAlignment);
  if (total.value == 0) return;
  const backend::Memory all = backend().take(total, "constants");
  Bytes at;
  for (const Tensor* t : constants) {
    const backend::Memory own = all.part(at, t->bytes());
    own.write(t->data());
    constant_memory_.emplace(t, own);
    at += round_up(t->bytes(), kAlignment);
  }
}

std::byte* Program::address(const Lowered& l, const Place& p, std::byte* arena) const {
  const size_t i = size_t(p.index);
  switch (p.kind) {
    case Place::Kind::kBuffer:
      return arena + l.plan.offsets[i].value;
    case Place::Kind::kVariable:
      return l.variables[i]->memory().address();
    case Place::Kind::kCaller:
      return nullptr;  // until it is handed over
    case Place::Kind::kConstant:
      return constant_memory_.empty() ? const_cast<std::byte*>(l.constants[i].data())
                                      : constant_memory_.at(&l.constants[i]).address();
  }
  return nullptr;
}

namespace {
template <class Map>
int find(const Map& map, std::string_view name, const std::string& program, const char* what) {
  const auto it = map.find(name);
  if (it == map.end()) throw Error(Code::kUsage, format("the program {} has no {} \"{}\"", program, what, name));
  return int(std::distance(map.begin(), it));
}
}  // namespace

void Program::bind(std::byte* arena) {
  MP_ASSERT(arena != nullptr || lowered_.plan.size.value == 0);
  executor_.reset();
  arena_ = arena;
  for (const Variable* v : lowered_.variables) {
    MP_ASSERT(v->placed());
    const backend::Backend& owner = v->memory().backend();
    MP_ASSERT(&owner == &backend() || (owner.on_host() && backend().on_host()));
  }
  place_constants();
  backend::Script script = script_of(lowered_, arena_);
  for (const auto& [name, place] : lowered_.inputs)
    script.inputs.push_back({address(lowered_, place, arena_), input_type(name).bytes()});
  for (const auto& [name, place] : lowered_.outputs)
    script.outputs.push_back({address(lowered_, place, arena_), output_type(name).bytes()});
  for (const auto& [name, weight] : sums_)
    script.sums.push_back({find(lowered_.outputs, name, name_, "output"), weight});
  executor_ = backend().prepare(std::move(script));
}

backend::Script Program::script_of(const Lowered& l, std::byte* arena) const {
  backend::Script script;
  script.threads = l.threads;
  size_t count = 0;
  for (const Call& c : l.calls) count += c.in.size() + c.out.size();
  script.operands.reserve(count);  // Arguments point into it
  for (const Call& c : l.calls) {
    backend::Arguments a;
    const auto add = [&](const Place& p) {
      if (p.kind == Place::Kind::kCaller) script.handed.push_back({int(script.operands.size()), p.index});
      script.operands.push_back(address(l, p, arena));
    };
    a.in = script.operands.data() + script.operands.size();
    for (const Place& p : c.in) add(p);
    a.out = script.operands.data() + script.operands.size();
    for (const Place& p : c.out) add(p);
    a.scratch = c.scratch < 0 ? nullptr : arena + l.plan.offsets[size_t(c.scratch)].value;
    if (c.flow) script.flows.push_back(flow_of(*c.flow, a.scratch));
    script.calls.push_back({c.kernel.get(), a, c.flow ? int(script.flows.size()) - 1 : -1});
  }
#ifdef MILLPOND_CHECKS
  script.dead = dead(l, arena);
#endif
  return script;
}

backend::Flow Program::flow_of(const LoweredFlow& l, std::byte* scratch) const {
  const auto at = [&](Bytes offset) { return offset.value < 0 ? nullptr : scratch + offset.value; };
  backend::Flow f;
  f.kind = l.kind;
  f.length = l.length;
  f.reverse = l.reverse;
  f.shared = l.shared;
  for (const LoweredFlow::Carry& c : l.carries)
    f.carries.push_back({c.size, c.in_place, {at(c.places[0]), at(c.places[1])}});
  for (const LoweredFlow::Elements& e : l.sequences) f.sequences.push_back({e.stride, at(e.bounce)});
  for (const LoweredFlow::Elements& e : l.stacks) f.stacks.push_back({e.stride, at(e.bounce)});
  f.answer = at(l.answer);
  for (const auto& body : l.bodies) f.bodies.push_back(script_of(*body, at(l.arena)));
  return f;
}

// Buffers of the arena whose last reader is this call, by call.
std::vector<backend::Script::Dead> Program::dead(const Lowered& l, std::byte* arena) const {
  const std::vector<plan::Buffer>& buffers = l.problem.buffers;
  std::vector<int> root(buffers.size()), last(buffers.size());
  std::vector<bool> escapes(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    root[i] = int(i);
    while (buffers[size_t(root[i])].inside) root[i] = buffers[size_t(root[i])].inside->value;
    last[size_t(root[i])] = std::max(last[size_t(root[i])], buffers[i].last);
    if (buffers[i].escapes) escapes[size_t(root[i])] = true;
  }
  std::vector<backend::Script::Dead> all;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (root[i] == int(i) && !escapes[i] && last[i] < int(l.calls.size()))
      all.push_back({last[i], {arena + l.plan.offsets[i].value, buffers[i].size}});
  return all;
}

std::byte* Program::input(std::string_view name) const {
  return executor_->input(find(lowered_.inputs, name, name_, "input"));
}
const std::byte* Program::output(std::string_view name) const {
  return executor_->output(find(lowered_.outputs, name, name_, "output"));
}

const graph::TensorType& Program::input_type(std::string_view name) const {
  for (const graph::Node* n : lowered_.graph.inputs())
    if (n->name == name) return n->types[0];
  throw Error(Code::kUsage, format("the program {} has no input \"{}\"", name_, name));
}
const graph::TensorType& Program::output_type(std::string_view name) const {
  for (const graph::Output& o : lowered_.graph.outputs)
    if (o.name == name) return o.value.type();
  throw Error(Code::kUsage, format("the program {} has no output \"{}\"", name_, name));
}

}  // namespace millpond::runtime
