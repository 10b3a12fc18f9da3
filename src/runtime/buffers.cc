#include "runtime/buffers.h"

#include <algorithm>
#include <unordered_map>

#include "base/assert.h"
#include "base/format.h"

namespace millpond::runtime {

using graph::Node;
using graph::Role;
using graph::storage;
using graph::Value;

namespace {

std::string account(const Node& n) {
  const std::string layer = n.layer.empty() ? "step" : n.layer;
  switch (n.phase) {
    case graph::Phase::kForward:
    case graph::Phase::kLoss:
      return "activations/" + layer;
    case graph::Phase::kBackward:
      return "gradients/" + layer;
    case graph::Phase::kUpdate:
      return "workspace/" + layer;
  }
  return layer;
}

}  // namespace

void assign_buffers(Lowered& a, const BufferOptions& options) {
  const graph::Graph& graph = a.graph;
  std::vector<Call>& calls = a.calls;
  a.problem.calls = std::max(1, int(calls.size()));  // what is only looked at has its inputs all the same
  std::unordered_map<const Node*, int> call_of;
  for (size_t i = 0; i < calls.size(); ++i) call_of[calls[i].node] = int(i);

  std::unordered_map<Value, int, graph::ValueHash> last_read;  // call that reads the value, or a view of it, last
  const int forever = std::max(0, int(calls.size()) - 1);
  for (const Call& c : calls)
    for (Value v : c.node->inputs) last_read[storage(v)] = call_of[c.node];

  std::unordered_map<Value, bool, graph::ValueHash> escapes;
  for (const graph::Output& o : graph.outputs) escapes[storage(o.value)] = true;

  std::unordered_map<Value, Place, graph::ValueHash> place;
  std::unordered_map<const void*, int> variable_index;
  const auto new_buffer = [&](std::string name, Bytes size, int first, int last) {
    a.problem.buffers.push_back({.name = std::move(name), .size = size, .first = first, .last = std::max(first, last)});
    return Place{.index = int(a.problem.buffers.size()) - 1};
  };
  if (options.caller_operands)
    for (const Node* n : graph.inputs()) {  // in the order of making
      place[n->output()] = {.kind = Place::Kind::kCaller, .index = int(a.callers.size())};
      a.callers.push_back(n->name);
    }
  for (const auto& n : graph.nodes()) {
    const Value v = n->output();
    if (n->role == Role::kVariable) {
      auto* variable = static_cast<Variable*>(const_cast<void*>(n->variable));
      const auto [it, fresh] = variable_index.emplace(variable, int(a.variables.size()));
      if (fresh) a.variables.push_back(variable);
      place[v] = {.kind = Place::Kind::kVariable, .index = it->second};
    } else if (n->role == Role::kConstant) {
      place[v] = {.kind = Place::Kind::kConstant, .index = int(a.constants.size())};
      a.constants.push_back(n->constant);
    } else if (n->role == Role::kInput && !options.caller_operands) {
      place[v] = new_buffer("staging/" + n->name, n->types[0].bytes(), 0,
                            escapes.count(v)     ? forever
                            : last_read.count(v) ? last_read[v]
                                                 : 0);
      a.problem.buffers.back().escapes = escapes.count(v) > 0;
      a.inputs[n->name] = place[v];
    }
  }

  std::unordered_map<Value, Value, graph::ValueHash> made_in;  // value -> variable whose bytes it is made in
  for (const graph::Update& u : graph.updates)
    if (!graph::made_in_place(u.value, u.variable)) made_in[u.value] = u.variable;
  std::unordered_map<Value, Place, graph::ValueHash> handed;  // value -> the caller's operand that it is made in
  if (options.caller_operands)
    for (const graph::Output& o : graph.outputs) {
      handed[o.value] = {.kind = Place::Kind::kCaller, .index = int(a.callers.size())};
      a.callers.push_back(o.name);
    }

  for (size_t i = 0; i < calls.size(); ++i) {
    Call& call = calls[i];
    const Node& n = *call.node;
    for (Value v : n.inputs) call.in.push_back(place.at(storage(v)));
    const graph::MemoryFacts facts = call.memory();
    for (size_t o = 0; o < n.types.size(); ++o) {
      const Value v = n.output(int(o));
      const int last = escapes.count(v) ? forever : last_read.count(v) ? last_read[v] : int(i);
      const Bytes size = n.types[o].bytes();
      std::optional<Place> at;
      if (const auto it = made_in.find(v); it != made_in.end()) at = place.at(it->second);
      if (const auto it = handed.find(v); it != handed.end()) at = it->second;
      for (const graph::Overlap& p : facts.in_place)
        if (p.output == int(o)) at = call.in[p.input];
      if (!at && options.in_place)
        for (const graph::Overlap& p : facts.may_overwrite) {
          if (p.output != int(o) || at) continue;
          const Place& q = call.in[p.input];
          if (q.kind != Place::Kind::kBuffer) continue;
          const plan::Buffer& held = a.problem.buffers[q.index];
          if (held.size != size || held.last != int(i) || held.escapes) continue;
          // As many bytes are not as many elements: a repeated operand of a wider type is read again later.
          if (size_of(n.inputs[size_t(p.input)].dtype()) != size_of(n.types[o].dtype)) continue;
          // the same bytes read as another operand, or already given to another output: not ours to overwrite
          bool free = true;
          for (size_t k = 0; k < call.in.size(); ++k)
            if (call.in[k].kind == Place::Kind::kBuffer && call.in[k].index == q.index)
              free &= std::ranges::any_of(facts.may_overwrite, [&](const graph::Overlap& r) {
                return r.output == int(o) && r.input == int(k);
              });
          for (const Place& other : call.out) free &= other.kind != Place::Kind::kBuffer || other.index != q.index;
          if (free) at = q;
        }
      if (!at) at = new_buffer(account(n), size, int(i), last);
      if (at->kind == Place::Kind::kBuffer) {
        plan::Buffer& b = a.problem.buffers[at->index];
        b.last = std::max(b.last, last);
        b.escapes |= escapes.count(v) > 0;
      }
      call.out.push_back(*at);
      place[v] = *at;
    }
    if (const Bytes scratch = call.workspace(); scratch.value > 0)
      call.scratch = new_buffer("workspace/" + (n.layer.empty() ? "step" : n.layer), scratch, int(i), int(i)).index;
  }
  if (!options.caller_operands)
    for (const graph::Output& o : graph.outputs) a.outputs[o.name] = place.at(storage(o.value));
}

}  // namespace millpond::runtime
