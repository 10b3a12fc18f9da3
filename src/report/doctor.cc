#include "report/doctor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/format.h"
#include "report/text.h"

namespace millpond::report {
namespace {

using verdict::Evidence;
using verdict::Finding;
using verdict::Kind;
using verdict::Verdict;

constexpr size_t kMostProcesses = 256;  // in the JSON

const char* color_of(Kind kind) {
  switch (kind) {
    case Kind::kLeak: return "\033[1;31m";
    case Kind::kFragmentation:
    case Kind::kRetention:
    case Kind::kUnsure: return "\033[1;33m";
    case Kind::kCache:
    case Kind::kReserve: return "\033[1;36m";
    case Kind::kFlat: return "\033[1;32m";
  }
  return "";
}

double number(const runfile::Meta& meta, const char* key) {
  return runfile::number(meta, key).value_or(0);
}

std::string duration(double s) {
  if (s < 120) return format("{:.0f} s", s);
  if (s < 7200) return format("{:.0f} min", s / 60);
  if (s < 172800) return format("{:.1f} h", s / 3600);
  return format("{:.1f} days", s / 86400);
}

std::string place_text(const verdict::Place& p) {
  std::string text = format("{}:{}", shown(p.file, 200), p.line);
  if (!p.function.empty()) text += format(" in {}", shown(p.function, 120));
  return text;
}

/// Everything passes through `shown`: names in a run file may be a stranger's, and a terminal obeys what it is sent.
class Page {
 public:
  Page(const TextStyle& style) : style_(style) {}
  void title(const std::string& value, const char* color) {
    const std::string text = shown(value);
    text_ += style_.color ? format("{}{}\033[0m\n", color, text) : text + "\n";
  }
  void line(const char* label, const std::string& value) {
    if (value.empty()) return;
    const std::string head = format("  {:<9} ", label);
    text_ += (style_.color ? format("\033[2m{}\033[0m", head) : head) + wrapped(shown_lines(value), style_.width, 12, 12);
  }
  void plain(const std::string& text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  TextStyle style_;
  std::string text_;
};

void gpu_lines(Page& page, const Evidence& e) {
  constexpr int kMost = 8;
  int shown_devices = 0, left = 0;
  bool untold = false;
  for (const verdict::Gpu& gpu : e.gpus) {
    std::vector<double> bytes;
    for (const auto& [t, value] : gpu.told()) bytes.push_back(value);
    if (bytes.empty() || gpu.by_tree_peak == Bytes{}) continue;  // one that the program does not use
    if (++shown_devices > kMost) {
      ++left;
      continue;
    }
    page.line(format("gpu {}", gpu.device).c_str(),
              format("{}: {} {} at most of {}; first {}, last {}  {}", gpu.name, gpu.whole() ? "all programs" : "program", gpu.whole() ? gpu.used_peak : *gpu.by_tree_peak, gpu.total,
                     to_bytes(bytes.front()), to_bytes(bytes.back()), sparkline(bytes, 12)));
    untold = untold || gpu.whole();
  }
  if (left) page.line("", format("and {} GPUs more", left));
  if (untold) page.line("", "how much of it is this program's the driver does not tell here");
  if (shown_devices) page.line("", "totals from the driver: what grows on a GPU is not told by line");
}

nlohmann::ordered_json gpu_json(const Evidence& e) {
  using Json = nlohmann::ordered_json;
  const auto bytes = [](const std::optional<Bytes>& b) { return b ? Json(b->value) : Json(); };
  Json list = Json::array();
  for (const verdict::Gpu& gpu : e.gpus) {
    const bool seen = !gpu.points.empty();
    std::optional<Bytes> first, last;
    for (const verdict::Gpu::Point& p : gpu.points)
      if (gpu.by_tree_peak && p.by_tree) {
        if (!first) first = p.by_tree;
        last = p.by_tree;
      }
    list.push_back({{"device", gpu.device},
                    {"name", gpu.name},
                    {"total", gpu.total.value},
                    {"used_peak", gpu.used_peak.value},
                    {"used_first", seen ? bytes(gpu.points.front().used) : Json()},
                    {"used_last", seen ? bytes(gpu.points.back().used) : Json()},
                    {"by_program_peak", bytes(gpu.by_tree_peak)},
                    {"by_program_first", bytes(first)},
                    {"by_program_last", bytes(last)}});
  }
  return list;
}

/// How the program ended, unless all was well.
std::string ending(const Evidence& e) {
  if (e.signal == 9) return "was killed (signal 9): by the system when memory ran out, or by somebody; the report is of the time before";
  if (e.signal) return format("was ended by signal {}; the report is of the time before", *e.signal);
  return e.exit_code.value_or(0) ? format("ended with exit code {}; the report is of the time before", *e.exit_code) : "";
}

}  // namespace

Bytes Explained::all() const { return std::min(resident, in_use + free + files); }

double Explained::share() const { return resident.value ? double(all().value) / double(resident.value) : 1; }

std::optional<Explained> explained(const Evidence& e, const runfile::Meta& meta) {
  for (auto m = e.marks.rbegin(); m != e.marks.rend(); ++m) {
    if (m->sites.empty() || !m->rss || m->kind == "end") continue;  // at its end a program has given much back
    Explained x{*m->rss, {}, {}, m->heap_free.value_or(Bytes{}), to_bytes(number(meta, "file_rss"))};
    for (const verdict::SiteState& s : m->sites) x.with_line += s.bytes;
    const Bytes told = m->heap_in_use.value_or(Bytes{}) + m->heap_mapped.value_or(Bytes{}) + m->python_arenas.value_or(Bytes{});
    x.in_use = std::max(told, x.with_line);
    return x;
  }
  return {};
}

std::string sparkline(const std::vector<double>& values, int width) {
  if (values.empty() || width < 1) return {};
  static const char* const kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> columns;
  const size_t n = std::min(values.size(), size_t(width));
  for (size_t i = 0; i < n; ++i) {
    const size_t from = i * values.size() / n, to = std::max(from + 1, (i + 1) * values.size() / n);
    columns.push_back(*std::max_element(values.begin() + long(from), values.begin() + long(to)));
  }
  const auto [least, most] = std::minmax_element(columns.begin(), columns.end());
  std::string text;
  // what moves by less than a hundredth is drawn flat
  const double base = *least, span = *most - *least;
  for (double v : columns) text += span <= 0.01 * std::fabs(*most) ? kBars[3] : kBars[std::clamp(int((v - base) / span * 7.999), 0, 7)];
  return text;
}

std::string doctor_text(const Evidence& e, const Verdict& v, const runfile::Meta& meta, const TextStyle& style) {
  Page page(style);
  std::string kind(to_string(v.kind));
  std::transform(kind.begin(), kind.end(), kind.begin(), [](char c) { return char(std::toupper(c)); });
  page.title(format("millpond: {}", kind), color_of(v.kind));
  page.plain("  " + wrapped(shown_lines(v.sentence), style.width, 2, 2));
  std::vector<double> series;
  for (const verdict::OsPoint& p : e.os)
    if (p.rss && p.rss->value > 0) series.push_back(double(p.rss->value));
  if (!series.empty())
    page.line("memory", format("{}  {} at the start, peak {}, {} at the end ({})", sparkline(series, 24), to_bytes(series.front()), e.peak_rss,
                               to_bytes(series.back()), duration(e.seconds)));
  page.line("program", ending(e));
  gpu_lines(page, e);
  if (!v.would_settle.empty()) page.line("to settle", v.would_settle);
  bool small = false;
  for (const Finding& f : v.findings) {
    if (!f.sets_verdict) {
      small = true;
      continue;
    }
    page.plain("\n");
    page.title(format("  {}{}{}", to_string(f.kind), f.cause.empty() ? "" : " " + f.cause, f.title.empty() ? "" : ": " + f.title), color_of(f.kind));
    if (f.bytes_per_unit > 0)
      page.line("rate", format("{} per {} ({} to {}), seen over {:.0f}, {} in all", to_bytes(f.bytes_per_unit), to_string(f.unit),
                               to_bytes(std::max(0.0, f.bytes_per_unit_range.low)), to_bytes(f.bytes_per_unit_range.high), f.units_seen, f.total));
    if (f.blame) page.line("line", place_text(*f.blame) + (f.blame->snippet.empty() ? "" : "\n    " + shown(f.blame->snippet, 200)));
    page.line("held by", f.holder);
    for (size_t i = 0; i < f.evidence.size(); ++i) page.line(i == 0 ? "because" : "", f.evidence[i]);
    page.line("fix", f.fix);
    if (f.forecast)
      page.line("forecast", format("{} of {} in {} ({} to {}){}", f.forecast->bytes, f.forecast->limit, duration(f.forecast->seconds),
                                   duration(f.forecast->seconds_range.low), duration(f.forecast->seconds_range.high),
                                   f.forecast->unit_index ? format(", {} {:.0f}", to_string(f.unit), *f.forecast->unit_index) : ""));
    std::string threads;
    for (const std::string& t : f.threads) threads += (threads.empty() ? "" : ", ") + t;
    page.line("others", threads);
    page.line("sure", format("{:.0f} %", f.confidence * 100));
  }
  if (small) {
    page.plain("\n");
    for (const Finding& f : v.findings)
      if (!f.sets_verdict) page.line("small", format("{}: {} {}", to_string(f.kind), f.total, f.title));
  }
  if (!v.advice.empty()) page.plain("\n");
  for (const verdict::Advice& a : v.advice) page.line("advice", a.text + (a.place ? " (" + place_text(*a.place) + ")" : ""));
  page.plain("\n");
  if (const std::optional<Explained> x = explained(e, meta))
    page.line("explained", format("{} of {} ({:.1f} %): in use {} ({} of it with its line), free in the allocator {}, files {}", x->all(), x->resident,
                                  x->share() * 100, x->in_use, std::min(x->in_use, x->with_line), x->free, x->files));
  const double cost = number(meta, "overhead.probe_cpu_s") + e.agent_seconds;
  const bool sampled = meta.contains("sampling.samples");  // not by the engine: it knows
  if (sampled)
    page.line("measured", format("{:.0f} samples, one for about {}; probe and agent {:.2f} s ({:.1f} % of the time), collector {:.2f} s beside it{}",
                               number(meta, "sampling.samples"), to_bytes(e.sampling_interval), cost, e.seconds > 0 ? 100 * cost / e.seconds : 0,
                               number(meta, "overhead.collector_cpu_s"), e.dropped ? format("; {} records lost", e.dropped) : ""));
  if (meta.count("remarks")) page.line("not seen", meta.at("remarks"));
  return page.take();
}

nlohmann::ordered_json doctor_json(const Evidence& e, const Verdict& v, const runfile::Meta& meta) {
  using Json = nlohmann::ordered_json;
  Json j;
  const nlohmann::json verdict = to_json(v);
  j["verdict"] = verdict.at("verdict");
  j["sentence"] = v.sentence;
  j["program"] = {{"command", e.command}, {"exit_code", e.exit_code ? Json(*e.exit_code) : Json()}, {"signal", e.signal ? Json(*e.signal) : Json()}};
  j["seconds"] = e.seconds;
  j["peak_rss"] = e.peak_rss.value;
  j["baseline_rss"] = e.baseline_rss.value;
  const std::optional<Explained> x = explained(e, meta);
  j["explained_share"] = x ? Json(x->share()) : Json();
  const double probe = number(meta, "overhead.probe_cpu_s"), agent = e.agent_seconds;
  j["overhead"] = {{"probe_cpu_s", probe},
                   {"agent_s", agent},
                   {"collector_cpu_s", number(meta, "overhead.collector_cpu_s")},
                   {"probe_bytes", int64_t(number(meta, "overhead.probe_bytes"))},
                   {"share_of_wall", e.seconds > 0 ? (probe + agent) / e.seconds : 0}};
  j["dropped_events"] = e.dropped;
  Json phases = Json::object();
  for (const verdict::Mark& m : e.marks)
    if (m.period) phases[m.kind] = phases.value(m.kind, 0) + 1;
  j["phases"] = phases;
  j["gpu"] = gpu_json(e);
  j["advice"] = verdict.at("advice");
  j["findings"] = verdict.at("findings");
  Json processes = Json::array();
  for (const verdict::SeenProcess& p : e.processes) {
    if (processes.size() >= kMostProcesses) break;
    Json spaces = Json::object();
    for (const auto& [space, points] : p.spaces) {
      Bytes peak;
      for (const verdict::SeenProcess::Point& point : points) peak = std::max(peak, point.resident.value_or(Bytes{}));
      spaces[space] = {{"peak", peak.value}};
    }
    processes.push_back({{"process", p.row ? Json(p.row) : Json()}, {"pid", p.pid}, {"parent", p.parent}, {"name", p.name}, {"start", p.start}, {"end", p.end ? Json(*p.end) : Json()},
                         {"seen", p.seen}, {"spaces", std::move(spaces)}});
  }
  j["processes"] = std::move(processes);
  if (!v.would_settle.empty()) j["would_settle"] = v.would_settle;
  if (meta.count("remarks")) j["not_seen"] = meta.at("remarks");
  return j;
}

}  // namespace millpond::report
