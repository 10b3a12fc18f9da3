#include "train/memory.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <unordered_set>

#include "backend/backend.h"
#include "base/format.h"
#include "base/process.h"

namespace millpond {
namespace train {
namespace {

constexpr Bytes kAlignment{64};

// A buffer of the plan that is not part of another, with the lifetime of all that lie in it.
struct Held {
  const plan::Buffer* buffer;
  int first, last;
};
std::vector<Held> held(const plan::Problem& problem) {
  std::vector<Held> all;
  std::vector<int> root(problem.buffers.size());
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    size_t r = i;
    while (problem.buffers[r].inside) r = size_t(problem.buffers[r].inside->value);
    root[i] = int(r);
  }
  std::map<int, size_t> place;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const plan::Buffer& b = problem.buffers[i];
    const int last = b.escapes ? std::max(b.last, problem.calls - 1) : b.last;
    const auto [it, fresh] = place.emplace(root[i], all.size());
    if (fresh) all.push_back({&problem.buffers[size_t(root[i])], b.first, last});
    Held& h = all[it->second];
    h.first = std::min(h.first, b.first);
    h.last = std::max(h.last, last);
  }
  return all;
}

std::string_view kind_of(std::string_view account) { return account.substr(0, account.find('/')); }
std::string_view rest_of(std::string_view account) {
  const size_t slash = account.find('/');
  return slash == std::string_view::npos ? std::string_view{} : account.substr(slash + 1);
}

MemoryPlan::Layer& layer_row(MemoryPlan& plan, std::string_view name) {
  for (MemoryPlan::Layer& l : plan.layers)
    if (l.name == name) return l;
  plan.layers.push_back({std::string(name), {}, {}, {}, {}, {}, {}});
  return plan.layers.back();
}

void charge(MemoryPlan& plan, const std::string& account, Bytes bytes) {
  for (auto& [name, sum] : plan.accounts)
    if (name == account) return void(sum += bytes);
  plan.accounts.emplace_back(account, bytes);
}

void finish(MemoryPlan& plan) {
  plan.gap =
      plan.lower_bound.value ? double((plan.arena - plan.lower_bound).value) / double(plan.lower_bound.value) : 0;
  plan.total = plan.weights + plan.slots + plan.metrics + plan.gradients + plan.activations + plan.workspace +
               plan.staging + plan.constants + plan.padding;
}

}  // namespace

void add_variables(MemoryPlan& plan, const nn::Network& net, OptimizerImpl* optimizer, const runtime::Variable* counter,
                   std::span<runtime::Variable* const> counts) {
  for (const auto& l : net.layers)
    if (l->type != "InputLayer") layer_row(plan, l->name);
  const auto add = [&](const runtime::Variable& v, Bytes& sum) {
    const Bytes bytes = v.type().bytes();
    sum += bytes;
    plan.padding += round_up(bytes, kAlignment) - bytes;
    charge(plan, v.account(), bytes);
  };
  for (const nn::OwnedWeight& w : nn::owned_weights(net)) {
    add(w.weight->variable, plan.weights);
    layer_row(plan, w.layer->name).weights += w.weight->variable.type().bytes();
  }
  for (const runtime::Variable* v : counts) add(*v, plan.metrics);
  if (!optimizer) return;
  for (const runtime::Variable* v : optimizer->variables()) {
    add(*v, plan.slots);
    const std::string_view in = rest_of(rest_of(v->account()));  // <layer>/<weight>
    if (!in.empty()) layer_row(plan, kind_of(in)).slots += v->type().bytes();
  }
  if (counter) add(*counter, plan.slots);
}

// The program, and every body of control flow in it.
template <class F>
void each_graph(const runtime::Lowered& l, F&& f) {
  f(l);
  for (const runtime::Call& c : l.calls)
    if (c.flow)
      for (const auto& body : c.flow->bodies) each_graph(*body, f);
}

