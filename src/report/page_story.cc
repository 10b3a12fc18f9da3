#include "report/page_story.h"

#include <map>

#include "report/moment.h"
#include "report/text.h"
#include "verdict/devices.h"
#include "verdict/notes.h"
#include "verdict/periods.h"
#include "verdict/sites.h"

namespace millpond::report {
namespace {

constexpr size_t kMostRounds = 600, kMostProbes = 200, kMostGutters = 2000, kMostPools = 32, kMostPoolPoints = 400;

PageJson periods_json(const verdict::Periods& p) {
  if (p.size() == 0) return nullptr;
  Column t, rss, live, index;
  PageJson x = PageJson::array();
  for (const size_t i : spread(p.size(), kMostRounds)) {
    const verdict::Mark& m = *p.marks[i];
    t.seconds(m.t);
    x.push_back(p.x[i]);
    rss.add(m.rss);
    index.add(m.index);
    live.add(verdict::live_of(m));
  }
  return {{"unit", to_string(p.unit)}, {"kind", cut(p.kind)}, {"warm", p.warm},
          {"seconds", p.seconds},      {"t", t.take()},       {"x", std::move(x)},
          {"index", index.take()},     {"rss", rss.take()},   {"live", live.take()}};
}

/// What 95 % lie within of all that was ever allocated at a site.
double total_error(const verdict::Site& site, double interval) {
  return sampling_error(site.total, site.total_blocks, interval);
}

}  // namespace

const verdict::Evidence* evidence_of(const RunContents& run, int64_t process) {
  if (process == 0 || process == run.evidence.process) return &run.evidence;
  const auto child = std::ranges::find(run.children, process, &verdict::Evidence::process);
  return child == run.children.end() ? nullptr : &*child;
}

int64_t temporary_of(const RunContents& run, const verdict::Site& site) {
  const auto at = run.details.find(site.row);
  return at == run.details.end() ? 0 : at->second.temporary.value;
}

PageJson page_accounts(const RunContents& run, const verdict::Evidence& e, const StoryLimits& limits) {
  const AccountLimits most{.moments = limits.moments, .accounts = 4000, .cells = limits.cells};
  const AccountTable table = &e == &run.evidence ? accounts_over_time(run, most) : accounts_over_time(e, most);
  Column t, rss;
  for (const double at : table.t) t.seconds(at);
  for (const std::optional<int64_t>& b : table.resident) rss.add(b);
  PageJson list = PageJson::array();
  for (const Account& a : table.accounts) {
    Column bytes;
    for (const int64_t b : a.bytes) bytes.add(b);
    list.push_back({{"name", cut(a.name)},
                    {"group", cut(group_of(a.name))},
                    {"kind", to_string(a.kind)},
                    {"bytes", bytes.take()}});
  }
  return {{"t", t.take()}, {"resident", rss.take()}, {"list", std::move(list)}};
}

PageJson page_marks(const verdict::Evidence& e, PageStrings& strings, const StoryLimits& limits) {
  Column t, kind, name, index, period, rss;
  for (const size_t i : spread(e.marks.size(), limits.marks)) {
    const verdict::Mark& m = e.marks[i];
    t.seconds(m.t);
    kind.add(strings(m.kind)), name.add(strings(m.name)), index.add(m.index), period.add(int64_t(m.period)),
        rss.add(m.rss);
  }
  return {{"t", t.take()},         {"kind", kind.take()},     {"name", name.take()},
          {"index", index.take()}, {"period", period.take()}, {"rss", rss.take()}};
}

PageJson page_periods(const verdict::Evidence& e) {
  return periods_json(verdict::find_periods(e, verdict::read_notes(e).lead));
}

PageJson page_probes(const verdict::Evidence& e) {
  PageJson list = PageJson::array();
  for (const size_t i : spread(e.probes.size(), kMostProbes)) {
    const verdict::Probe& p = e.probes[i];
    list.push_back({{"t", bounded(p.t * 1000)},
                    {"period", p.period},
                    {"rss", p.rss.value},
                    {"after_gc", p.after_gc.value},
                    {"after_trim", p.after_trim.value},
                    {"collected", p.collected}});
  }
  return list;
}

/// What was allocated under each of the user's lines, and what of it was alive at the last round (a program that ends
/// gives much back).
PageJson page_lines(const RunContents& run, const verdict::Evidence& e, PageStrings& strings) {
  const verdict::Mark* last = nullptr;
  for (const verdict::Mark& m : e.marks)
    if (m.period && !m.sites.empty()) last = &m;
  if (!last)
    if (const std::optional<Moment> end = end_moment(e)) last = end->mark;
  if (!last) return nullptr;
  std::map<std::pair<std::string, int>, int64_t> temporary;
  std::map<std::pair<std::string, int>, double> variance;  // of what was allocated
  for (const verdict::Site& site : e.sites)
    if (const verdict::Frame* f = own_frame(site)) {
      temporary[{f->file, f->line}] += temporary_of(run, site);
      const double error = total_error(site, e.sampling_interval);
      variance[{f->file, f->line}] += error * error;
    }
  std::vector<PlaceBytes> rows = places_at(e, *last).rows;
  std::erase_if(rows,
                [](const PlaceBytes& row) { return !row.user || (row.allocated.value == 0 && row.bytes.value == 0); });
  if (rows.size() > kMostGutters) rows.resize(kMostGutters);
  if (rows.empty()) return nullptr;
  Column file, line, allocated, freed, kept, soon, kept_error, allocated_error;
  for (const PlaceBytes& row : rows) {
    const std::pair<std::string, int> key{row.place.file, row.place.line};
    // Of a run that goes on the totals are not known yet: what is alive was allocated.
    const int64_t all = std::max(row.allocated.value, row.bytes.value);
    file.add(strings(row.place.file)), line.add(row.place.line), allocated.add(all), freed.add(all - row.bytes.value),
        kept.add(row.bytes.value);
    soon.add(std::min(temporary[key], all - row.bytes.value));
    kept_error.add(bounded(row.error)), allocated_error.add(bounded(std::max(row.error, std::sqrt(variance[key]))));
  }
  return {{"file", file.take()},
          {"line", line.take()},
          {"allocated", allocated.take()},
          {"freed", freed.take()},
          {"kept", kept.take()},
          {"temporary", soon.take()},
          {"kept_error", kept_error.take()},
          {"allocated_error", allocated_error.take()},
          {"t", bounded(last->t * 1000)}};
}

PageJson page_sizes(const RunContents& run, std::optional<int64_t> process) {
  struct Sum {
    double blocks = 0;
    int64_t bytes = 0, freed = 0, temporary = 0;
  };
  std::map<int64_t, Sum> sums;
  for (const runfile::SizeRow& row : run.sizes) {
    if (process && row.process.value != *process) continue;
    Sum& sum = sums[row.from.value];
    sum.blocks += row.blocks, sum.bytes += row.bytes.value, sum.freed += row.freed.value,
        sum.temporary += row.temporary.value;
  }
  if (sums.empty() || sums.size() > 64) return nullptr;
  PageJson from = PageJson::array(), blocks = PageJson::array(), bytes = PageJson::array(), freed = PageJson::array(),
           temporary = PageJson::array(), errors = PageJson::array();
  const auto add = [&](int64_t at, const Sum& sum) {
    from.push_back(at), blocks.push_back(bounded(std::max(0.0, sum.blocks))), bytes.push_back(sum.bytes),
        freed.push_back(sum.freed), temporary.push_back(sum.temporary);
    errors.push_back(bounded(sampling_error(Bytes{sum.bytes}, sum.blocks, run.evidence.sampling_interval)));
  };
  // Classes that met no block stand between the others, so that the histogram has no gap; they double from 32 bytes on.
  int64_t next = -1;
  for (const auto& [at, sum] : sums) {
    for (; next > 0 && next < at && next < int64_t{1} << 40; next *= 2) add(next, {});
    add(at, sum);
    next = at == 0 ? 32 : at * 2;
  }
  if (next > 0) add(next, {});
  return {{"from", std::move(from)},   {"blocks", std::move(blocks)},       {"bytes", std::move(bytes)},
          {"freed", std::move(freed)}, {"temporary", std::move(temporary)}, {"error", std::move(errors)}};
}

PageJson page_story(const RunContents& run, int64_t process, PageStrings& strings) {
  const verdict::Evidence* e = process == 0 || process == run.evidence.process ? nullptr : evidence_of(run, process);
  if (!e) return nullptr;
  constexpr StoryLimits kOfChild{.marks = 1000, .moments = 300, .cells = 20'000};
  // The kernel's own count that the file has is of the main process.
  return {{"peak", e->sampled_peak.value},
          {"accounts", page_accounts(run, *e, kOfChild)},
          {"marks", page_marks(*e, strings, kOfChild)},
          {"periods", page_periods(*e)},
          {"probes", page_probes(*e)},
          {"lines", page_lines(run, *e, strings)}};
}

PageJson page_pools(const RunContents& run) {
  PageJson list = PageJson::array();
  const auto add = [&](const verdict::Evidence& e) {
    const std::string lead = verdict::read_notes(e).lead;
    for (const verdict::Pool& pool : e.pools) {
      if (pool.points.empty() || list.size() >= kMostPools) continue;
      Column t, in_use, reserved, peak;
      for (const size_t i :
           peaks_of(pool.points.size(), kMostPoolPoints, [&](size_t k) { return pool.points[k].in_use.value; })) {
        const verdict::Pool::Point& p = pool.points[i];
        t.seconds(p.t), in_use.add(p.in_use.value), reserved.add(p.reserved), peak.add(p.peak);
      }
      const verdict::Evidence device = verdict::of_device(e, pool);
      const auto of = std::ranges::find(run.evidence.processes, e.process, &verdict::SeenProcess::row);
      const bool known = e.process != 0 && of != run.evidence.processes.end();
      list.push_back({{"process", e.process ? PageJson(e.process) : PageJson()},
                      {"name", known ? cut(of->name, 200) : ""},
                      {"pid", known ? PageJson(of->pid) : PageJson()},
                      {"space", cut(pool.space, 40)},
                      {"pool", cut(pool.name, 40)},
                      {"peak", device.peak_rss.value},
                      {"retries", pool.points.back().retries},
                      {"t", t.take()},
                      {"in_use", in_use.take()},
                      {"reserved", reserved.take()},
                      {"in_use_peak", peak.take()},
                      {"periods", periods_json(verdict::find_periods(device, lead))}});
    }
  };
  add(run.evidence);
  for (const verdict::Evidence& child : run.children) add(child);
  return list;
}

}  // namespace millpond::report
