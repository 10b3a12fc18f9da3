#include "passes/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/assert.h"
#include "graph/builder.h"

namespace millpond::passes {

using graph::Node;
using graph::Role;

namespace {

constexpr int64_t kAlignment = 64;
int64_t whole(int64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

double bytes_moved(const Node& n) {
  double bytes = 0;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (std::find(n.inputs.begin(), n.inputs.begin() + ptrdiff_t(i), n.inputs[i]) == n.inputs.begin() + ptrdiff_t(i))
      bytes += double(n.inputs[i].type().bytes().value);
  for (const graph::TensorType& t : n.types) bytes += double(t.bytes().value);
  return bytes;
}

double flops_of(const Node& n) {
  std::vector<graph::TensorType> inputs;
  for (graph::Value v : n.inputs) inputs.push_back(v.type());
  return n.op->flops(inputs, n.types);
}

}  // namespace

Schedule::Schedule(graph::Graph& graph, const ScheduleOptions& options) : in_place_(options.in_place) {
  std::unordered_map<graph::Value, int, graph::ValueHash> value_of;  // of what takes room in the arena
  std::unordered_set<graph::Value, graph::ValueHash> escapes, elsewhere;
  std::unordered_map<graph::Value, std::vector<int>, graph::ValueHash> overwriters;  // of variables
  std::unordered_map<graph::Value, graph::Value, graph::ValueHash> made_in;  // values, the variables they are in
  std::unordered_map<const Node*, int> call_of;
  for (const graph::Output& o : graph.outputs) {
    escapes.insert(graph::storage(o.value));
    if (options.caller_operands) elsewhere.insert(o.value);
  }
  for (const graph::Update& u : graph.updates)
    if (!graph::made_in_place(u.value, u.variable)) made_in[u.value] = u.variable, elsewhere.insert(u.value);

  for (const auto& n : graph.nodes()) {
    if (n->role == Role::kInput && !options.caller_operands) {
      const int id = new_value(n->output(), kNone, kNone);
      values_[size_t(id)].escapes = escapes.contains(n->output());
      value_of[n->output()] = id;
      inputs_.push_back(id);
    }
    if (n->role != Role::kOperator || n->op->memory().view) continue;
    const int id = int(calls_.size());
    Work w;
    const CallFacts facts = options.facts(*n);
    const graph::MemoryFacts memory = n->op->memory();
    w.node = n.get();
    w.over.resize(n->types.size());
    w.as_wide.resize(n->types.size());
    for (size_t o = 0; o < n->types.size(); ++o) {
      const auto as_wide = [&](int input) {
        return size_of(n->inputs[size_t(input)].dtype()) == size_of(n->types[o].dtype);
      };
      for (const graph::Overlap& p : facts.may_overwrite)
        if (p.output == int(o)) w.over[o].push_back(p.input);
      const auto others = std::stable_partition(w.over[o].begin(), w.over[o].end(), as_wide);
      w.as_wide[o] = int(others - w.over[o].begin());
    }
    w.in_place = memory.in_place;
    w.workspace = facts.workspace.value;
    w.flops = flops_of(*n);
    w.moved = bytes_moved(*n);
    w.repeatable = memory.in_place.empty() && std::isfinite(w.flops);
    if (!std::isfinite(w.flops)) w.flops = 0;
    Call c{.work = id};
    for (graph::Value v : n->inputs) {
      const graph::Value s = graph::storage(v);
      const auto found = value_of.find(s);
      c.reads.push_back(found == value_of.end() ? kNone : found->second);
      if (found != value_of.end()) ++values_[size_t(found->second)].readers;
      if (found == value_of.end() && s.node->role == Role::kOperator) w.makers.push_back(call_of.at(s.node));
    }
    for (size_t o = 0; o < n->types.size(); ++o) {
      const graph::Value v = n->output(int(o));
      const auto must =
          std::ranges::find_if(memory.in_place, [&](const graph::Overlap& p) { return p.output == int(o); });
      int made = kNone;
      if (must != memory.in_place.end()) {
        const int operand = c.reads[size_t(must->input)];
        if (operand != kNone) values_[size_t(operand)].fixed = true;
        made = operand == kNone ? kNone : new_value(v, id, kNone);
        if (made != kNone) values_[size_t(made)].fixed = true;
        overwriters[graph::storage(n->inputs[size_t(must->input)])].push_back(id);
      } else if (const auto in = made_in.find(v); in != made_in.end()) {
        overwriters[in->second].push_back(id);
      } else if (!elsewhere.contains(v)) {
        made = new_value(v, id, kNone);
      }
      if (made != kNone) value_of[v] = made, values_[size_t(made)].escapes = escapes.contains(v);
      c.makes.push_back(made);
    }
    call_of[n.get()] = id;
    order_.push_back(id);
    flops_ += w.flops;
    moved_ += w.moved;
    works_.push_back(std::move(w));
    calls_.push_back(std::move(c));
  }
  for (Work& w : works_)
    for (graph::Value v : w.node->inputs)
      if (const auto found = overwriters.find(graph::storage(v)); found != overwriters.end())
        w.overwriters.insert(w.overwriters.end(), found->second.begin(), found->second.end());
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].escapes) escaping_.push_back(int(i));
}