const passes::Recomputed* recomputed(const runtime::Lowered& program) {
  for (const passes::Record& r : program.records)
    if (r.recomputed) return &*r.recomputed;
  return nullptr;
}

namespace {
void tell_recomputed(MemoryPlan& plan, const passes::Recomputed& r) {
  plan.target_reached = r.reached();
  plan.search_exhausted = r.exhausted;
  plan.arena_kept = r.before;
  plan.more_flops = r.step_flops > 0 ? r.added_flops / r.step_flops : 0;
  plan.more_moved = r.step_moved > 0 ? r.added_moved / r.step_moved : 0;
  plan.recomputed.clear();
  for (const passes::Recomputed::Call& c : r.calls) plan.recomputed.push_back({c.layer, c.name, c.bytes, c.flops});
}
}  // namespace

void add_program(MemoryPlan& plan, const runtime::Lowered& program, Kind kind, int64_t batch, std::string samples) {
  int slow = 0;
  each_graph(program, [&](const runtime::Lowered& l) {
    for (const runtime::Call& c : l.calls) slow += c.kernel && c.kernel->slow();
    for (const auto& n : l.graph.nodes())
      if (n->role == graph::Role::kConstant) plan.constants += n->types[0].bytes();
  });
  const plan::Plan& p = program.plan;
  plan.programs.push_back({std::string(to_string(kind)), batch, std::move(samples), p.size, p.lower_bound,
                           int(program.calls.size()), slow, p.seconds});
  plan.seconds += p.seconds;
  for (const passes::Record& r : program.records)
    if (r.recomputed) plan.seconds += r.seconds, plan.programs.back().seconds += r.seconds;
  if (plan.programs.size() > 1 && p.size <= plan.arena) return;

  for (auto it = plan.accounts.begin(); it != plan.accounts.end();) {  // what a smaller program had charged
    const std::string_view k = kind_of(it->first);
    it = k == "weights" || k == "slots" || k == "metrics" ? it + 1 : plan.accounts.erase(it);
  }
  for (MemoryPlan::Layer& l : plan.layers) l.gradients = l.activations = l.workspace = l.most = Bytes{0};
  plan.padding -= plan.arena - (plan.gradients + plan.activations + plan.workspace + plan.staging);
  plan.gradients = plan.activations = plan.workspace = plan.staging = Bytes{0};
  if (const passes::Recomputed* r = recomputed(program)) tell_recomputed(plan, *r);
  plan.arena = p.size;
  plan.lower_bound = p.lower_bound;
  plan.calls = int(program.calls.size());
  plan.peak_call = p.peak_call;
  if (p.peak_call >= 0 && p.peak_call < plan.calls) {
    const graph::Node& n = *program.calls[size_t(p.peak_call)].node;
    plan.peak_layer = n.layer;
    plan.peak_operator = n.op->name();
  }
  std::map<std::string, std::vector<int64_t>, std::less<>> changes;  // of each layer's bytes from call to call
  for (const Held& h : held(program.problem)) {
    const std::string_view k = kind_of(h.buffer->name), layer = rest_of(h.buffer->name);
    const bool layered = k == "activations" || k == "gradients" || k == "workspace";
    if (layered) {
      auto& c = changes[std::string(layer)];
      c.resize(size_t(plan.calls) + 1);
      c[size_t(std::clamp(h.first, 0, plan.calls))] += h.buffer->size.value;
      c[size_t(std::clamp(h.last + 1, 0, plan.calls))] -= h.buffer->size.value;
    }
    if (h.first > p.peak_call || h.last < p.peak_call) continue;
    charge(plan, h.buffer->name, h.buffer->size);
    (k == "gradients"     ? plan.gradients
     : k == "activations" ? plan.activations
     : k == "staging"     ? plan.staging
                          : plan.workspace) += h.buffer->size;
    if (layered) {
      MemoryPlan::Layer& row = layer_row(plan, layer);
      (k == "gradients" ? row.gradients : k == "activations" ? row.activations : row.workspace) += h.buffer->size;
    }
  }
  plan.padding += plan.arena - (plan.gradients + plan.activations + plan.workspace + plan.staging);
  for (const auto& [layer, c] : changes) {
    int64_t now = 0, most = 0;
    for (const int64_t d : c) most = std::max(most, now += d);
    layer_row(plan, layer).most = Bytes{most};
  }
}

