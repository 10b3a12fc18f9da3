#include "runtime/program.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "base/format.h"

namespace millpond::runtime {

// A backend that computes on the host reads constants where they are; any other has them once more in its own memory.
void Program::place_constants() {
  if (backend().on_host() || !constant_memory_.empty()) return;
  constexpr Bytes kAlignment{64};
  Bytes total;
  for (const Tensor& t : lowered_.constants) total += round_up(t.bytes(), kAlignment);
  if (total.value == 0) return;
  const backend::Memory all = backend().take(total, "constants");
  Bytes at;
  for (const Tensor& t : lowered_.constants) {
    constant_memory_.push_back(all.part(at, t.bytes()));
    constant_memory_.back().write(t.data());
    at += round_up(t.bytes(), kAlignment);
  }
}

std::byte* Program::address(const Place& p) const {
  const size_t i = size_t(p.index);
  switch (p.kind) {
    case Place::Kind::kBuffer:
      return arena_ + lowered_.plan.offsets[i].value;
    case Place::Kind::kVariable:
      return lowered_.variables[i]->memory().address();
    case Place::Kind::kCaller:
      return nullptr;  // until it is handed over
    case Place::Kind::kConstant:
      return constant_memory_.empty() ? const_cast<std::byte*>(lowered_.constants[i].data())
                                      : constant_memory_[i].address();
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
  backend::Script script;
  script.threads = lowered_.threads;
  size_t count = 0;
  for (const Call& c : lowered_.calls) count += c.in.size() + c.out.size();
  script.operands.reserve(count);  // Arguments point into it
  for (const Call& c : lowered_.calls) {
    backend::Arguments a;
    const auto add = [&](const Place& p) {
      if (p.kind == Place::Kind::kCaller) script.handed.push_back({int(script.operands.size()), p.index});
      script.operands.push_back(address(p));
    };
    a.in = script.operands.data() + script.operands.size();
    for (const Place& p : c.in) add(p);
    a.out = script.operands.data() + script.operands.size();
    for (const Place& p : c.out) add(p);
    a.scratch = c.scratch < 0 ? nullptr : arena_ + lowered_.plan.offsets[size_t(c.scratch)].value;
    script.calls.push_back({c.kernel.get(), a});
  }
  for (const auto& [name, place] : lowered_.inputs) script.inputs.push_back({address(place), input_type(name).bytes()});
  for (const auto& [name, place] : lowered_.outputs)
    script.outputs.push_back({address(place), output_type(name).bytes()});
  for (const auto& [name, weight] : sums_)
    script.sums.push_back({find(lowered_.outputs, name, name_, "output"), weight});
#ifdef MILLPOND_CHECKS
  script.dead = dead();
#endif
  executor_ = backend().prepare(std::move(script));
}

// Buffers of the arena whose last reader is this call, by call.
std::vector<backend::Script::Dead> Program::dead() const {
  const std::vector<plan::Buffer>& buffers = lowered_.problem.buffers;
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
    if (root[i] == int(i) && !escapes[i] && last[i] < int(lowered_.calls.size()))
      all.push_back({last[i], {arena_ + lowered_.plan.offsets[i].value, buffers[i].size}});
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