int Schedule::new_value(graph::Value of, int maker, int first) {
  const int id = int(values_.size());
  values_.push_back({.of = of, .size = of.type().bytes().value, .maker = maker, .first = first == kNone ? id : first});
  copies_.emplace_back();
  copies_[size_t(values_.back().first)].push_back(id);
  return id;
}

void Schedule::measure(Profile& p) const {
  const int count = int(order_.size()), end = std::max(0, count - 1);
  p.place.assign(calls_.size(), kNone);
  p.last.assign(values_.size(), kNone);
  p.buffer_of.assign(values_.size(), kNone);
  p.buffers.clear();
  for (int i = 0; i < count; ++i) {
    p.place[size_t(order_[size_t(i)])] = i;
    for (const int v : calls_[size_t(order_[size_t(i)])].reads)
      if (v != kNone) p.last[size_t(v)] = i;
  }
  for (const int v : escaping_) p.last[size_t(v)] = end;

  const auto new_buffer = [&](int64_t size, int first, int last, bool escapes) {
    p.buffers.push_back({size, first, std::max(first, last), escapes});
    return int(p.buffers.size()) - 1;
  };
  for (const int v : inputs_)
    p.buffer_of[size_t(v)] = new_buffer(values_[size_t(v)].size, 0, p.last[size_t(v)], values_[size_t(v)].escapes);
  for (int i = 0; i < count; ++i) {
    const Call& c = calls_[size_t(order_[size_t(i)])];
    const Work& w = works_[size_t(c.work)];
    const auto buffer_read = [&](int operand) {
      const int v = c.reads[size_t(operand)];
      return v == kNone ? kNone : p.buffer_of[size_t(v)];
    };
    const bool dying =
        in_place_ && std::ranges::any_of(c.reads, [&](int v) { return v != kNone && p.last[size_t(v)] == i; });
    for (size_t o = 0; o < c.makes.size(); ++o) {
      const int v = c.makes[o];
      if (v == kNone) continue;
      const int64_t size = values_[size_t(v)].size;
      const int last = std::max(i, p.last[size_t(v)]);
      int at = kNone;
      for (const graph::Overlap& must : w.in_place)
        if (must.output == int(o)) at = buffer_read(must.input);
      const std::vector<int>& over = w.over[o];
      for (int m = 0; dying && at == kNone && m < w.as_wide[o]; ++m) {
        const int q = buffer_read(over[size_t(m)]);
        if (q == kNone) continue;
        const Profile::Buffer& held = p.buffers[size_t(q)];
        if (held.last != i || held.size != size || held.escapes) continue;
        bool free = true;
        for (size_t k = 0; k < c.reads.size() && free; ++k)
          free = buffer_read(int(k)) != q || std::ranges::find(over, int(k)) != over.end();
        for (size_t k = 0; k < o && free; ++k) free = c.makes[k] == kNone || p.buffer_of[size_t(c.makes[k])] != q;
        if (free) at = q;
      }
      if (at == kNone) at = new_buffer(size, i, last, false);
      Profile::Buffer& b = p.buffers[size_t(at)];
      b.last = std::max(b.last, last);
      b.escapes |= values_[size_t(v)].escapes;
      p.buffer_of[size_t(v)] = at;
    }
    if (w.workspace > 0) new_buffer(w.workspace, i, i, false);
  }

  p.live.assign(size_t(count) + 1, 0);
  for (const Profile::Buffer& b : p.buffers) {
    const int64_t size = whole(b.size);
    p.live[size_t(b.first)] += size;
    p.live[size_t(b.escapes ? count : std::min(b.last + 1, count))] -= size;
  }
  p.live.resize(size_t(std::max(1, count)));
  p.peak = 0;
  int64_t now = 0;
  for (int64_t& live : p.live) p.peak = std::max(p.peak, live = now += live);
}