namespace {

runtime::Options quick(const runtime::Options& options) {
  runtime::Options o = options;
  o.plan.exact = o.plan.climb = false;
  o.memory_target.reset();  // the largest batch is told with everything kept
  return o;
}

}  // namespace

int64_t largest_batch(const nn::Network& net, const Compiled* compiled, Kind kind, const runtime::Options& options,
                      const SampleShapes& samples, Bytes room) {
  constexpr int64_t kMost = int64_t{1} << 20;
  runtime::Variable counter("counter", {DType::kInt32, {}});
  MetricCounts counts;
  std::map<int64_t, int64_t> known;
  const auto arena = [&](int64_t batch) {
    auto& bytes = known[batch];
    if (!bytes)
      bytes =
          runtime::lower(trace(net, compiled, kind, batch, samples, &counter, counts, options.offered_passes()).graph,
                         quick(options))
              .plan.size.value +
          1;
    return bytes - 1;
  };
  // A step of one sample may take other kernels, and a little more, than one of a few.
  const std::array<int64_t, 4> few{1, 2, 4, 8};
  const auto first = std::ranges::find_if(few, [&](int64_t batch) { return arena(batch) <= room.value; });
  if (first == few.end()) return 0;
  // Arenas grow almost in proportion to the batch: aim where the line through two known ones meets the room, first
  // beyond what fits and, once something did not fit, between the two. When the line no longer leads on, try a little
  // more than what fits, and each time it still fits, four times as much more.
  constexpr int kMostPlans = 24;
  int64_t fits = *first, too_large = kMost + 1, ahead = 0;
  bool bounded = false;  // too_large was planned, and did not fit
  int refused = 0;       // in a row
  for (int plans = 1; plans < kMostPlans && too_large - fits > std::max<int64_t>(1, fits / 200); ++plans) {
    const auto below = known.find(fits);
    const int64_t other = bounded ? too_large : below == known.begin() ? 0 : std::prev(below)->first;
    int64_t aim = fits * 8;
    if (other) {
      const double slope = double(arena(other) - arena(fits)) / double(other - fits);
      aim = slope > 0 ? fits + int64_t(std::min(double(kMost), (double(room.value) - double(arena(fits))) / slope))
                      : fits * 64;
    }
    if (refused >= 2) aim = fits + (too_large - fits) / 2;
    if (aim <= fits) {
      ahead = ahead ? ahead * 4 : std::max<int64_t>(1, fits / 200);
      aim = fits + ahead;
    }
    aim = std::clamp(aim, fits + 1, too_large - 1);
    if (arena(aim) <= room.value)
      fits = aim, refused = 0;
    else
      too_large = aim, bounded = true, ahead = 0, ++refused;
  }
  return fits;
}

