#include "report/doctor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/format.h"
#include "report/moment.h"
#include "report/pools.h"
#include "report/text.h"
#include "report/together.h"
#include "verdict/account.h"
#include "verdict/sentence.h"
#include "verdict/threads.h"

namespace millpond::report {
namespace {

using verdict::Evidence;
using verdict::Finding;
using verdict::Kind;
using verdict::Verdict;
using Json = nlohmann::ordered_json;

constexpr size_t kMostProcesses = 256;  // in the JSON

const char* color_of(Kind kind) {
  switch (kind) {
    case Kind::kLeak:
      return "\033[1;31m";
    case Kind::kFragmentation:
    case Kind::kRetention:
    case Kind::kUnsure:
      return "\033[1;33m";
    case Kind::kCache:
    case Kind::kReserve:
      return "\033[1;36m";
    case Kind::kFlat:
      return "\033[1;32m";
  }
  return "";
}

double number(const runfile::Meta& meta, const char* key) { return runfile::number(meta, key).value_or(0); }

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
  /// With `most`, what does not fit in so many lines is left out and said to be.
  void line(const char* label, const std::string& value, size_t most = 0) {
    if (value.empty()) return;
    const std::string head = format("  {:<9} ", label);
    const std::string text = clipped(head + wrapped(shown_lines(value), style_.width, 12, 12), most, style_.width);
    text_ += style_.color ? format("\033[2m{}\033[0m{}", head, text.substr(head.size())) : text;
  }
  void plain(const std::string& text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  TextStyle style_;
  std::string text_;
};

void gpu_lines(Page& page, const Evidence& e, int most, bool notes) {
  for (const PoolLine& line : pool_lines(e))
    if (most > 0) page.line(line.space.c_str(), line.text);
  int shown_devices = 0, left = 0;
  bool untold = false;
  for (const verdict::Gpu& gpu : e.gpus) {
    std::vector<double> bytes;
    for (const auto& [t, value] : gpu.told()) bytes.push_back(value);
    if (bytes.empty() || gpu.by_tree_peak == Bytes{}) continue;  // one that the program does not use
    if (++shown_devices > most) {
      ++left;
      continue;
    }
    page.line(format("gpu {}", gpu.device).c_str(),
              format("{}: {} {} at most of {}; first {}, last {}  {}", shown(gpu.name, 40),
                     gpu.whole() ? "all programs" : "program", gpu.whole() ? gpu.used_peak : *gpu.by_tree_peak,
                     gpu.total, to_bytes(bytes.front()), to_bytes(bytes.back()), sparkline(bytes, 12)));
    untold = untold || gpu.whole();
  }
  if (!notes) return;
  if (left) page.line("", format("and {} more", verdict::counted(left, "GPU")));
  if (untold) page.line("", "how much of it is this program's the driver does not tell here");
  if (shown_devices && e.pools.empty())
    page.line("", "totals from the driver: what grows on a GPU is not told by line");
}

nlohmann::ordered_json gpu_json(const Evidence& e) {
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
  if (e.signal == 9)
    return "was killed (signal 9): by the system when memory ran out, or by somebody; the report is of the time before";
  if (e.signal) return format("was ended by signal {}; the report is of the time before", *e.signal);
  return e.exit_code.value_or(0) ? format("ended with exit code {}; the report is of the time before", *e.exit_code)
                                 : "";
}

/// What an account is of, in words.
std::string of_what(const Evidence& e, const verdict::Account& a) {
  if (a.tree) return "all processes together, shared pages once";
  const auto p = std::ranges::find(e.processes, a.process, &verdict::SeenProcess::row);
  const std::string who =
      p == e.processes.end() || a.process == e.process ? "" : format(" of {} {}", shown(p->name, 30), p->pid);
  return (a.space == "all"      ? "resident memory"
          : a.space == "shared" ? "shared memory"
          : a.space == "host"   ? "memory of its own and files"
                                : "memory of " + a.space) +
         who;
}

/// Growth and its parts, each with what 95 % lie within.
void account_part(Page& page, const Evidence& e, const verdict::Account& a, const char* label, size_t most) {
  const auto off = [](double error) { return "± " + to_string(to_bytes(std::max(0.0, error))); };
  page.line(label, format("{} {} of {}, over {}:", signed_bytes(a.growth), off(a.error()), of_what(e, a),
                          verdict::counted(std::round(a.rounds), verdict::noun_of(a.unit))));
  double left = 0;
  size_t told = 0, others = 0;
  for (const verdict::AccountPart& p : a.parts) {
    if (&p != &a.parts.back() && told >= most) {
      left += p.bytes, ++others;
      continue;
    }
    if (others && &p == &a.parts.back())
      page.line("",
                format("{:>10} {:<12} {}", signed_bytes(left), "", verdict::counted(double(others), "smaller part")));
    const std::string line = !p.born            ? ""
                             : p.born->line > 0 ? format("{}:{}", short_path(p.born->file, 24), p.born->line)
                                                : short_function(p.born->function, 40);
    const std::string born =
        line.empty() ? "" : format(" ({}{})", p.kind == verdict::AccountPart::Kind::kHeld ? "born at " : "", line);
    page.line("", format("{:>10} {:<12} {}{}", signed_bytes(p.bytes), off(p.error()), shown(p.name, 60), born));
    ++told;
  }
}

/// The judged process, then the tree, then other processes and spaces that grew by more than is small.
void account_lines(Page& page, const Evidence& e, const Verdict& v) {
  constexpr size_t kMostTold = 4;
  constexpr double kWorthTelling = 1e6;
  if (v.account) account_part(page, e, *v.account, "account", 12);
  if (!v.accounts) return;
  size_t told = 0;
  for (const verdict::Account& a : *v.accounts) {
    const bool said =
        v.account && !a.tree && a.process == v.account->process && (a.space == "host" || a.space == "shared");
    if (said || std::abs(a.growth) < kWorthTelling || told++ >= kMostTold) continue;
    account_part(page, e, a, v.account || told > 1 ? "" : "account", 5);
  }
}

}  // namespace

double Explained::share() const { return resident.value ? double(named().value) / double(resident.value) : 1; }

std::optional<Explained> explained(const Evidence& e, const runfile::Meta& meta) {
  for (auto m = e.marks.rbegin(); m != e.marks.rend(); ++m) {
    if (m->sites.empty() || !m->rss || m->kind == "end") continue;  // at its end a program has given much back
    Explained x{*m->rss, {}, {}, m->heap_free.value_or(Bytes{}), to_bytes(number(meta, "file_rss")), 0};
    double variance = 0;
    for (const verdict::SiteState& s : m->sites) {
      x.with_line += s.bytes;
      const double error = sampling_error(s.bytes, s.blocks, e.sampling_interval);
      variance += error * error;
    }
    x.with_line_error = std::sqrt(variance);
    const Bytes told =
        m->heap_in_use.value_or(Bytes{}) + m->heap_mapped.value_or(Bytes{}) + m->python_arenas.value_or(Bytes{});
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
  // The whole height is at least a quarter of the highest value: the noise of a flat run stays noise, and what is level
  // lies in the middle.
  constexpr double kLeastHeight = 0.25;
  const double middle = (*least + *most) / 2, height = std::max(*most - *least, kLeastHeight * std::fabs(*most));
  std::string text;
  for (double v : columns) text += kBars[height > 0 ? std::clamp(int(((v - middle) / height + 0.5) * 7.999), 0, 7) : 3];
  return text;
}

namespace {

std::string title_of(const Verdict& v) {
  if (v.too_short) return "millpond: TOO SHORT TO JUDGE";
  std::string kind(to_string(v.kind));
  std::transform(kind.begin(), kind.end(), kind.begin(), [](char c) { return char(std::toupper(c)); });
  return format("millpond: {}", kind);
}

/// All processes together, where there are several: what grows there is not in the curve of one of them.
std::string together_text(const Evidence& e) {
  const int64_t processes = processes_seen(e);
  if (processes < 2 && !e.tree_peak) return "";
  const std::string with = processes > 1 ? format("with {} processes", processes) : "with its children";
  if (!e.tree_peak) return format("\n{}: together they were not seen to hold more", with);
  std::vector<double> series;
  for (const verdict::OsPoint& p : e.os)
    if (p.tree_pss && p.tree_pss->value > 0) series.push_back(double(p.tree_pss->value));
  constexpr size_t kFew = 4;
  const std::string curve = series.size() < kFew ? "" : sparkline(series, 24) + "  ";
  return format("\n{}{} {} at most, of what was sampled", curve, with, *e.tree_peak);
}

/// Resident memory over the run, and its peak: the kernel's high-water mark, beside the highest that was sampled where
/// the two differ.
std::string memory_text(const Evidence& e) {
  std::vector<double> series;
  for (const verdict::OsPoint& p : e.os)
    if (p.rss && p.rss->value > 0) series.push_back(double(p.rss->value));
  if (series.empty()) return "";
  constexpr double kClearlyHigher = 1.01;
  const bool higher =
      e.sampled_peak.value > 0 && double(e.peak_rss.value) > kClearlyHigher * double(e.sampled_peak.value);
  const verdict::Mark* round = last_round(e);
  return format("{}  {} to {} {}, peak {}{}, {}", sparkline(series, 24), to_bytes(series.front()),
                round ? *round->rss : to_bytes(series.back()),
                !round                   ? "at the end"
                : round->kind == "epoch" ? "in the last epoch"
                                         : "in the last round",
                e.peak_rss, higher ? format(" (highest that was sampled: {})", e.sampled_peak) : "",
                verdict::duration(e.seconds)) +
         together_text(e);
}

/// "C14: the list keeps ...", or the kind where the cause has no name.
std::string finding_title(const Finding& f) {
  return format("{}{}{}", to_string(f.kind), f.cause.empty() ? "" : " " + f.cause,
                f.title.empty() ? "" : ": " + f.title);
}

/// What the forecast says is in a row of its own, so the sentence need not say it too.
std::string without_forecast(const Verdict& v) {
  const std::string last = v.findings.empty() ? "" : verdict::forecast_words(v.findings.front());
  std::string text = v.sentence;
  if (!last.empty() && text.ends_with(" " + last)) text.resize(text.size() - last.size() - 1);
  return text;
}

/// How many lines each part may take; the rest is there with -v. The first that fits is taken.
struct Room {
  size_t sentence, fix, forecast, others, remarks, gpus;
};
constexpr Room kRooms[] = {{6, 8, 3, 3, 8, 2}, {4, 5, 2, 2, 2, 2}, {4, 5, 2, 1, 1, 1},
                           {3, 4, 2, 0, 1, 0}, {3, 3, 1, 0, 1, 0}, {2, 2, 1, 0, 0, 0}};

std::string answer_text(const Evidence& e, const Verdict& v, const runfile::Meta& meta, const TextStyle& style,
                        const Room& room) {
  Page page(style);
  page.title(title_of(v), color_of(v.kind));
  page.plain(clipped("  " + wrapped(shown_lines(without_forecast(v)), style.width, 2, 2), room.sentence, style.width));
  page.line("memory", memory_text(e), 3);
  page.line("program", ending(e), 2);
  gpu_lines(page, e, int(room.gpus), room.gpus > 1);
  if (!v.would_settle.empty() && v.sentence.find(v.would_settle) == v.sentence.npos)
    page.line("to settle", v.would_settle, 1);
  const auto first = std::ranges::find_if(v.findings, &Finding::sets_verdict);
  if (first != v.findings.end()) {
    const Finding& f = *first;
    page.plain("\n");
    if (f.blame) {
      const std::string place = format("{}:{}{}", short_path(f.blame->file, 44), f.blame->line,
                                       f.blame->function.empty() ? "" : " in " + shown(f.blame->function, 28));
      page.line("line",
                place + (f.blame->snippet.empty()
                             ? ""
                             : "\n    " + shown(f.blame->snippet, size_t(std::max(20, style.width - 17)))),
                2);
    }
    page.line("fix", f.fix, room.fix);
    page.line("forecast", verdict::forecast_words(f), room.forecast);
    std::string others;
    for (const Finding& other : v.findings)
      if (&other != &f && other.sets_verdict) others += (others.empty() ? "" : "; ") + finding_title(other);
    if (room.others) page.line("also", others, room.others);
  }
  if (meta.count("remarks") && room.remarks) page.line("not seen", meta.at("remarks"), room.remarks);
  return page.take();
}

}  // namespace

std::string doctor_text(const Evidence& e, const Verdict& v, const runfile::Meta& meta, const TextStyle& style) {
  if (!style.verbose) {
    std::string text;
    for (const Room& room : kRooms) {
      text = answer_text(e, v, meta, style, room);
      constexpr long kAround = 2;  // the file's name, which whoever prints this puts below it, and an empty line above
      if (std::ranges::count(text, '\n') <= style.height - kAround) break;
    }
    return text;
  }
  Page page(style);
  page.title(title_of(v), color_of(v.kind));
  page.plain("  " + wrapped(shown_lines(without_forecast(v)), style.width, 2, 2));
  page.line("memory", memory_text(e));
  page.line("program", ending(e));
  gpu_lines(page, e, 8, true);
  if (!v.would_settle.empty() && v.sentence.find(v.would_settle) == v.sentence.npos)
    page.line("to settle", v.would_settle);
  bool small = false;
  for (const Finding& f : v.findings) {
    if (!f.sets_verdict) {
      small = true;
      continue;
    }
    page.plain("\n");
    page.title("  " + finding_title(f), color_of(f.kind));
    if (f.bytes_per_unit > 0)
      page.line("rate", format("{} {} ({} to {}), seen over {}, {} in all", to_bytes(f.bytes_per_unit),
                               verdict::each(f), to_bytes(std::max(0.0, f.bytes_per_unit_range.low)),
                               to_bytes(f.bytes_per_unit_range.high), verdict::seen_over(f), f.total));
    if (f.blame)
      page.line("line",
                place_text(*f.blame) + (f.blame->snippet.empty() ? "" : "\n    " + shown(f.blame->snippet, 200)));
    if (f.born_at)
      page.line("allocated",
                place_text(*f.born_at) + (f.born_at->snippet.empty() ? "" : "\n    " + shown(f.born_at->snippet, 200)));
    page.line("held by", f.holder);
    for (size_t i = 0; i < f.evidence.size(); ++i) page.line(i == 0 ? "because" : "", f.evidence[i]);
    page.line("fix", f.fix);
    page.line("forecast", verdict::forecast_words(f));
    for (size_t i = 0; i < f.threads.size(); ++i) {
      const std::string address = verdict::thread_address(f.threads[i]);
      page.line(i == 0 ? "others" : "", address.empty() ? f.threads[i] : address);
    }
  }
  if (small) {
    page.plain("\n");
    for (const Finding& f : v.findings)
      if (!f.sets_verdict) page.line("small", format("{}: {} {}", to_string(f.kind), f.total, f.title));
  }
  if (!v.advice.empty()) page.plain("\n");
  for (const verdict::Advice& a : v.advice)
    page.line("advice", a.text + (a.place ? " (" + place_text(*a.place) + ")" : ""));
  page.plain("\n");
  account_lines(page, e, v);
  if (const std::optional<Explained> x = explained(e, meta)) {
    // Nothing is cut: parts that are more together than what is resident are told as that.
    const std::string whole = x->named() > x->resident
                                  ? format(
                                        "{} have a name, {} more than the {} that were resident (mapped and not "
                                        "touched, given back, or counted twice)",
                                        x->named(), x->named() - x->resident, x->resident)
                                  : format("{} of {} ({:.1f} %)", x->named(), x->resident, x->share() * 100);
    page.line("explained",
              format("{}: in use {} ({} of it with its line), free in the allocator {}, files {}", whole, x->in_use,
                     with_error(std::min(x->in_use, x->with_line), x->with_line_error), x->free, x->files));
  }
  const double cost = number(meta, "overhead.probe_cpu_s") + e.agent_seconds;
  const bool sampled = meta.contains("sampling.samples");  // not by the engine: it knows
  if (sampled)
    page.line(
        "measured",
        format("{}, one for about {}; probe and agent {:.2f} s ({:.1f} % of the time), collector {:.2f} s beside it{}",
               verdict::counted(number(meta, "sampling.samples"), "sample"), to_bytes(e.sampling_interval), cost,
               e.seconds > 0 ? 100 * cost / e.seconds : 0, number(meta, "overhead.collector_cpu_s"),
               e.dropped ? format("; {} lost", verdict::counted(double(e.dropped), "record")) : ""));
  if (meta.count("remarks")) page.line("not seen", meta.at("remarks"));
  return page.take();
}

nlohmann::ordered_json doctor_json(const Evidence& e, const Verdict& v, const runfile::Meta& meta) {
  Json j;
  const nlohmann::json verdict = to_json(v);
  j["verdict"] = verdict.at("verdict");
  j["sentence"] = v.sentence;
  j["program"] = {{"command", e.command},
                  {"exit_code", e.exit_code ? Json(*e.exit_code) : Json()},
                  {"signal", e.signal ? Json(*e.signal) : Json()}};
  j["seconds"] = e.seconds;
  j["peak_rss"] = e.peak_rss.value;
  j["sampled_peak"] = e.sampled_peak.value;
  j["processes_seen"] = processes_seen(e);
  j["tree_peak"] = e.tree_peak ? Json(e.tree_peak->value) : Json();
  j["baseline_rss"] = e.baseline_rss.value;
  const verdict::Mark* round = last_round(e);
  j["last_round_rss"] = round ? Json(round->rss->value) : Json();  // before the program was taken down
  const std::optional<Explained> x = explained(e, meta);
  j["explained_share"] = x ? Json(x->share()) : Json();
  // The parts as they were measured, none of them cut: what they have too much together they count twice.
  if (x)
    j["explained"] = {{"resident", x->resident.value},
                      {"in_use", x->in_use.value},
                      {"with_line", x->with_line.value},
                      {"with_line_error", x->with_line_error},
                      {"free", x->free.value},
                      {"files", x->files.value},
                      {"overlap", std::max<int64_t>(0, x->named().value - x->resident.value)}};
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
  j["pools"] = pools_json(e);
  j["advice"] = verdict.at("advice");
  j["findings"] = verdict.at("findings");
  j["account"] = verdict.at("account");
  j["accounts"] = verdict.at("accounts");
  Json processes = Json::array();
  for (const verdict::SeenProcess& p : e.processes) {
    if (processes.size() >= kMostProcesses) break;
    Json spaces = Json::object();
    for (const auto& [space, points] : p.spaces) {
      Bytes peak;
      for (const verdict::SeenProcess::Point& point : points) peak = std::max(peak, point.resident.value_or(Bytes{}));
      spaces[space] = {{"peak", peak.value}};
    }
    processes.push_back({{"process", p.row ? Json(p.row) : Json()},
                         {"pid", p.pid},
                         {"parent", p.parent},
                         {"name", p.name},
                         {"start", p.start},
                         {"end", p.end ? Json(*p.end) : Json()},
                         {"seen", p.seen},
                         {"spaces", std::move(spaces)}});
  }
  j["processes"] = std::move(processes);
  // Notches in the curve that are ours: gc.collect and malloc_trim, called in the program.
  Json trims = Json::array();
  for (const verdict::Probe& p : e.probes)
    trims.push_back({{"t", p.t},
                     {"period", p.period},
                     {"before", p.rss.value},
                     {"after_gc", p.after_gc.value},
                     {"after_trim", p.after_trim.value}});
  j["trims"] = std::move(trims);
  if (v.too_short) j["too_short"] = true;
  if (!v.would_settle.empty()) j["would_settle"] = v.would_settle;
  if (meta.count("remarks")) j["not_seen"] = meta.at("remarks");
  return j;
}

}  // namespace millpond::report