plan::Problem Schedule::problem(const Profile& p) {
  plan::Problem problem;
  problem.calls = int(p.live.size());
  for (const Profile::Buffer& b : p.buffers)
    problem.buffers.push_back(
        {.name = "", .size = Bytes{b.size}, .first = b.first, .last = b.last, .escapes = b.escapes});
  return problem;
}

// One value is made again: finds what has to run for it.
class Schedule::Again {
 public:
  Again(Schedule& s, const Profile& now, int value, int before, const Ways& ways)
      : s_(s), now_(now), value_(value), at_(now.place[size_t(before)]), ways_(ways) {}

  /// The new value, or kNone.
  int run() {
    const Value& v = s_.values_[size_t(value_)];
    return v.maker == kNone || v.fixed || v.escapes ? kNone : find(v.first, value_);
  }
  std::vector<int> added, moved;  // calls: those that run again, and those that run earlier now

 private:
  static constexpr size_t kMost = 64;  // calls for one value

  int known(int first) const {
    for (const auto& [f, v] : known_)
      if (f == first) return v;
    return kNone;
  }
  // Places are those of the profile; what is new has none, and lies right before at_.
  bool before(int call) const { return now_.place[size_t(call)] != kNone && now_.place[size_t(call)] < at_; }
  bool made_before(int v) const {
    const int maker = s_.values_[size_t(v)].maker;
    return maker == kNone || before(maker);
  }

  bool run_again(int call) {
    const Work& w = s_.work_of(call);
    if (!w.repeatable || added.size() >= kMost) return false;
    if (std::ranges::any_of(w.overwriters, [&](int c) { return before(c); })) return false;
    if (!std::ranges::all_of(w.makers, [&](int c) { return before(c); })) return false;
    Call again{.work = s_.calls_[size_t(call)].work, .again = true};
    for (size_t i = 0; i < w.node->inputs.size(); ++i) {
      const int read = s_.calls_[size_t(call)].reads[i];
      const int there = read == kNone ? kNone : need(s_.values_[size_t(read)].first, read);
      if (read != kNone && there == kNone) return false;
      again.reads.push_back(there);
    }
    const int id = int(s_.calls_.size());
    for (size_t o = 0; o < w.node->types.size(); ++o) {
      const int old = s_.calls_[size_t(call)].makes[o], first = old == kNone ? kNone : s_.values_[size_t(old)].first;
      const int made = s_.new_value(w.node->output(int(o)), id, first);
      again.makes.push_back(made);
      if (first != kNone && known(first) == kNone) known_.emplace_back(first, made);
    }
    for (const int v : again.reads)
      if (v != kNone) ++s_.values_[size_t(v)].readers;
    s_.flops_ += w.flops;
    s_.moved_ += w.moved;
    s_.calls_.push_back(std::move(again));
    added.push_back(id);
    return true;
  }