void refuse_if_too_large(ModelImpl& model, const Ready& made, Bytes more) {
  std::vector<const runtime::Variable*> unplaced;
  const auto weights = model.weights();
  for (const nn::Weight& w : weights) unplaced.push_back(&w->variable);
  if (made.key.kind == Kind::kTrain)
    for (const runtime::Variable* v : model.compiled->optimizer.impl()->variables()) unplaced.push_back(v);
  const Bytes fixed = runtime::bytes_to_place(unplaced);
  const Bytes needed = more + fixed;
  if (needed < Bytes{16 << 20}) return;  // not worth asking the system
  const FreeMemory free = made.program.backend().memory_free();
  if (needed <= free.bytes) return;

  MemoryPlan plan;
  add_variables(plan, model.built(), made.key.kind == Kind::kTrain ? model.compiled->optimizer.impl().get() : nullptr,
                nullptr, {});
  add_program(plan, made.program.lowered(), made.key.kind, made.key.batch);
  const std::string samples = told_samples(model.built(), made.key.samples);
  const Bytes room = free.bytes - fixed + (made.program.arena_bytes() - more);
  runtime::Options options;
  options.threads = made.key.threads;
  const int64_t largest = room.value > 0 ? largest_batch(model.built(), model.compiled ? &*model.compiled : nullptr,
                                                         made.key.kind, options, made.key.samples, room)
                                         : 0;
  const char* what = made.key.kind == Kind::kTrain ? "fit" : made.key.kind == Kind::kEvaluate ? "evaluate" : "predict";
  Error e(Code::kMemory, format("{} refused: it needs {} more, but {} is free ({} short)", what, needed, free.bytes,
                                needed - free.bytes));
  e.add("where", format("\"{}\", batch {}{}; the peak is call {} of {}, {}", model.name, made.key.batch,
                        samples.empty() ? "" : " of " + samples, plan.peak_call + 1, plan.calls, plan.peak_layer));
  e.add("of that", format("activations {}, gradients {}, workspace {}, staging {}, slots {}, weights {}",
                          plan.activations, plan.gradients, plan.workspace, plan.staging, plan.slots, plan.weights));
  if (largest > 0)
    e.add("try", format("batch {} fits", largest));
  else
    e.add("try", "not even one sample fits: a smaller model, or a machine with more memory");
  e.add("free", format("limited by the {}", free.limited_by));
  throw e;
}

}  // namespace train

Bytes MemoryPlan::account(std::string_view name) const {
  Bytes sum;
  for (const auto& [account, bytes] : accounts)
    if (account == name || (account.size() > name.size() && account.starts_with(name) && account[name.size()] == '/'))
      sum += bytes;
  return sum;
}

std::string MemoryPlan::table(bool by_layer) const {
  std::string out = optimizer.empty() ? format("Memory of predicting with \"{}\", batch {}\n", model, batch)
                                      : format("Memory of training \"{}\", batch {}, {}, {} thread{}\n", model, batch,
                                               optimizer, threads, threads == 1 ? "" : "s");
  const auto row = [&](std::string_view name, Bytes bytes, std::string_view text = "") {
    if (bytes.value > 0 || !text.empty())
      out += format("  {:<14}{:>10}{}{}\n", name, to_string(bytes), text.empty() ? "" : "   ", text);
  };
  row("weights", weights);
  row("slots", slots);
  row("metrics", metrics);
  row("activations", activations);
  row("gradients", gradients);
  row("workspace", workspace);
  row("staging", staging, staging.value ? "the batch itself" : "");
  row("constants", constants);
  row("padding", padding);
  row("total", total, format("arena {}, lower bound {}, gap {:.2f} %", arena, lower_bound, gap * 100));
  if (calls > 0)
    out += format("  the peak is call {} of {}: {} of {}\n", peak_call + 1, calls, peak_operator,
                  peak_layer.empty() ? "the step" : peak_layer);
  for (const Program& p : programs) {
    out += format("  program {:<10} batch {:<6} arena {:>10}   {} calls, planned in {:.1f} ms", p.name, p.batch,
                  p.arena, p.calls, p.seconds * 1e3);
    if (!p.samples.empty()) out += ", for samples of " + p.samples;
    if (p.slow_kernels) out += format(", {} slow kernel{}", p.slow_kernels, p.slow_kernels == 1 ? "" : "s");
    out += '\n';
  }
  if (memory_target.value > 0) {
    out += format("  memory target {}: ", memory_target);
    if (target_reached)
      out += arena == arena_kept ? "reached with everything kept\n" : "reached\n";
    else if (!search_exhausted)
      out += "not reached in the time that a search may take\n";
    else
      out += arena == arena_kept ? "out of reach, whatever is made again\n" : "out of reach, this is the least\n";
    if (arena != arena_kept)
      out += format(
          "  {} call{} once more, so that the arena is {} and not {}: {:.1f} % more arithmetic, {:.1f} % more bytes "
          "moved\n",
          recomputed.size(), recomputed.size() == 1 ? " runs" : "s run", arena, arena_kept, 100 * more_flops,
          100 * more_moved);
    std::vector<const Recomputed*> most;
    for (const Recomputed& r : recomputed) most.push_back(&r);
    constexpr size_t kShown = 6;
    if (!by_layer && most.size() > kShown + 1) {
      std::ranges::stable_sort(most, std::greater<>(), [](const Recomputed* r) { return r->bytes; });
      most.resize(kShown);
    }
    for (const Recomputed* r : most)
      out += format("    {:>10}   {} of {}\n", r->bytes, r->op, r->layer.empty() ? "the step" : r->layer);
    if (most.size() < recomputed.size()) out += format("    and {} more\n", recomputed.size() - most.size());
  }
  if (largest_batch > 0)
    out += format("  the largest batch that fits in the {} free now is {}{}\n", memory_free, largest_batch,
                  largest_batch >= int64_t{1} << 20 ? " or more" : "");
  if (largest_batch == 0) out += format("  not even one sample fits in the {} free now\n", memory_free);
  if (by_layer) {
    size_t wide = 5;
    for (const Layer& l : layers) wide = std::max(wide, l.name.size());
    out += format("  {:<{}}  {:>10}  {:>10}  {:>11}  {:>10}  {:>10}  {:>10}\n", "layer", wide, "weights", "slots",
                  "activations", "gradients", "workspace", "at most");
    for (const Layer& l : layers)
      out += format("  {:<{}}  {:>10}  {:>10}  {:>11}  {:>10}  {:>10}  {:>10}\n", l.name, wide, l.weights, l.slots,
                    l.activations, l.gradients, l.workspace, l.most);
  }
  return out;
}

