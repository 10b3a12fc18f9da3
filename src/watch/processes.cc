#include "watch/processes.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace millpond::watch {
namespace {

using runfile::ProcessPointRow;
using runfile::RowId;
using runfile::Seen;

constexpr size_t kMostRows = 2048, kMostSeries = 64, kMostCounted = 100'000;
constexpr int64_t kMostPoints = 16000;

}  // namespace

std::string clean(std::string_view s) {
  std::string out;
  while (!s.empty()) {
    const Utf8Character c = first_character(s);
    if (c.good && (c.value >= 0x20 || c.value == '\t' || c.value == '\n'))
      out.append(s.substr(0, c.size));
    else
      out += '?';
    s.remove_prefix(c.size);
  }
  return out;
}

Processes::One* Processes::find(Pid pid) {
  const auto at = now_.find(pid.value);
  return at == now_.end() ? nullptr : at->second;
}

RowId Processes::row_of(Pid pid) const {
  const auto at = now_.find(pid.value);
  return at == now_.end() ? RowId{} : at->second->row.id;
}

Processes::One& Processes::add(Pid pid, Pid parent, uint64_t born, std::string name, double t, Seen seen) {
  One& one = all_.emplace_back();
  one.row.pid = pid.value, one.row.parent = parent.value, one.row.start = t, one.row.seen = seen;
  one.row.name = clean(name);
  if (arguments_) one.row.command = clean(command_line(pid));
  one.born = born;
  one.row.id = writer_.add(one.row);
  now_[pid.value] = &one;
  return one;
}

void Processes::root(Pid pid, double t) {
  const std::optional<TreeProcess> facts = process_facts(pid);
  if (facts) add(pid, facts->parent, facts->born, facts->name, t, Seen::kOutside).series = true;
}

RowId Processes::inside(Pid pid, Pid parent, double since, bool forked, Bytes inherited) {
  const bool first = all_.size() <= 1;
  const auto known = [&](One& o) {
    o.details.process = o.row.id;
    o.details.how = forked ? runfile::How::kFork : first ? runfile::How::kUnknown : runfile::How::kExec;
    if (forked) o.details.inherited = inherited;
    if (o.details.how != runfile::How::kUnknown) writer_.put(o.details);
    return o.row.id;
  };
  One* one = find(pid);
  const std::optional<TreeProcess> facts = process_facts(pid);
  const bool same = one && (!facts || one->born == facts->born);
  if (same && one->row.seen != Seen::kInside) {
    one->row.seen = Seen::kInside;
    one->row.start = std::min(one->row.start, since);
    writer_.put(one->row);
    return known(*one);
  }
  if (one) end(*one, since);
  One& fresh = add(pid, parent, facts ? facts->born : 0, facts ? facts->name : std::string(), since, Seen::kInside);
  if (same) fresh.series = std::exchange(one->series, false);
  return known(fresh);
}

Processes::One* Processes::of(RowId process) {
  for (auto& [pid, one] : now_)
    if (one->row.id == process) return one;
  return nullptr;
}

void Processes::told(RowId process, runfile::How how, const std::string& label) {
  const auto one = std::ranges::find(all_, process, [](const One& o) { return o.row.id; });
  if (one == all_.end()) return;
  one->details.process = process;
  if (how != runfile::How::kUnknown && one->details.how != runfile::How::kFork) one->details.how = how;
  if (!label.empty()) one->details.label = clean(label);
  writer_.put(one->details);
}

bool Processes::has_series(Pid pid) const {
  const auto at = now_.find(pid.value);
  return at != now_.end() && at->second->series;
}

void Processes::end(One& one, double t) {
  one.gone = true;
  one.series = false;
  if (const auto at = now_.find(int(one.row.pid)); at != now_.end() && at->second == &one) now_.erase(at);
  if (one.row.end) return;
  one.row.end = std::max(t, one.row.start);
  writer_.put(one.row);
}

void Processes::ended(RowId process, double t) {
  for (One& one : all_)
    if (one.row.id == process && !one.row.end) {
      one.row.end = std::max(t, one.row.start);
      writer_.put(one.row);
    }
}