  // The value `first`, or one that repeats it, that can be read at this place; `read` is the one that was read so far.
  int need(int first, int read) {
    if (const int v = known(first); v != kNone) return v;
    const int found = find(first, read);
    if (found != kNone && known(first) == kNone) known_.emplace_back(first, found);
    return found;
  }
  int find(int first, int read) {
    int latest = kNone, later = kNone;
    for (const int v : s_.copies_[size_t(first)]) {
      if (v == value_) continue;
      const int maker = s_.values_[size_t(v)].maker;
      if (maker != kNone && (size_t(maker) >= now_.place.size() || now_.place[size_t(maker)] == kNone)) continue;
      if (made_before(v)) {
        if (now_.last[size_t(v)] >= at_) return v;
        if (latest == kNone || maker == kNone ||
            now_.place[size_t(maker)] > now_.place[size_t(s_.values_[size_t(latest)].maker)])
          latest = v;
      } else if (later == kNone || now_.place[size_t(maker)] < now_.place[size_t(s_.values_[size_t(later)].maker)]) {
        later = v;
      }
    }
    if (latest != kNone && s_.values_[size_t(latest)].fixed) return kNone;  // its bytes have another value now
    if (later != kNone && ways_.earlier) {
      const size_t count = moved.size();
      if (move(s_.values_[size_t(later)].maker)) {
        s_.used_.earlier = true;
        return later;
      }
      moved.resize(count);
    }
    s_.used_.others = true;
    const bool small =
        double(s_.values_[size_t(first)].size) <= ways_.live_on * double(s_.values_[size_t(value_)].size);
    if (latest != kNone && (small || s_.values_[size_t(latest)].maker == kNone)) return latest;
    if (const int maker = s_.values_[size_t(read)].maker; maker != kNone && run_again(maker)) return known(first);
    return latest;
  }

  bool move(int call) {
    if (std::ranges::find(moved, call) != moved.end()) return true;
    const Call& c = s_.calls_[size_t(call)];
    if (!c.again) return false;
    for (const int m : s_.work_of(call).makers)
      if (!before(m)) return false;
    for (const int v : c.reads) {
      if (v == kNone || made_before(v)) {
        if (v == value_) return false;  // it would be read where it is not there any more
        continue;
      }
      if (v == value_ || size_t(s_.values_[size_t(v)].maker) >= now_.place.size() || !move(s_.values_[size_t(v)].maker))
        return false;
    }
    moved.push_back(call);
    return true;
  }

  Schedule& s_;
  const Profile& now_;
  const int value_, at_;
  const Ways ways_;
  std::vector<std::pair<int, int>> known_;  // first value, and the one to read
};

bool Schedule::make_again(int value, int before, const Ways& ways, const Profile& now) {
  undo_ = {.calls = calls_.size(),
           .values = values_.size(),
           .order = order_,
           .patches = {},
           .gone = {},
           .flops = flops_,
           .moved = moved_};
  used_ = {};
  Again again(*this, now, value, before, ways);
  const int made = again.run();
  if (made == kNone) {
    take_back();
    return false;
  }
  for (size_t i = size_t(now.place[size_t(before)]); i < undo_.order.size(); ++i) {
    const int c = undo_.order[i];
    std::vector<int>& reads = calls_[size_t(c)].reads;
    for (size_t k = 0; k < reads.size(); ++k)
      if (reads[k] == value) {
        undo_.patches.push_back({c, int(k), value});
        reads[k] = made;
        --values_[size_t(value)].readers;
        ++values_[size_t(made)].readers;
      }
  }
  remove_unread(values_[size_t(value)].maker);

  std::ranges::sort(again.moved, {}, [&](int c) { return now.place[size_t(c)]; });
  std::vector<bool> out(calls_.size());
  for (const int c : again.moved) out[size_t(c)] = true;
  for (const int c : undo_.gone) out[size_t(c)] = true;
  order_.clear();
  for (const int c : undo_.order) {
    if (c == before) {
      for (const int m : again.moved)
        if (std::ranges::find(undo_.gone, m) == undo_.gone.end()) order_.push_back(m);
      order_.insert(order_.end(), again.added.begin(), again.added.end());
    }
    if (!out[size_t(c)]) order_.push_back(c);
  }
  return true;
}