namespace train {
namespace {

// The compiled model with what PlanOptions changes about it; slots of another optimizer are made and dropped with it.
std::optional<Compiled> compiled_for(const ModelImpl& m, const PlanOptions& o) {
  if (o.optimizer == "none") return {};
  if (!m.compiled && o.loss.empty() && o.optimizer.empty()) return {};
  const size_t outputs = m.built().outputs.size();
  Compiled c = m.compiled ? *m.compiled
                          : Compiled{Optimizer("adam"), std::vector<Loss>(outputs, Loss("mse")),
                                     std::vector<std::vector<Metric>>(outputs), std::vector<double>(outputs, 1)};
  if (o.memory_target.value > 0) c.memory_target = o.memory_target;
  if (!o.loss.empty()) std::ranges::fill(c.losses, Loss(o.loss));
  if (!o.optimizer.empty()) c.optimizer = Optimizer(o.optimizer);
  return c;
}

runtime::Options options_for(const PlanOptions& o) {
  runtime::Options r;
  r.threads = threads_or_all(o.threads);
  if (o.backend == "null")
    r.backend = &backend::null_backend();
  else if (o.backend == "reference")
    r.backend = &backend::reference_backend();
  else if (o.backend != "cpu")
    throw Error(Code::kUsage, format("backend \"{}\" is not known", o.backend)).hint("known are cpu, reference, null");
  if (!o.passes) r.passes = passes::Options::none();
  return r;
}

}  // namespace

MemoryPlan plan_of_programs(const ModelImpl& model) {
  MemoryPlan plan;
  plan.model = model.name;
  plan.optimizer = model.compiled ? model.compiled->optimizer.name() : "";
  plan.memory_target = model.compiled ? model.compiled->memory_target : Bytes{};
  add_variables(plan, model.built(), model.compiled ? model.compiled->optimizer.impl().get() : nullptr, &model.counter,
                model.uses.workspaces().front()->counts().all());
  for (const Programs* programs : model.uses.workspaces())
    for (const Ready* r : programs->all())
      add_program(plan, r->program.lowered(), r->key.kind, r->key.batch, told_samples(model.built(), r->key.samples));
  finish(plan);
  return plan;
}

}  // namespace train