void Processes::in_use(RowId process, Bytes bytes) {
  if (One* one = of(process)) one->in_use = bytes;
}
void Processes::alive(RowId process, Bytes bytes) {
  if (One* one = of(process)) one->alive = bytes;
}

void Processes::memory(double t, const TreeMemory& memory) {
  if (memory_looks_++ % memory_stride_ != 0 && !memory.private_dirty) return;
  for (const ProcessMemory& m : memory.each)
    if (One* one = find(m.pid); one && one->series) {
      writer_.add(runfile::ProcessMemoryRow{t, one->row.id, m.resident, m.private_dirty, m.pss, m.anonymous,
                                            std::exchange(one->alive, std::nullopt)});
      ++memory_points_;
    }
  if (memory_points_ > kMostPoints) memory_points_ = writer_.thin_process_memory(), memory_stride_ *= 2;
}

void Processes::point(const ProcessPointRow& row) {
  writer_.add(row);
  ++points_;
}

void Processes::look(double t, const std::vector<TreeProcess>& tree, const TreeMemory& memory,
                     const std::vector<Gpu>& gpus) {
  // A process that is in the tree no more has ended, or has left its parents (a daemon).
  std::vector<One*> missing;
  for (auto& [pid, one] : now_)
    if (std::ranges::find(tree, pid, [](const TreeProcess& p) { return p.pid.value; }) == tree.end())
      missing.push_back(one);
  for (One* one : missing) {
    const std::optional<TreeProcess> facts = process_facts({int(one->row.pid)});
    if (!facts || facts->born != one->born || facts->zombie) end(*one, t);
  }
  size_t with_series = size_t(std::ranges::count_if(now_, [](const auto& p) { return p.second->series; }));
  for (const TreeProcess& p : tree) {
    One* one = find(p.pid);
    if (one && one->born != p.born) end(*one, t), one = nullptr;
    if (!one && p.zombie) continue;
    if (!one && all_.size() >= kMostRows) {
      if (left_out_.size() < kMostCounted) left_out_.emplace(p.pid.value, p.born);
      continue;
    }
    if (!one) one = &add(p.pid, p.parent, p.born, p.name, t, Seen::kNot);
    if (!one->series && with_series < kMostSeries) {
      one->series = true, ++with_series;
      if (one->row.seen == Seen::kNot) one->row.seen = Seen::kOutside, writer_.put(one->row);
    }
  }
  this->memory(t, memory);
  if (looks_++ % stride_ != 0) return;
  Bytes other_host, other_shared;
  bool others = false;
  for (const ProcessMemory& m : memory.each) {
    One* one = find(m.pid);
    const Bytes host{std::max<int64_t>(0, m.resident.value - m.shared.value)};
    if (!one || !one->series) {
      others = true, other_host += host, other_shared += m.shared;
      continue;
    }
    point({t, one->row.id, runfile::kHost, host, m.private_dirty, std::exchange(one->in_use, std::nullopt)});
    one->has_shared = one->has_shared || m.shared.value > 0;
    if (one->has_shared) point({t, one->row.id, runfile::kShared, m.shared, {}, {}});
  }
  if (others) {
    point({t, {}, runfile::kHost, other_host, {}, {}});
    other_shared_ = other_shared_ || other_shared.value > 0;
    if (other_shared_) point({t, {}, runfile::kShared, other_shared, {}, {}});
  }
  for (size_t i = 0; i < gpus.size(); ++i)
    for (const auto& [pid, used] : gpus[i].by_process)
      if (const One* one = find(pid); one && one->series)
        point({t, one->row.id, runfile::gpu_space(int64_t(i)), used, {}, {}});
  if (points_ > kMostPoints) points_ = writer_.thin_process_series(), stride_ *= 2;
}

void Processes::finish(double t, bool over) {
  if (!over) return;
  while (!now_.empty()) end(*now_.begin()->second, t);
}

}  // namespace millpond::watch