// A call of whose values nobody reads any does not run, and then nobody reads its operands for it.
void Schedule::remove_unread(int call) {
  std::vector<int> todo{call};
  while (!todo.empty()) {
    const int c = todo.back();
    todo.pop_back();
    if (c == kNone || std::ranges::find(undo_.gone, c) != undo_.gone.end()) continue;
    const Call& gone = calls_[size_t(c)];
    if (!work_of(c).repeatable || std::ranges::any_of(gone.makes, [&](int v) {
          return v == kNone || values_[size_t(v)].readers > 0 || values_[size_t(v)].escapes;
        }))
      continue;
    undo_.gone.push_back(c);
    flops_ -= work_of(c).flops;
    moved_ -= work_of(c).moved;
    for (const int v : gone.reads)
      if (v != kNone) --values_[size_t(v)].readers, todo.push_back(values_[size_t(v)].maker);
  }
}

void Schedule::undo() {
  for (const int c : undo_.gone)
    for (const int v : calls_[size_t(c)].reads)
      if (v != kNone) ++values_[size_t(v)].readers;
  for (auto p = undo_.patches.rbegin(); p != undo_.patches.rend(); ++p) {
    int& read = calls_[size_t(p->call)].reads[size_t(p->operand)];
    --values_[size_t(read)].readers;
    ++values_[size_t(p->old)].readers;
    read = p->old;
  }
  take_back();
}

void Schedule::take_back() {
  while (calls_.size() > undo_.calls) {
    for (const int v : calls_.back().reads)
      if (v != kNone) --values_[size_t(v)].readers;
    calls_.pop_back();
  }
  while (values_.size() > undo_.values) {
    copies_[size_t(values_.back().first)].pop_back();
    values_.pop_back();
    copies_.pop_back();
  }
  order_ = std::move(undo_.order);
  flops_ = undo_.flops;
  moved_ = undo_.moved;
}

void Schedule::write(graph::Graph& graph) const {
  graph::Builder b(graph);
  std::vector<graph::Value> at(values_.size());
  for (size_t v = 0; v < values_.size(); ++v)
    if (values_[v].maker == kNone || !calls_[size_t(values_[v].maker)].again) at[v] = values_[v].of;
  struct View {
    graph::Value view, base, made;
  };
  std::vector<View> views;
  // What `like` is of its storage, of another value.
  const std::function<graph::Value(graph::Value, graph::Value)> view_of = [&](graph::Value like, graph::Value base) {
    if (graph::storage(like) == like) return base;
    for (const View& v : views)
      if (v.view == like && v.base == base) return v.made;
    const graph::Builder::Scope scope(b, *like.node);
    std::vector<graph::Value> inputs = like.node->inputs;
    inputs[0] = view_of(inputs[0], base);
    const graph::Value made = b.add(like.node->op, std::move(inputs));
    made.node->rank = base.node->rank;
    views.push_back({like, base, made});
    return made;
  };
  const auto operand = [&](const Node& n, size_t i, int value) {
    const graph::Value v = n.inputs[i];
    if (value == kNone || at[size_t(value)] == graph::storage(v)) return v;
    return view_of(v, at[size_t(value)]);
  };

  for (const auto& n : graph.nodes())
    if (n->role != Role::kOperator) n->rank = 0;
  std::vector<std::pair<Node*, std::vector<graph::Value>>> changed;
  for (size_t place = 0; place < order_.size(); ++place) {
    const Call& c = calls_[size_t(order_[place])];
    Node& n = *works_[size_t(c.work)].node;
    std::vector<graph::Value> inputs;
    for (size_t i = 0; i < n.inputs.size(); ++i) inputs.push_back(operand(n, i, c.reads[i]));
    if (!c.again) {
      n.rank = int(place) + 1;
      changed.emplace_back(&n, std::move(inputs));  // later: calls that run again look at it as it was
      continue;
    }
    const graph::Builder::Scope scope(b, n);
    const std::vector<graph::Value> made = b.add_all(n.op, std::move(inputs));
    MP_ASSERT(made[0].node->types == n.types);
    made[0].node->rank = int(place) + 1;
    for (size_t o = 0; o < made.size(); ++o) at[size_t(c.makes[o])] = made[o];
  }
  for (auto& [node, inputs] : changed) node->inputs = std::move(inputs);
  for (const auto& n : graph.nodes())  // a view comes right behind what it looks at
    if (n->role == Role::kOperator && n->op->memory().view) n->rank = graph::storage(n->output()).node->rank;
  graph.sort();
}

}  // namespace millpond::passes
