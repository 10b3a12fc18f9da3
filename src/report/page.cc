#include "report/page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/format.h"
#include "report/accounts.h"
#include "report/compare.h"
#include "report/doctor.h"
#include "report/moment.h"
#include "report/page_story.h"
#include "report/text.h"
#include "verdict/sentence.h"
#include "verdict/sites.h"

namespace millpond::report {
namespace {

using Json = PageJson;
using Optional = std::optional<int64_t>;

constexpr size_t kMostPoints = 6000, kMostMarks = 4000, kMostSnapshots = 160, kMostSites = 1500, kMostPrograms = 12,
                 kMostBuffers = 8000;
constexpr size_t kMostProcesses = 64, kMostThreads = 500, kMostSourceLines = 2000, kMostSources = 400;
constexpr size_t kMostCounters = 40, kMostCounterPoints = 200, kMostFindings = 40, kMostPlaces = 200;
constexpr int kSourceAround = 4;

Json resident(const RunContents& run) {
  Column t, rss, swap;
  std::vector<const runfile::OsRow*> rows;
  for (const runfile::OsRow& r : run.os)
    if (r.rss && r.rss->value > 0) rows.push_back(&r);
  for (const size_t i : peaks_of(rows.size(), kMostPoints, [&](size_t k) { return rows[k]->rss->value; })) {
    t.seconds(rows[i]->t);
    rss.add(rows[i]->rss);
    swap.add(rows[i]->swap);
  }
  return {{"t", t.take()}, {"rss", rss.take()}, {"swap", swap.take()}};
}

Json tree(const RunContents& run) {
  if (run.tree.empty()) return nullptr;
  Column t, processes, rss, dirty, pss;
  for (const size_t i : spread(run.tree.size(), kMostMarks)) {
    const runfile::TreeRow& r = run.tree[i];
    t.seconds(r.t);
    processes.add(r.processes);
    rss.add(r.rss), dirty.add(r.private_dirty), pss.add(r.pss);
  }
  return {{"t", t.take()},
          {"processes", processes.take()},
          {"rss", rss.take()},
          {"private_dirty", dirty.take()},
          {"pss", pss.take()}};
}

/// Moments of a process, its spaces on this machine together: resident memory as the system tells it.
struct ProcessPoints {
  Column t, resident, private_bytes;
};
ProcessPoints points_of(const verdict::SeenProcess& p, size_t most) {
  std::map<int64_t, std::pair<Optional, Optional>> at;
  for (const char* space : {"host", "shared"}) {
    const auto found = p.spaces.find(space);
    if (found == p.spaces.end()) continue;
    for (const verdict::SeenProcess::Point& point : found->second) {
      auto& [resident, own] = at[std::llround(std::clamp(point.t, 0.0, 1e12) * 1000)];
      if (point.resident) resident = resident.value_or(0) + point.resident->value;
      if (point.private_dirty) own = own.value_or(0) + point.private_dirty->value;
    }
  }
  std::vector<std::pair<int64_t, std::pair<Optional, Optional>>> rows(at.begin(), at.end());
  ProcessPoints points;
  for (const size_t i : peaks_of(rows.size(), most, [&](size_t k) { return rows[k].second.first.value_or(0); }))
    points.t.add(rows[i].first), points.resident.add(rows[i].second.first),
        points.private_bytes.add(rows[i].second.second);
  return points;
}

Json gpus(const verdict::Evidence& e) {
  Json list = Json::array();
  for (const verdict::Gpu& gpu : e.gpus) {
    Column t, used, by_tree;
    for (const size_t i : spread(gpu.points.size(), kMostCounterPoints)) {
      t.seconds(gpu.points[i].t);
      used.add(gpu.points[i].used.value);
      by_tree.add(gpu.points[i].by_tree);
    }
    list.push_back({{"device", gpu.device},
                    {"name", cut(gpu.name, 200)},
                    {"total", gpu.total.value},
                    {"used_peak", gpu.used_peak.value},
                    {"by_program_peak", gpu.by_tree_peak ? Json(gpu.by_tree_peak->value) : Json()},
                    {"t", t.take()},
                    {"used", used.take()},
                    {"by_program", by_tree.take()}});
  }
  return list;
}

Json phases(const RunContents& run, PageStrings& strings) {
  Column kind, name, index, start, end;
  const auto add = [&](const runfile::Phase& p) {
    kind.add(strings(p.kind)), name.add(strings(p.name)), index.add(p.index);
    start.seconds(p.start);
    end.add(p.end ? Optional(std::llround(std::clamp(*p.end, 0.0, 1e12) * 1000)) : Optional());
  };
  std::vector<size_t> always;  // of thousands of epochs some may go, the fit around them must not
  for (size_t i = 0; i < run.phases.size() && always.size() < kMostMarks / 4; ++i)
    if (run.phases[i].kind != "epoch" && run.phases[i].kind != "step") always.push_back(i);
  for (const size_t i : spread(run.phases.size(), kMostMarks, always)) add(run.phases[i]);
  return {{"kind", kind.take()},
          {"name", name.take()},
          {"index", index.take()},
          {"start", start.take()},
          {"end", end.take()}};
}

/// What is left of every cohort in the process that a finding is of: of the blamed line where it allocates itself,
/// otherwise of everything.
Json cohorts(const RunContents& run, const verdict::Finding& f) {
  const verdict::Evidence* of = evidence_of(run, f.process);
  if (!of || f.space != runfile::kHost) return nullptr;  // of devices no ages are known
  const verdict::Evidence& e = *of;
  const verdict::Mark* last = nullptr;
  for (const verdict::Mark& m : e.marks)
    if (m.period && !m.sites.empty()) last = &m;
  if (!last) return nullptr;
  std::array<int64_t, 8> line{}, all{};
  int64_t held = 0;
  for (const verdict::SiteState& s : last->sites) {
    if (s.site < 0 || size_t(s.site) >= e.sites.size()) continue;
    const verdict::Site& site = e.sites[size_t(s.site)];
    const bool here = f.blame && std::ranges::any_of(site.frames, [&](const verdict::Frame& k) {
                        return k.line == f.blame->line && k.file == f.blame->file;
                      });
    for (size_t a = 0; a < 8; ++a) {
      all[a] += s.age[a].value;
      if (here) line[a] += s.age[a].value, held += s.age[a].value;
    }
  }
  const auto sum = [](const std::array<int64_t, 8>& list) {
    int64_t n = 0;
    for (const int64_t b : list) n += b;
    return n;
  };
  if (sum(all) == 0) return nullptr;
  const bool own = held * 10 > sum(all) || held > 5'000'000;
  return {{"bytes", own ? line : all}, {"of", own ? "line" : "all"}};
}

std::string stripped(const std::string& text) {
  const size_t from = text.find_first_not_of(" \t\r"), to = text.find_last_not_of(" \t\r");
  return from == text.npos ? "" : text.substr(from, to - from + 1);
}

Json place(const std::optional<verdict::Place>& p, const SourceLine& source) {
  if (!p) return nullptr;
  Json j = {{"file", cut(p->file)},
            {"line", p->line},
            {"function", cut(p->function)},
            {"snippet", cut(p->snippet)},
            {"source", nullptr}};
  if (!source || p->line < 1) return j;
  const std::string here = source(p->file, p->line);
  if (here.empty()) return j;
  // What the agent read and what the collector read are of two moments: a file that was edited between them explains
  // nothing.
  const bool same = p->snippet.empty() || stripped(here).starts_with(stripped(p->snippet).substr(0, 200)) ||
                    stripped(p->snippet).starts_with(stripped(here));
  if (!same) {
    j["source"] = {{"changed", true}};
    return j;
  }
  Json lines = Json::array();
  int from = std::max(1, p->line - kSourceAround);
  while (from < p->line && source(p->file, from).empty())
    ++from;  // before the first line of the function that is stored
  for (int n = from; n <= p->line + kSourceAround; ++n) lines.push_back(cut(source(p->file, n), 400));
  while (lines.size() > size_t(p->line - from + 1) && lines.back().get_ref<const std::string&>().empty())
    lines.erase(lines.size() - 1);
  j["source"] = {{"changed", false}, {"from", from}, {"lines", std::move(lines)}};
  return j;
}

Json findings(const RunContents& run, const SourceLine& source) {
  Json list = Json::array();
  for (const verdict::Finding& f : run.verdict.findings) {
    if (list.size() >= kMostFindings) break;
    Json chain = Json::array();
    for (const std::string& step : f.chain) chain.push_back(cut(step, 400));
    Json evidence = Json::array(), forecast;
    for (const std::string& sentence : f.evidence) evidence.push_back(cut(sentence));
    if (f.forecast)
      forecast = {{"limit", f.forecast->limit},
                  {"bytes", f.forecast->bytes.value},
                  {"seconds", f.forecast->seconds},
                  {"seconds_range", {f.forecast->seconds_range.low, f.forecast->seconds_range.high}},
                  {"round", verdict::forecast_round(*f.forecast)},
                  {"words", verdict::forecast_words(f)},
                  {"unit_index", f.forecast->unit_index ? Json(*f.forecast->unit_index) : Json()}};
    list.push_back({{"kind", to_string(f.kind)},
                    {"cause", f.cause},
                    {"title", cut(f.title)},
                    {"unit", to_string(f.unit)},
                    {"each", verdict::each(f)},
                    {"seen_over", verdict::seen_over(f)},
                    {"rate", f.bytes_per_unit},
                    {"rate_range", {f.bytes_per_unit_range.low, f.bytes_per_unit_range.high}},
                    {"units_seen", f.units_seen},
                    {"total", f.total.value},
                    {"blame", place(f.blame, source)},
                    {"holder", cut(f.holder)},
                    {"chain", std::move(chain)},
                    {"evidence", std::move(evidence)},
                    {"fix", cut(f.fix)},
                    {"threads", f.threads},
                    {"forecast", std::move(forecast)},
                    {"sets_verdict", f.sets_verdict},
                    {"process", f.process ? Json(f.process) : Json()},
                    {"processes", f.processes},
                    {"space", cut(f.space, 40)},
                    {"cohorts", cohorts(run, f)}});
  }
  return list;
}

/// Threads by what they are: a number of its own tells nothing, and Python's names of threads do not reach the system.
class ThreadNames {
 public:
  explicit ThreadNames(const RunContents& run) : run_(run) {
    std::map<int64_t, int64_t> pids;
    for (const verdict::SeenProcess& p : run.evidence.processes) pids[p.row] = p.pid;
    std::map<int64_t, std::pair<int64_t, std::string>>
        busiest;  // by thread: bytes, and the user's function that its stacks begin with
    const auto look = [&](const verdict::Evidence& e) {
      for (const verdict::Site& site : e.sites) {
        const auto detail = run.details.find(site.row);
        if (detail == run.details.end() || detail->second.thread == runfile::RowId{}) continue;
        const auto outer =
            std::find_if(site.frames.rbegin(), site.frames.rend(), [](const verdict::Frame& f) { return f.user; });
        auto& [bytes, name] = busiest[detail->second.thread.value];
        if (outer != site.frames.rend() && site.total.value > bytes) bytes = site.total.value, name = outer->function;
      }
    };
    look(run.evidence);
    for (const verdict::Evidence& e : run.children) look(e);
    std::map<int64_t, int> number;  // by process
    for (const runfile::ThreadRow& t : run.threads) {
      if (list_.size() >= kMostThreads) break;
      place_[t.id.value] = int64_t(list_.size());
      const bool main = pids.contains(t.process.value) && pids[t.process.value] == t.tid;
      const int n = ++number[t.process.value];
      const std::string& function = busiest[t.id.value].second;
      list_.push_back(main ? "main thread"
                           : cut(format("{}, thread {}",
                                        !function.empty() ? function
                                        : t.name.empty()  ? "thread"
                                                          : t.name,
                                        n),
                                 120));
    }
  }
  /// -1: several threads were seen there, or nothing is known.
  int64_t of(const verdict::Site& site) const {
    const auto detail = run_.details.find(site.row);
    if (detail == run_.details.end()) return -1;
    const auto at = place_.find(detail->second.thread.value);
    return at == place_.end() ? -1 : at->second;
  }
  Json take() { return std::move(list_); }

