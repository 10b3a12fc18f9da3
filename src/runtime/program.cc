#include "runtime/program.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/format.h"
#include "runtime/buffers.h"

namespace millpond::runtime {

namespace {

// Runs one operator on constants with the reference kernels, for constant folding.
std::vector<Tensor> evaluate(const graph::Operator& op, std::span<const Tensor> inputs, std::span<const graph::TensorType> outputs) {
  backend::Request request;
  std::vector<void*> in, out;
  for (const Tensor& t : inputs) {
    request.inputs.push_back({t.dtype(), t.shape()});
    in.push_back(const_cast<std::byte*>(t.data()));
  }
  std::vector<Tensor> results;
  for (const graph::TensorType& t : outputs) {
    request.outputs.push_back(t);
    results.emplace_back(t.dtype, t.shape, "constants");
    out.push_back(results.back().data());
  }
  const auto kernel = backend::reference_backend().make(op, request);
  const Tensor scratch(DType::kUInt8, Shape{kernel->workspace().value + 64}, "constants");
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t{63});
  backend::run_alone(*kernel, {in.data(), out.data(), aligned});
  return results;
}

}  // namespace

passes::Options Options::offered_passes() const {
  passes::Options offered = passes;
  offered.offers = [&backend = chosen_backend()](std::string_view fusion) { return backend.offers(fusion); };
  return offered;
}

Program::Program(std::string name, graph::Graph graph, const Options& options) : name_(std::move(name)), graph_(std::move(graph)), threads_(options.threads) {
  records_ = passes::run(graph_, options.offered_passes(), evaluate);
  lower_updates(graph_);
  make_calls(options.chosen_backend());
  make_buffers(options.passes.in_place);
  plan_ = plan::solve(problem_, options.plan);
  make_stages();
}

void Program::make_calls(const backend::Backend& backend) {
  const auto add = [&](const graph::Node& n, const graph::Operator& op) {
    backend::Request request;
    for (graph::Value v : n.inputs) request.inputs.push_back(v.type());
    request.outputs = n.types;
    request.threads = threads_;
    Call call;
    call.node = &n;
    call.kernel = backend.make(op, request);
    calls_.push_back(std::move(call));
  };
  for (const auto& n : graph_.nodes())
    if (n->role == graph::Role::kOperator && !n->op->memory().view) add(*n, *n->op);
}

void Program::make_buffers(bool in_place) {
  Assignment a = assign_buffers(graph_, calls_, in_place);
  problem_ = std::move(a.problem);
  variables_ = std::move(a.variables);
  inputs_ = std::move(a.inputs);
  outputs_ = std::move(a.outputs);
}

void Program::make_stages() {
  for (size_t c = 0; c < calls_.size(); ++c) {
    const auto phases = calls_[c].kernel->phases();
    for (size_t p = 0; p < phases.size(); ++p) {
      const bool shared = threads_ > 1 && phases[p] > 1;
      const int s = int(steps_.size());
      steps_.push_back({calls_[c].kernel.get(), {}, int(p), phases[p]});
      if (!shared && !stages_.empty() && !stages_.back().shared) stages_.back().last = s + 1;
      else stages_.push_back({s, s + 1, shared});
      shared_ |= shared;
    }
  }
  claims_ = std::make_unique<Claim[]>(stages_.size() * size_t(threads_));
  done_ = std::make_unique<Done[]>(stages_.size());
}

std::byte* Program::address(const Place& p) const {
  switch (p.kind) {
    case Place::Kind::kBuffer: return arena_ + plan_.offsets[p.index].value;
    case Place::Kind::kVariable: return variables_[p.index]->data();
    case Place::Kind::kConstant: return static_cast<std::byte*>(const_cast<void*>(p.constant));
  }
  return nullptr;
}

void Program::bind(std::byte* arena) {
  arena_ = arena;
  for (const Variable* v : variables_) MP_ASSERT(v->placed());
  size_t count = 0;
  for (const Call& c : calls_) count += c.in.size() + c.out.size();
  pointers_.clear();
  pointers_.reserve(count);  // Arguments point into it
  size_t step = 0;
  for (const Call& c : calls_) {
    backend::Arguments a;
    a.in = pointers_.data() + pointers_.size();
    for (const Place& p : c.in) pointers_.push_back(address(p));
    a.out = pointers_.data() + pointers_.size();
    for (const Place& p : c.out) pointers_.push_back(address(p));
    a.scratch = c.scratch < 0 ? nullptr : arena_ + plan_.offsets[c.scratch].value;
    for (size_t p = 0; p < c.kernel->phases().size(); ++p) steps_[step++].arguments = a;
  }
}

