#include "verdict/read.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/format.h"
#include "millpond/error.h"
#include "verdict/notes.h"

namespace millpond::verdict {
namespace {

using runfile::RowId;

constexpr size_t kMostProbes = 1000;    // the agent makes one at periods 4, 8, 16, ...
constexpr size_t kMostSites = 1 << 14;  // of one process: probe/shared.h has room for no more
constexpr int64_t kMostStacks = int64_t{512}
                                << 20;  // bytes of all frames: each site has its own, a file holds them once

/// The process whose marks tell the story.
RowId main_process(const std::vector<runfile::Process>& processes, const std::vector<runfile::MarkRow>& marks) {
  std::unordered_map<int64_t, int64_t> periods;
  for (const runfile::MarkRow& m : marks)
    if (m.period)
      periods[m.process.value] += m.kind == "timer" || m.kind == "task" || m.kind == "request"
                                      ? 1
                                      : 1000;  // what a program says of itself counts more
  RowId best = processes.empty() ? RowId{} : processes.front().id;
  for (const runfile::Process& p : processes)
    if (periods[p.id.value] > periods[best.value]) best = p.id;
  return best;
}

/// A run of the engine has no marks: the ends of its epochs are its rounds.
void take_epochs(Evidence& e, const runfile::Reader& file, const std::vector<runfile::OsRow>& os) {
  std::unordered_map<int64_t, bool> epoch;
  for (const runfile::Phase& p : file.phases()) epoch[p.id.value] = p.kind == "epoch";
  int64_t rounds = 0;
  for (const runfile::OsRow& row : os) {
    const auto phase = epoch.find(row.phase.value);
    if (phase == epoch.end() || !phase->second || !row.rss) continue;
    Mark m;
    m.t = row.t, m.kind = "epoch", m.name = "fit", m.index = ++rounds, m.period = true, m.rss = row.rss;
    m.heap_in_use = row.heap_in_use, m.heap_free = row.heap_free;
    m.units[size_t(Unit::kEpoch)] = uint64_t(rounds);
    e.marks.push_back(std::move(m));
  }
}

void take_processes(Evidence& e, const std::vector<runfile::Process>& processes,
                    const std::vector<runfile::ProcessPointRow>& points) {
  std::unordered_map<int64_t, size_t> place;
  for (const runfile::Process& p : processes) {
    place[p.id.value] = e.processes.size();
    e.processes.push_back(
        {p.id.value, p.pid, p.parent, p.name, p.command, p.start, p.end, to_string(p.seen), {}, {}, {}});
  }
  for (const runfile::ProcessPointRow& row : points) {
    if (row.process == RowId{} && !place.contains(0)) {
      place[0] = e.processes.size();
      SeenProcess& other = e.processes.emplace_back();
      other.name = "other", other.seen = to_string(runfile::Seen::kNot);
    }
    const auto at = place.find(row.process.value);
    if (at == place.end()) continue;
    e.processes[at->second].spaces[row.space].push_back({row.t, row.resident, row.private_, row.in_use});
  }
  for (SeenProcess& p : e.processes)
    for (auto& [space, series] : p.spaces) std::ranges::stable_sort(series, {}, &SeenProcess::Point::t);
}

/// What the pages of each process were, and its mappings by kind.
void take_pages(Evidence& e, const std::vector<runfile::ProcessMemoryRow>& memory,
                const std::vector<runfile::MappingRow>& mappings) {
  std::unordered_map<int64_t, SeenProcess*> of;
  for (SeenProcess& p : e.processes)
    if (p.row != 0) of[p.row] = &p;
  for (const runfile::ProcessMemoryRow& row : memory)
    if (const auto at = of.find(row.process.value); at != of.end())
      at->second->pages.push_back({row.t, row.resident, row.anonymous, row.private_, row.pss});
  for (const runfile::MappingRow& row : mappings) {
    const Mapped mapped{row.t, row.mapped, row.resident, row.private_, row.pss};
    if (const auto at = of.find(row.process.value); at != of.end()) at->second->mappings[row.kind].push_back(mapped);
  }
  for (SeenProcess& p : e.processes) {
    std::ranges::stable_sort(p.pages, {}, &SeenProcess::Pages::t);
    for (auto& [kind, series] : p.mappings) std::ranges::stable_sort(series, {}, &Mapped::t);
  }
}

/// Throws nlohmann::json::exception when a value is of another kind than the agent writes.
void take_note(Evidence& e, double t, const nlohmann::json& note) {
  const auto number = [&](const char* key) { return std::clamp(note.value(key, 0.0), -1e15, 1e15); };
  const auto bytes = [&](const char* key) { return to_bytes(std::max(0.0, number(key))); };
  const std::string kind = note.value("note", "");
  if (note.contains("agent_seconds")) e.agent_seconds = number("agent_seconds");
  if (kind == "counters" && note.contains("values") && note["values"].is_object()) {
    for (const auto& [name, value] : note["values"].items())
      if (value.is_number()) e.counters[name].emplace_back(t, std::clamp(value.get<double>(), -1e15, 1e15));
  } else if (kind == "probe") {
    Probe probe;
    probe.t = t, probe.period = int64_t(number("period")), probe.rss = bytes("rss"), probe.after_gc = bytes("after_gc");
    probe.after_trim = bytes("after_trim"), probe.collected = int64_t(number("collected"));
    probe.garbage = int64_t(number("garbage")), probe.garbage_bytes = bytes("garbage_bytes");
    if (e.probes.size() < kMostProbes) e.probes.push_back(probe);
  }
}

}  // namespace

Evidence read_evidence(const runfile::Reader& file, std::optional<RowId> asked) {
  Evidence e;
  const runfile::Meta meta = file.meta();
  const auto text = [&](const char* key) { return meta.count(key) ? meta.at(key) : std::string(); };
  e.command = text("command");
  e.blind = text("blind"), e.blind_partly = !text("blind.partly").empty();
  const auto number = [&](const char* key) { return runfile::number(meta, key); };
  e.seconds = std::clamp(number("seconds").value_or(0), 0.0, 1e9);
  e.ended = meta.count("status") && meta.at("status") != "interrupted";
  const auto small = [](double n) { return int(std::clamp(n, -1e9, 1e9)); };
  const auto amount = [](double n) { return to_bytes(std::max(0.0, n)); };
  if (const auto code = number("exit_code")) e.exit_code = small(*code);
  if (const auto signal = number("signal")) e.signal = small(*signal);
  if (const auto limit = number("limit.bytes")) e.limits.push_back({text("limit.name"), amount(*limit)});
  if (const auto limit = number("limit.own.bytes")) e.limits.push_back({text("limit.own.name"), amount(*limit)});
  if (const auto limit = number("limit.asked")) e.limits.push_back({"--limit", amount(*limit)});
  e.sampling_interval = number("sampling.interval").value_or(0);
  e.dropped = int64_t(number("dropped").value_or(0));
  e.probes_off = text("probes") == "off";

  const std::vector<runfile::MarkRow> marks = file.marks();
  const std::vector<runfile::Process> processes = file.processes();
  const RowId main = main_process(processes, marks), process = asked.value_or(main);
  e.process = process.value;
  // The kernel's high-water mark is of the process that was started.
  if (const auto peak = number("peak_rss"); peak && process == main) e.peak_rss = amount(*peak);
  take_processes(e, processes, file.process_series());
  take_pages(e, file.process_memory(), file.mapping_series());
  const std::vector<runfile::FrameRow> frames = file.frames();
  std::unordered_map<int64_t, int> site_of;
  const auto too_much = [](const char* what) {
    return Error(Code::kFormat, format("this run file has {}", what)).hint("check where the file comes from");
  };
  int64_t stacks = 0;
  const bool given = e.command.find(" -c ") != std::string::npos;
  for (const runfile::SiteRow& row : file.sites()) {
    if (row.process != process) continue;
    Site site{
        .frames = {}, .total = row.total, .total_blocks = row.total_blocks, .freed = row.freed, .row = row.id.value};
    for (const RowId id : row.frames) {
      if (id.value < 1 || id.value > int64_t(frames.size())) continue;
      const runfile::FrameRow& f = frames[size_t(id.value - 1)];
      stacks += int64_t(sizeof(Frame) + f.file.size() + f.function.size());
      if (stacks > kMostStacks) throw too_much("call stacks that together take more than 512 MiB");
      // Python's names for a program without a file; libraries make code that is called <string> too.
      const bool program = !f.native && (f.file == "<stdin>" || (given && f.file == "<string>"));
      site.frames.push_back(
          {f.file, f.function, int(std::clamp<int64_t>(f.line, 0, 1'000'000'000)), f.native, f.user || program});
    }
    if (e.sites.size() == kMostSites) throw too_much("more places that allocate than one process can have");
    site_of[row.id.value] = int(e.sites.size());
    e.sites.push_back(std::move(site));
  }
  std::unordered_map<int64_t, size_t> mark_of;
  for (const runfile::MarkRow& row : marks) {
    if (row.process != process) continue;
    Mark m;
    m.t = row.t, m.kind = row.kind, m.name = row.name, m.index = row.index, m.period = row.period, m.rss = row.rss;
    m.heap_in_use = row.heap_in_use, m.heap_free = row.heap_free, m.heap_mapped = row.heap_mapped;
    m.python_arenas = row.python_arenas, m.tree_private_dirty = row.private_dirty, m.tree_pss = row.pss;
    m.processes = int(std::clamp<int64_t>(row.processes, 0, 1 << 20));
    for (size_t i = 0; i < row.units.size() && i < m.units.size(); ++i) m.units[i] = uint64_t(row.units[i]);
    mark_of[row.id.value] = e.marks.size();
    e.marks.push_back(std::move(m));
  }
  for (const runfile::SiteStateRow& row : file.site_states()) {
    const auto mark = mark_of.find(row.mark.value);
    const auto site = site_of.find(row.site.value);
    if (mark == mark_of.end() || site == site_of.end()) continue;
    SiteState s{.site = site->second, .bytes = row.bytes, .blocks = row.blocks, .age = {}};
    for (size_t i = 0; i < row.ages.size() && i < s.age.size(); ++i) s.age[i] = row.ages[i];
    e.marks[mark->second].sites.push_back(s);
  }
  const std::vector<runfile::OsRow> os = file.os_series();
  if (marks.empty()) take_epochs(e, file, os);
  std::stable_sort(e.marks.begin(), e.marks.end(), [](const Mark& a, const Mark& b) { return a.t < b.t; });
  // Until a process says something of its rounds, another one may have been followed: the one that was started.
  const bool own = std::ranges::any_of(os, [&](const runfile::OsRow& row) { return row.process == process; });
  for (const runfile::OsRow& row : os) {
    if (row.process != process && (process != main || (own && row.process != RowId{}))) continue;
    e.os.push_back({row.t, row.rss, row.swap, {}, {}, 1});
    if (row.peak_rss) e.peak_rss = std::max(e.peak_rss, *row.peak_rss);
  }
  for (const runfile::TreeRow& row : file.tree_series()) {
    if (row.pss && row.processes > 1) e.tree_peak = std::max(e.tree_peak.value_or(Bytes{}), *row.pss);
    e.os.push_back({row.t, {}, {}, row.private_dirty, row.pss, int(std::clamp<int64_t>(row.processes, 0, 1 << 20))});
  }
  std::stable_sort(e.os.begin(), e.os.end(), [](const OsPoint& a, const OsPoint& b) { return a.t < b.t; });
  for (runfile::GpuRow& row : file.gpus())
    e.gpus.push_back({row.device, std::move(row.name), row.total, row.used_peak, row.by_tree_peak, {}});
  for (const runfile::GpuPointRow& row : file.gpu_series())
    if (const auto gpu = std::ranges::find(e.gpus, row.device, &Gpu::device); gpu != e.gpus.end())
      gpu->points.push_back({row.t, row.used, row.by_tree});
  for (runfile::PoolRow& row : file.pool_series()) {
    if (row.process != process) continue;
    auto pool =
        std::ranges::find_if(e.pools, [&](const Pool& p) { return p.space == row.space && p.name == row.pool; });
    if (pool == e.pools.end())
      pool = e.pools.insert(e.pools.end(), Pool{std::move(row.space), std::move(row.pool), {}});
    pool->points.push_back({row.t, row.in_use, row.reserved, row.peak, row.inactive_split, row.largest_free, row.limit,
                            row.retries, row.ooms});
  }
  for (Pool& pool : e.pools) std::ranges::stable_sort(pool.points, {}, &Pool::Point::t);
  if (process == main) {
    e.growing_file = text("growing_file");
    for (const runfile::MappingRow& row : file.mapping_series())
      if (row.kind == "tmpfs") e.loose_files.emplace_back(row.t, row.pss);
    std::ranges::stable_sort(e.loose_files, {}, &std::pair<double, Bytes>::first);
  }
  for (const runfile::NoteRow& row : file.notes()) {
    if (row.process != process) continue;
    const std::optional<nlohmann::json> note = parse_note(row.text);
    if (!note) continue;
    try {
      take_note(e, row.t, *note);
    } catch (const nlohmann::json::exception&) {
      continue;  // a note whose values are of other kinds than the agent writes
    }
    e.notes.push_back(row.text);
  }
  for (auto& [name, points] : e.counters) std::ranges::stable_sort(points, {}, &std::pair<double, double>::first);
  for (const Mark& m : e.marks)
    if (m.rss && e.baseline_rss.value == 0) e.baseline_rss = *m.rss;
  for (const OsPoint& p : e.os)
    if (p.rss) {
      if (e.baseline_rss.value == 0) e.baseline_rss = *p.rss;
      e.sampled_peak = std::max(e.sampled_peak, *p.rss);
    }
  for (const Mark& m : e.marks) e.sampled_peak = std::max(e.sampled_peak, m.rss.value_or(Bytes{}));
  e.peak_rss = std::max(e.peak_rss, e.sampled_peak);
  if (e.tree_peak < e.peak_rss) e.tree_peak.reset();  // it is summed up now and then only: that moment was not seen
  return e;
}

}  // namespace millpond::verdict