 private:
  const RunContents& run_;
  std::map<int64_t, int64_t> place_;
  Json list_ = Json::array();
};

struct SiteLimits {
  size_t snapshots = kMostSnapshots, sites = kMostSites, churning = 150;
};

Json sites(const RunContents& run, const verdict::Evidence& e, PageStrings& strings, const ThreadNames& threads,
           const SourceLine& source, const SiteLimits& limits) {
  std::vector<const verdict::Mark*> with;
  std::vector<size_t> always;
  size_t peak = 0;
  for (const verdict::Mark& m : e.marks) {
    if (m.sites.empty()) continue;
    if (!with.empty() && m.rss.value_or(Bytes{}) > with[peak]->rss.value_or(Bytes{})) peak = with.size();
    with.push_back(&m);
  }
  if (with.empty()) return nullptr;
  always.push_back(peak);
  std::vector<const verdict::Mark*> kept;
  for (const size_t i : spread(with.size(), limits.snapshots, always)) kept.push_back(with[i]);

  std::unordered_map<int, std::vector<int64_t>> held;
  std::unordered_map<int, int64_t> most;
  std::unordered_map<int, double> blocks;
  const auto known = [&](int site) { return site >= 0 && size_t(site) < e.sites.size(); };
  for (size_t k = 0; k < kept.size(); ++k)
    for (const verdict::SiteState& s : kept[k]->sites) {
      if (!known(s.site)) continue;
      std::vector<int64_t>& column = held[s.site];
      column.resize(kept.size(), 0);
      column[k] += s.bytes.value;
      most[s.site] = std::max(most[s.site], column[k]);
      if (k + 1 == kept.size()) blocks[s.site] += s.blocks;
    }
  std::vector<int> order;
  for (const auto& [site, bytes] : most) order.push_back(site);
  std::ranges::sort(order, [&](int a, int b) { return std::pair(-most[a], a) < std::pair(-most[b], b); });
  std::vector<int64_t> other(kept.size(), 0);
  for (size_t i = limits.sites; i < order.size(); ++i)
    for (size_t k = 0; k < kept.size(); ++k) other[k] += held[order[i]][k];
  if (order.size() > limits.sites) order.resize(limits.sites);
  // What allocates much and keeps nothing is alive at no moment: it is asked for by what it allocates.
  std::vector<int> churning;
  const std::set<int> already(order.begin(), order.end());
  for (size_t i = 0; i < e.sites.size(); ++i)
    if (e.sites[i].total.value > 0 && !already.contains(int(i))) churning.push_back(int(i));
  std::ranges::stable_sort(churning, std::ranges::greater{}, [&](int i) { return e.sites[size_t(i)].total.value; });
  if (churning.size() > limits.churning) churning.resize(limits.churning);
  for (const int site : churning) {
    if (already.contains(site)) continue;
    held[site].resize(kept.size(), 0);
    order.push_back(site);
  }

  std::map<std::tuple<std::string, std::string, int, bool, bool>, int64_t> frame_of;
  Column file, function, line, flags;
  Json text = Json::object();  // of the user's lines that hold most
  const auto frame = [&](const verdict::Frame& f) {
    const auto [at, fresh] =
        frame_of.try_emplace({f.file, f.function, f.line, f.native, f.user}, int64_t(frame_of.size()));
    if (fresh) {
      file.add(strings(f.file)), function.add(strings(f.function)), line.add(f.line),
          flags.add(int64_t(f.native) + 2 * int64_t(f.user) + 4 * int64_t(has_name(f)));
      if (source && f.user && !f.native && text.size() < kMostPlaces)
        if (const std::string found = stripped(source(f.file, f.line)); !found.empty())
          text[std::to_string(at->second)] = cut(found, 200);
    }
    return at->second;
  };
  Json stacks = Json::array(), columns = Json::array(), last = Json::array(), allocated = Json::array(),
       freed = Json::array(), temporary = Json::array(), thread = Json::array(), doubt = Json::array();
  for (const int site : order) {
    Json stack = Json::array();
    for (const verdict::Frame& f : e.sites[size_t(site)].frames) stack.push_back(frame(f));
    stacks.push_back(std::move(stack));
    Column bytes;
    for (const int64_t b : held[site]) bytes.add(b);
    columns.push_back(bytes.take());
    last.push_back(std::llround(blocks[site]));
    const verdict::Site& one = e.sites[size_t(site)];
    allocated.push_back(one.total.value), freed.push_back(one.freed.value);
    temporary.push_back(temporary_of(run, one)), thread.push_back(threads.of(one));
    // Blocks of one place are alike: what 95 % lie within goes with the root of the bytes, at any moment.
    const double error = sampling_error(one.total, one.total_blocks, e.sampling_interval);
    doubt.push_back(error > 0 ? bounded(error * error / double(one.total.value)) : 0);
  }
  Column t, kind, index, rss, sum, rest;
  for (size_t k = 0; k < kept.size(); ++k) {
    int64_t all = 0;
    for (const verdict::SiteState& s : kept[k]->sites)
      if (known(s.site)) all += s.bytes.value;
    t.seconds(kept[k]->t);
    kind.add(strings(kept[k]->kind)), index.add(kept[k]->index), rss.add(kept[k]->rss), sum.add(all),
        rest.add(other[k]);
  }
  return {{"frames",
           {{"file", file.take()},
            {"function", function.take()},
            {"line", line.take()},
            {"flags", flags.take()},
            {"text", std::move(text)}}},
          {"stacks", std::move(stacks)},
          {"snapshots",
           {{"t", t.take()},
            {"kind", kind.take()},
            {"index", index.take()},
            {"rss", rss.take()},
            {"sum", sum.take()},
            {"other", rest.take()}}},
          {"bytes", std::move(columns)},
          {"blocks", std::move(last)},
          {"allocated", std::move(allocated)},
          {"freed", std::move(freed)},
          {"temporary", run.details.empty() ? Json() : std::move(temporary)},
          {"thread", run.details.empty() ? Json() : std::move(thread)},
          {"doubt", std::move(doubt)}};
}

Json processes(const RunContents& run, PageStrings& strings, const ThreadNames& threads, const SourceLine& source) {
  Json list = Json::array();
  std::vector<const verdict::SeenProcess*> order;
  for (const verdict::SeenProcess& p : run.evidence.processes) order.push_back(&p);
  const auto main = [&](const verdict::SeenProcess* p) { return p->row != 0 && p->row == run.evidence.process; };
  std::ranges::stable_sort(order, [&](const auto* a, const auto* b) {
    return std::pair(main(a), peak_of(*a)) > std::pair(main(b), peak_of(*b));
  });
  if (order.size() > kMostProcesses) order.resize(kMostProcesses);
  for (const verdict::SeenProcess* p : order) {
    ProcessPoints points = points_of(*p, std::max<size_t>(60, kMostPoints / order.size()));
    const auto child = std::ranges::find(run.children, p->row, &verdict::Evidence::process);
    list.push_back(
        {{"process", p->row ? Json(p->row) : Json()},
         {"pid", p->pid},
         {"parent", p->parent},
         {"name", cut(p->name, 200)},
         {"command", cut(p->command, 400)},
         {"start", std::llround(std::clamp(p->start, 0.0, 1e12) * 1000)},
         {"end", p->end ? Json(std::llround(std::clamp(*p->end, 0.0, 1e12) * 1000)) : Json()},
         {"seen", p->seen},
         {"main", main(p)},
         {"peak", peak_of(*p).value},
         {"t", points.t.take()},
         {"resident", points.resident.take()},
         {"private", points.private_bytes.take()},
         {"sites", child == run.children.end() || p->row == 0
                       ? Json()
                       : sites(run, *child, strings, threads, source, {.snapshots = 8, .sites = 200, .churning = 20})},
         {"sizes", p->row ? page_sizes(run, p->row) : Json()},
         {"story", page_story(run, p->row, strings)}});
  }
  return list;
}

Json sources(const RunContents& run, PageStrings& strings) {
  Json list = Json::array();
  for (const runfile::SourceRow& s : run.sources) {
    if (list.size() >= kMostSources) break;
    Json text = Json::array();
    for (size_t at = 0; at < s.text.size() && text.size() < kMostSourceLines;) {
      const size_t end = std::min(s.text.find('\n', at), s.text.size());
      text.push_back(cut(s.text.substr(at, end - at), 400));
      at = end + 1;
    }
    list.push_back(
        {{"file", strings(s.file)}, {"function", strings(s.function)}, {"first", s.first}, {"lines", std::move(text)}});
  }
  return list;
}

Json programs(const RunContents& run, PageStrings& strings) {
  Json list = Json::array();
  for (const PlannedProgram& p : run.programs) {
    if (list.size() >= kMostPrograms) break;
    std::vector<const runfile::PlanBuffer*> buffers;
    for (const runfile::PlanBuffer& b : p.buffers) buffers.push_back(&b);
    const size_t all = buffers.size();
    if (all > kMostBuffers) {
      std::ranges::stable_sort(buffers, std::ranges::greater{}, [](const auto* b) { return b->size; });
      buffers.resize(kMostBuffers);
    }
    Column name, account, layer, offset, size, first, last, op, of, workspace;
    for (const runfile::PlanBuffer* b : buffers) {
      name.add(strings(b->name)), account.add(strings(b->account)), layer.add(strings(b->layer));
      offset.add(b->offset.value), size.add(b->size.value), first.add(b->first), last.add(b->last);
    }
    for (size_t i = 0; i < std::min(p.calls.size(), size_t{20000}); ++i)
      op.add(strings(p.calls[i].op)), of.add(strings(p.calls[i].layer)), workspace.add(p.calls[i].workspace.value);
    list.push_back({{"name", cut(p.program.name)},
                    {"calls", p.program.calls},
                    {"planned", p.program.planned.value},
                    {"lower_bound", p.program.lower_bound.value},
                    {"plan_seconds", p.program.plan_seconds},
                    {"method", cut(p.program.method)},
                    {"buffers",
                     {{"name", name.take()},
                      {"account", account.take()},
                      {"layer", layer.take()},
                      {"offset", offset.take()},
                      {"size", size.take()},
                      {"first", first.take()},
                      {"last", last.take()}}},
                    {"ops", {{"op", op.take()}, {"layer", of.take()}, {"workspace", workspace.take()}}},
                    {"left_out", all - buffers.size()}});
  }
  return list;
}

Json facts(const RunContents& run) {
  const verdict::Evidence& e = run.evidence;
  Json j = {{"command", cut(e.command)},
            {"seconds", run.seconds()},
            {"ended", run.meta.contains("status")},
            {"status", run.text("status")},
            {"exit_code", e.exit_code ? Json(*e.exit_code) : Json()},
            {"signal", e.signal ? Json(*e.signal) : Json()},
            {"peak", e.peak_rss.value},
            {"baseline", e.baseline_rss.value},
            {"end", end_rss(e).value}};
  if (const verdict::Mark* round = last_round(e))
    j["last_round"] = {{"name", round->kind == "epoch" ? "epoch" : "round"}, {"rss", round->rss->value}};
  for (const char* key : {"started", "model", "optimizer", "loss", "batch", "threads", "version", "program", "host.cpu",
                          "host.cores", "host.memory_bytes", "host.kernel"})
    if (const std::string text = run.text(key); !text.empty()) j[key] = cut(text, 400);
  if (const double planned = run.number("planned_bytes"); planned > 0) j["planned"] = int64_t(planned);
  return j;
}

Json measured(const RunContents& run) {
  const verdict::Evidence& e = run.evidence;
  Json explained_json;
  if (run.engine) {
    for (auto r = run.os.rbegin(); r != run.os.rend(); ++r)
      if (r->rss && r->explained) {
        explained_json = {{"t", std::llround(r->t * 1000)},
                          {"resident", r->rss->value},
                          {"explained", r->explained->value},
                          {"in_use", nullptr},
                          {"with_line", nullptr},
                          {"with_line_error", nullptr},
                          {"free", nullptr},
                          {"files", nullptr}};
        break;
      }
  } else if (const std::optional<Explained> x = explained(e, run.meta)) {
    double t = 0;
    for (const verdict::Mark& m : e.marks)
      if (m.rss && *m.rss == x->resident && !m.sites.empty()) t = m.t;
    // Parts as they were told, not cut to what is resident: the page says how much they overlap.
    explained_json = {
        {"t", std::llround(t * 1000)}, {"resident", x->resident.value},   {"explained", nullptr},
        {"in_use", x->in_use.value},   {"with_line", x->with_line.value}, {"with_line_error", x->with_line_error},
        {"free", x->free.value},       {"files", x->files.value}};
  }
  return {{"samples", int64_t(run.number("sampling.samples"))},
          {"interval", int64_t(e.sampling_interval)},
          {"dropped", e.dropped},
          {"explained", std::move(explained_json)},
          {"probe_seconds", run.number("overhead.probe_cpu_s")},
          {"agent_seconds", e.agent_seconds},
          {"collector_seconds", run.number("overhead.collector_cpu_s")},
          {"probe_bytes", int64_t(run.number("overhead.probe_bytes"))},
          {"remarks", cut(run.text("remarks"))}};
}

Json counters(const verdict::Evidence& e) {
  Json list = Json::array();
  for (const auto& [name, points] : e.counters) {
    if (list.size() >= kMostCounters) break;
    Column t;
    Json values = Json::array();
    for (const size_t i : spread(points.size(), kMostCounterPoints)) {
      t.seconds(points[i].first);
      values.push_back(points[i].second);
    }
    list.push_back({{"name", cut(name, 200)}, {"t", t.take()}, {"value", std::move(values)}});
  }
  return list;
}

Json document(Json runs, Json compare, bool live) {
  return {{"format", 2},
          {"version", MILLPOND_VERSION},
          {"live", live},
          {"runs", std::move(runs)},
          {"compare", std::move(compare)}};
}

}  // namespace

PageJson page_run(const RunContents& run, const SourceLine& source) {
  const verdict::Evidence& e = run.evidence;
  PageStrings strings;
  ThreadNames threads(run);
  Json limits = Json::array(), advice = Json::array();
  for (const verdict::Limit& l : e.limits) limits.push_back({{"name", l.name}, {"bytes", l.bytes.value}});
  for (const verdict::Advice& a : run.verdict.advice)
    if (advice.size() < kMostFindings)
      advice.push_back({{"what", a.what}, {"text", cut(a.text)}, {"place", place(a.place, source)}});
  Json j = {{"name", cut(run.name, 400)},
            {"source", run.engine ? "engine" : "watch"},
            {"title", cut(run.title())},
            {"verdict", to_string(run.verdict.kind)},
            {"sentence", cut(run.verdict.sentence)},
            {"would_settle", cut(run.verdict.would_settle)},
            {"early", run.early},
            {"facts", facts(run)},
            {"resident", resident(run)},
            {"tree", tree(run)},
            {"gpu", gpus(e)},
            {"pools", page_pools(run)},
            {"accounts", page_accounts(run, e)},
            {"marks", page_marks(e, strings)},
            {"phases", phases(run, strings)},
            {"periods", page_periods(e)},
            {"probes", page_probes(e)},
            {"limits", std::move(limits)},
            {"findings", findings(run, source)},
            {"growth", page_growth(run)},
            {"advice", std::move(advice)},
            {"sites", sites(run, e, strings, threads, source, {})},
            {"processes", processes(run, strings, threads, source)},
            {"sources", sources(run, strings)},
            {"lines", page_lines(run, e, strings)},
            {"sizes", page_sizes(run)},
            {"programs", programs(run, strings)},
            {"measured", measured(run)},
            {"counters", counters(e)}};
  j["threads"] = threads.take();
  j["strings"] = strings.take();
  return j;
}

PageJson page_document(const RunContents& run, const SourceLine& source, const PageOptions& options) {
  Json runs = Json::array();
  runs.push_back(page_run(run, source));
  return document(std::move(runs), nullptr, options.live);
}

PageJson page_document(const RunContents& before, const SourceLine& source_before, const RunContents& after,
                       const SourceLine& source_after) {
  Json runs = Json::array();
  runs.push_back(page_run(before, source_before));
  runs.push_back(page_run(after, source_after));
  const Run a{before.name, &before.evidence, &before.verdict, source_before},
      b{after.name, &after.evidence, &after.verdict, source_after};
  return document(std::move(runs), compare_json(a, b, int(kMostPlaces)), false);
}

}  // namespace millpond::report
