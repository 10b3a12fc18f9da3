#include "verdict/devices.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace millpond::verdict {
namespace {

/// A pool is read right after the marks of the program's rounds; those of a clock are made elsewhere.
const Pool::Point* point_at(const Pool& pool, const Mark& mark, double next) {
  const auto after = std::ranges::lower_bound(pool.points, mark.t, {}, &Pool::Point::t);
  if (after != pool.points.end() && after->t < std::min(next, mark.t + kTable.beside)) return &*after;
  if (mark.kind == "timer" && after != pool.points.begin() && mark.t - std::prev(after)->t < kTable.beside)
    return &*std::prev(after);
  return nullptr;
}

/// What others have of the device, and this process outside of the pool: the context, kernels, other libraries.
double outside(const Evidence& e, const Pool& pool) {
  const auto gpu = std::ranges::find_if(e.gpus, [&](const Gpu& g) { return format("gpu:{}", g.device) == pool.space; });
  const std::optional<Bytes> reserved = pool.points.back().reserved;
  if (gpu == e.gpus.end() || gpu->points.empty() || !reserved) return 0;
  return std::max(0.0, double((gpu->points.back().used - *reserved).value));
}

}  // namespace

Evidence of_device(const Evidence& host, const Pool& pool) {
  Evidence e;
  e.command = host.command, e.space = pool.space, e.seconds = host.seconds, e.ended = host.ended,
  e.exit_code = host.exit_code, e.signal = host.signal;
  e.sites = host.sites, e.notes = host.notes, e.counters = host.counters, e.gpus = host.gpus,
  e.processes = host.processes, e.process = host.process;
  e.pools = {pool};
  for (size_t i = 0; i < host.marks.size(); ++i) {
    const Mark& from = host.marks[i];
    if (!from.period) continue;
    double next = INFINITY;
    for (size_t k = i + 1; k < host.marks.size() && next == INFINITY; ++k)
      if (host.marks[k].kind == from.kind && host.marks[k].name == from.name) next = host.marks[k].t;
    const Pool::Point* point = point_at(pool, from, next);
    if (!point) continue;
    Mark m;
    m.t = from.t, m.kind = from.kind, m.name = from.name, m.index = from.index, m.period = true, m.units = from.units;
    m.rss = m.heap_in_use = point->in_use;
    e.marks.push_back(std::move(m));
  }
  for (const Pool::Point& p : pool.points) {
    e.os.push_back({.t = p.t, .rss = p.in_use, .swap = {}, .tree_private_dirty = {}, .tree_pss = {}, .processes = 1});
    e.peak_rss = std::max({e.peak_rss, p.in_use, p.peak.value_or(Bytes{})});
  }
  e.baseline_rss = pool.points.front().in_use;
  e.sampled_peak = e.peak_rss;
  if (const std::optional<Bytes> limit = pool.points.back().limit)
    e.limits.push_back(
        {pool.space,
         to_bytes(std::max(
             0.0, double(limit->value) -
                      (pool.name == "torch" ? outside(host, pool) : 0)))});  // JAX tells what its pool may take at most
  return e;
}

void weigh_by_walk(Notes& notes) {
  std::erase_if(notes.containers, [&](Container& k) {
    if (!notes.walk) return true;
    const auto holder = std::ranges::find_if(notes.walk->holders, [&](const Holder& h) {
      const bool reached = !h.chain.empty() && step_of(k, h) > 0;
      return reached || (!h.puts.empty() && h.puts.front().place.line == k.place.line &&
                         h.puts.front().place.file == k.place.file);
    });
    if (holder == notes.walk->holders.end()) return true;
    k.bytes_per_period = notes.walk->gained_each_round(*holder);
    return false;
  });
  std::ranges::stable_sort(notes.containers, std::ranges::greater{},
                           [](const Container& k) { return std::pair(k.still, k.bytes_per_period); });
}

void add_devices(const Evidence& host, Verdict& v) {
  for (const Pool& pool : host.pools) {
    if (pool.points.empty()) continue;
    Verdict device = judge(of_device(host, pool));
    for (Finding& f : device.findings) f.space = pool.space, f.account = pool.name, f.process = host.process;
    const bool host_leaks = v.kind == Kind::kLeak, device_leaks = device.kind == Kind::kLeak;
    const auto size = [](const Verdict& of) { return of.findings.empty() ? Bytes{} : of.findings.front().total; };
    const bool first = device_leaks && host_leaks ? size(v) < size(device)
                                                  : severity(device.kind) > severity(v.kind) && !device.too_short;
    if (first) {
      v.kind = device.kind, v.would_settle = device.would_settle, v.sentence = device.sentence, v.too_short = false;
    }
    // What sets the verdict is first, and only that of its kind does.
    for (Finding& f : first ? v.findings : device.findings)
      if (!(host_leaks && device_leaks)) f.sets_verdict = false;
    const auto place = first ? v.findings.begin() : std::ranges::find_if(v.findings, [&](const Finding& f) {
      return device_leaks ? f.kind != Kind::kLeak : false;
    });
    v.findings.insert(place, std::make_move_iterator(device.findings.begin()),
                      std::make_move_iterator(device.findings.end()));
  }
}

}  // namespace millpond::verdict