MemoryPlan Model::plan(const PlanOptions& o) const {
  using train::Kind;
  if (o.batch <= 0) throw Error(Code::kUsage, format("plan: batch is {}, but must be at least 1", o.batch));
  const nn::Network& net = impl_->built();
  const std::optional<train::Compiled> c = train::compiled_for(*impl_, o);
  const runtime::Options options = train::options_for(o);
  runtime::Variable counter(impl_->counter.account(), impl_->counter.type());
  train::MetricCounts counts;
  const train::SampleShapes samples = train::samples_to_plan(net, c ? &*c : nullptr, o.inputs);

  MemoryPlan plan;
  plan.model = impl_->name;
  plan.optimizer = c ? c->optimizer.name() : "";
  plan.batch = o.batch;
  plan.threads = options.threads;
  plan.memory_target = c ? c->memory_target : Bytes{};
  const auto add = [&](Kind kind) {
    train::Traced traced =
        train::trace(net, c ? &*c : nullptr, kind, o.batch, samples, &counter, counts, options.offered_passes());
    runtime::Options aimed = options;
    aimed.memory_target = traced.memory_target;
    const runtime::Lowered program = runtime::lower(std::move(traced.graph), aimed);
    if (plan.programs.empty())
      train::add_variables(plan, net, kind == Kind::kTrain ? c->optimizer.impl().get() : nullptr,
                           kind == Kind::kTrain ? &counter : nullptr, counts.all());
    train::add_program(plan, program, kind, o.batch, train::told_samples(net, samples));
  };
  if (c) add(Kind::kTrain);
  if (c && o.evaluate) add(Kind::kEvaluate);
  if (!c || o.evaluate) add(Kind::kPredict);
  train::finish(plan);
  plan.memory_free = options.chosen_backend().memory_free().bytes;
  if (o.largest_batch) {
    std::vector<const runtime::Variable*> unplaced;
    const auto weights = impl_->weights();
    for (const nn::Weight& w : weights) unplaced.push_back(&w->variable);
    if (c)
      for (const runtime::Variable* v : c->optimizer.impl()->variables()) unplaced.push_back(v);
    const Bytes room = plan.memory_free - runtime::bytes_to_place(unplaced) + impl_->uses.arena_bytes();
    plan.largest_batch =
        room.value <= 0
            ? 0
            : train::largest_batch(net, c ? &*c : nullptr, c ? Kind::kTrain : Kind::kPredict, options, samples, room);
  }
  return plan;
}

std::string Model::print_passes(const PlanOptions& o) const {
  const nn::Network& net = impl_->built();
  const std::optional<train::Compiled> c = train::compiled_for(*impl_, o);
  runtime::Options options = train::options_for(o);
  options.passes.record = true;
  runtime::Variable counter(impl_->counter.account(), impl_->counter.type());
  train::MetricCounts counts;
  const train::SampleShapes samples = train::samples_to_plan(net, c ? &*c : nullptr, o.inputs);
  const train::Kind kind = c ? train::Kind::kTrain : train::Kind::kPredict;
  train::Traced traced =
      train::trace(net, c ? &*c : nullptr, kind, o.batch, samples, &counter, counts, options.offered_passes());
  std::vector<passes::Record> records = std::move(traced.records);
  options.memory_target = traced.memory_target;
  const runtime::Lowered program = runtime::lower(std::move(traced.graph), options);
  records.insert(records.end(), program.records.begin(), program.records.end());
  std::string out;
  bool first = true;
  for (const passes::Record& r : records) {
    if (first) out += format("as written: {} nodes\n{}\n", r.nodes_before, r.before);
    first = false;
    if (r.before == r.after)
      out += format("after {}: the same\n", r.pass);
    else
      out += format("after {}: {} nodes, before {}\n{}\n", r.pass, r.nodes_after, r.nodes_before, r.after);
  }
  return out;
}

}  // namespace millpond