namespace {
template <class Map>
const Place& find(const Map& map, std::string_view name, const std::string& program, const char* what) {
  const auto it = map.find(name);
  if (it == map.end()) throw Error(Code::kUsage, format("the program {} has no {} \"{}\"", program, what, name));
  return it->second;
}
}  // namespace

std::byte* Program::input(std::string_view name) const { return address(find(inputs_, name, name_, "input")); }
std::byte* Program::output(std::string_view name) const { return address(find(outputs_, name, name_, "output")); }

const graph::TensorType& Program::input_type(std::string_view name) const {
  for (const graph::Node* n : graph_.inputs())
    if (n->name == name) return n->types[0];
  throw Error(Code::kUsage, format("the program {} has no input \"{}\"", name_, name));
}
const graph::TensorType& Program::output_type(std::string_view name) const {
  for (const graph::Output& o : graph_.outputs)
    if (o.name == name) return o.value.type();
  throw Error(Code::kUsage, format("the program {} has no output \"{}\"", name_, name));
}

#ifdef MILLPOND_CHECKS
// Whoever reads bytes that nobody holds any more reads NaN.
void Program::poison_after(const backend::Kernel* kernel) const {
  const auto call = std::ranges::find_if(calls_, [&](const Call& c) { return c.kernel.get() == kernel; }) - calls_.begin();
  std::vector<int> root(problem_.buffers.size()), last(problem_.buffers.size());
  std::vector<bool> escapes(problem_.buffers.size());
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    root[i] = int(i);
    while (problem_.buffers[root[i]].inside) root[i] = problem_.buffers[root[i]].inside->value;
    last[root[i]] = std::max(last[root[i]], problem_.buffers[i].last);
    if (problem_.buffers[i].escapes) escapes[root[i]] = true;
  }
  for (size_t i = 0; i < problem_.buffers.size(); ++i)
    if (root[i] == int(i) && last[i] == int(call) && !escapes[i]) std::memset(arena_ + plan_.offsets[i].value, 0xff, size_t(problem_.buffers[i].size.value));
}
#endif

void Program::run(Team& team) {
  MP_CHECK(arena_ != nullptr || plan_.size.value == 0);
  if (!shared_) {
    for (const Step& s : steps_) {
      for (int b = 0; b < s.blocks; ++b) s.kernel->run(s.arguments, s.phase, b, 0);
#ifdef MILLPOND_CHECKS
      if (&s == &steps_.back() || (&s + 1)->kernel != s.kernel) poison_after(s.kernel);
#endif
    }
    return;
  }
  MP_CHECK(team.size() == threads_);
  for (size_t i = 0; i < stages_.size(); ++i) {
    done_[i].blocks.store(0, std::memory_order_relaxed);
    if (!stages_[i].shared) continue;
    const int blocks = steps_[stages_[i].first].blocks;
    for (int m = 0; m < threads_; ++m) {
      Claim& c = claims_[i * threads_ + m];
      c.next.store(int(int64_t(blocks) * m / threads_), std::memory_order_relaxed);
      c.end = int(int64_t(blocks) * (m + 1) / threads_);
    }
  }
  team.run([this](int m) { member(m); });
}

void Program::member(int m) noexcept {
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    std::atomic<int>& done = done_[i].blocks;
    int all = 1;
    if (!stage.shared) {
      if (m == 0) {
        for (int j = stage.first; j < stage.last; ++j) {
          const Step& s = steps_[j];
          for (int b = 0; b < s.blocks; ++b) s.kernel->run(s.arguments, s.phase, b, 0);
        }
        done.store(1, std::memory_order_release);
        continue;
      }
    } else {
      const Step& s = steps_[stage.first];
      all = s.blocks;
      int mine = 0;
      for (int k = 0; k < threads_; ++k) {
        Claim& c = claims_[i * threads_ + (m + k) % threads_];
        for (int b; c.next.load(std::memory_order_relaxed) < c.end && (b = c.next.fetch_add(1, std::memory_order_relaxed)) < c.end; ++mine)
          s.kernel->run(s.arguments, s.phase, b, m);
      }
      if (mine) done.fetch_add(mine, std::memory_order_acq_rel);
    }
    for (Spin spin; done.load(std::memory_order_acquire) != all;) spin.wait();
  }
}

}  // namespace millpond::runtime
