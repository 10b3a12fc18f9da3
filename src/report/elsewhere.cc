#include "report/elsewhere.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "events/tensorboard.h"
#include "events/wire.h"
#include "report/accounts.h"
#include "report/text.h"
#include "report/together.h"
#include "verdict/case.h"

namespace millpond::report {
namespace {

constexpr const char* kTogether = "all processes together";  // pages that they share count in each
constexpr size_t kLongestName = 400, kMostGroups = 64, kMostPictures = 12, kMostProcessLines = 64;

/// A cell as a spreadsheet reads it: quoted where it must be, and a name that begins like a formula is kept from being
/// one.
std::string cell(const std::string& text) {
  std::string clean = shown(text, kLongestName);
  if (!clean.empty() && std::string_view("=+-@").find(clean[0]) != std::string_view::npos) clean.insert(0, "'");
  if (clean.find_first_of(",\"\n\r") == clean.npos) return clean;
  std::string out = "\"";
  for (const char c : clean) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

/// The last mark at or before a moment.
const verdict::Mark* mark_at(const verdict::Evidence& e, double t) {
  const auto after = std::upper_bound(e.marks.begin(), e.marks.end(), t + 1e-9,
                                      [](double at, const verdict::Mark& m) { return at < m.t; });
  return after == e.marks.begin() ? nullptr : &*(after - 1);
}

constexpr events::Colour kPalette[] = {{0x44, 0x77, 0xaa}, {0x5a, 0xb4, 0xcf}, {0x2f, 0x8f, 0x5b}, {0xc9, 0xa9, 0x35},
                                       {0xe0, 0x69, 0x7a}, {0x9a, 0x3d, 0x7f}, {0x7d, 0x74, 0xc9}, {0x8d, 0x6e, 0x55}};

std::string markdown(const RunContents& run) {
  std::string text = format("**{}** {}\n", to_string(run.verdict.kind), shown(run.verdict.sentence));
  for (const verdict::Finding& f : run.verdict.findings) {
    if (!f.sets_verdict) continue;
    text += format("\n### {} {}\n", to_string(f.kind), shown(f.title, 2000));
    if (f.blame)
      text += format("\n`{}:{}` in `{}`\n", shown(f.blame->file, kLongestName), f.blame->line,
                     shown(f.blame->function, kLongestName));
    for (const std::string& sentence : f.evidence) text += format("\n- {}", shown(sentence, 2000));
    if (!f.fix.empty()) text += format("\n\nFix: {}\n", shown(f.fix, 2000));
  }
  return text;
}

}  // namespace

std::string csv(const RunContents& run) {
  std::string out = "seconds,mark,index,account,kind,bytes\r\n";
  const auto line = [&](double t, const std::string& account, std::string_view kind, int64_t bytes) {
    const verdict::Mark* m = mark_at(run.evidence, t);
    out += format("{:.3f},{},{},{},{},{}\r\n", t, m ? cell(m->kind) : "", m ? std::to_string(m->index) : "",
                  cell(account), kind, bytes);
  };
  for (const runfile::OsRow& r : run.os)
    if (r.rss) line(r.t, "resident", "resident", r.rss->value);
  // Where there are children: each of them, and all together.
  const std::vector<ProcessLine> processes = process_lines(run.evidence);
  for (const ProcessLine& p : processes)
    for (const auto& [t, bytes] : p.points) line(t, p.name, "process", bytes.value);
  if (!processes.empty())
    for (const runfile::TreeRow& r : run.tree)
      if (r.rss) line(r.t, kTogether, "tree", r.rss->value);
  const AccountTable table = accounts_over_time(run, {.moments = 20000, .accounts = 4000, .cells = 4'000'000});
  for (size_t i = 0; i < table.t.size(); ++i)
    for (const Account& a : table.accounts) line(table.t[i], a.name, to_string(a.kind), a.bytes[i]);
  return out;
}

double started(const RunContents& run) {
  tm parts{};
  const std::string text = run.text("started");
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return rest && !*rest ? double(timegm(&parts)) : 0;
}

namespace {

/// Steps of TensorBoard: rounds of the program where it has some, otherwise milliseconds.
class Steps {
 public:
  explicit Steps(const verdict::Evidence& e) {
    const verdict::Periods periods = verdict::Case(e).periods;  // those the verdict was made by
    if (periods.size() < 2 || periods.unit == verdict::Unit::kSecond) return;
    bool rising = true;
    for (size_t i = 1; i < periods.size(); ++i)
      rising = rising && periods.marks[i]->index > periods.marks[i - 1]->index;
    for (size_t i = 0; i < periods.size(); ++i)
      rounds_.emplace_back(periods.marks[i]->t, rising ? periods.marks[i]->index : int64_t(i) + 1);
  }
  bool by_round() const { return !rounds_.empty(); }
  /// The round in which a moment lies; what comes after the last one belongs to it.
  int64_t at(double t) const {
    if (rounds_.empty()) return int64_t(std::llround(t * 1000));
    const auto round = std::ranges::lower_bound(rounds_, t - 1e-9, {}, &std::pair<double, int64_t>::first);
    return round == rounds_.end() ? rounds_.back().second : round->second;
  }

 private:
  std::vector<std::pair<double, int64_t>> rounds_;
};

}  // namespace

std::string tensorboard_events(const RunContents& run) {
  const double start = started(run);
  events::EventFile file(start);
  const Steps steps(run.evidence);
  // Of several moments in one round the last one stands for it.
  const auto put = [&](const std::string& tag, size_t count, auto time, auto value) {
    for (size_t i = 0; i < count; ++i)
      if (i + 1 == count || steps.at(time(i + 1)) != steps.at(time(i)))
        file.scalar(tag, steps.at(time(i)), start + time(i), value(i));
  };
  std::vector<std::pair<double, double>> resident;
  for (const runfile::OsRow& r : run.os)
    if (r.rss && r.rss->value > 0) resident.emplace_back(r.t, double(r.rss->value));
  if (steps.by_round()) {
    for (const auto& [t, bytes] : resident)
      file.scalar("milliseconds/resident", int64_t(std::llround(t * 1000)), start + t, bytes);
    resident.clear();
    const verdict::Periods periods = verdict::Case(run.evidence).periods;
    for (const verdict::Mark* m : periods.marks)
      if (m->rss) resident.emplace_back(m->t, double(m->rss->value));
  }
  put(
      "memory/resident", resident.size(), [&](size_t i) { return resident[i].first; },
      [&](size_t i) { return resident[i].second; });
  const std::vector<ProcessLine> processes = process_lines(run.evidence);
  for (size_t k = 0; k < std::min(processes.size(), kMostProcessLines); ++k) {
    const ProcessLine& p = processes[k];
    put(
        "processes/" + p.name, p.points.size(), [&](size_t i) { return p.points[i].first; },
        [&](size_t i) { return double(p.points[i].second.value); });
  }
  std::vector<std::pair<double, double>> together;
  for (const runfile::TreeRow& r : run.tree)
    if (r.rss && !processes.empty()) together.emplace_back(r.t, double(r.rss->value));
  put(
      format("memory/{}", kTogether), together.size(), [&](size_t i) { return together[i].first; },
      [&](size_t i) { return together[i].second; });
  const AccountTable table = grouped(accounts_over_time(run), kMostGroups);
  for (const Account& a : table.accounts)
    put(
        "accounts/" + shown(a.name, kLongestName), table.t.size(), [&](size_t i) { return table.t[i]; },
        [&](size_t i) { return double(a.bytes[i]); });
  // Every kind of round by its own count, so that runs of other speed lie on one another.
  std::map<std::string, int64_t> last;
  for (const verdict::Mark& m : run.evidence.marks) {
    if (!m.period || !m.rss || m.kind == "timer") continue;
    const std::string tag = format("rounds/{} {}", shown(m.kind, 40), m.kind == "line" ? shown(m.name, 80) : "");
    if (const auto at = last.find(tag); at != last.end() && m.index <= at->second) continue;  // steps must rise
    last[tag] = m.index;
    file.scalar(tag.ends_with(' ') ? tag.substr(0, tag.size() - 1) : tag, m.index, start + m.t, double(m.rss->value));
  }
  file.text("verdict", 0, start + run.seconds(), markdown(run));
  for (size_t i = 0; i < std::min(run.programs.size(), kMostPictures); ++i) {
    const PlannedProgram& p = run.programs[i];
    const events::Picture picture = plan_picture(p, 960, 480);
    file.image("plan/" + shown(p.program.name, kLongestName), 0, start, picture.png(), picture.width(),
               picture.height());
  }
  return file.take();
}

namespace {

/// Round numbers from 0 to `most`, at most `wanted` and one: powers of two for bytes, otherwise 1, 2 and 5 times powers
/// of ten.
std::vector<double> ticks(double most, int wanted, bool bytes) {
  double step = 1;
  if (bytes)
    while (step * wanted < most) step *= 2;
  else
    for (int i = 0; step * wanted < most; ++i) step *= i % 3 == 1 ? 2.5 : 2;  // 1, 2, 5, 10, ...
  std::vector<double> all;
  for (double at = 0; at <= most; at += step) all.push_back(at);
  return all;
}

}  // namespace

events::Picture plan_picture(const PlannedProgram& p, int width, int height) {
  constexpr events::Colour kGround{0xf6, 0xf7, 0xf5}, kInk{0x17, 0x21, 0x1e}, kFaint{0xdd, 0xe1, 0xdc};
  events::Picture picture(width, height, kGround);
  // Room for the labels of both axes, unless the picture is too small for any.
  const bool axes = width >= 400 && height >= 200;
  const int left_edge = axes ? 112 : 0, top_edge = axes ? 28 : 0, low_edge = height - (axes ? 40 : 0);
  const double calls = double(std::max<int64_t>(1, p.program.calls));
  const double high =
      1.03 * double(std::max<int64_t>(1, std::max(p.program.planned.value, p.program.lower_bound.value)));
  const auto x = [&](double call) { return left_edge + int(std::clamp(call / calls, 0.0, 1.0) * (width - left_edge)); };
  const auto y = [&](double address) {
    return top_edge + int((1 - std::clamp(address / high, 0.0, 1.0)) * (low_edge - top_edge));
  };
  if (axes) {
    for (const double at : ticks(high, 6, true)) {
      const std::string label = to_string(to_bytes(at));
      picture.fill(left_edge, y(at), width, y(at) + 1, kFaint);
      picture.text(left_edge - 8 - events::Picture::text_width(label), std::clamp(y(at) - 7, 0, low_edge - 14), label,
                   kInk);
    }
    for (const double at : ticks(calls, 8, false)) {
      const std::string label = format("{:.0f}", at);
      const int centre = x(at);
      picture.fill(centre, low_edge, centre + 1, low_edge + 5, kInk);
      picture.text(
          std::min(centre - events::Picture::text_width(label) / 2, width - events::Picture::text_width(label)),
          low_edge + 8, label, kInk);
    }
    picture.text(4, 6, "bytes", kInk);
    picture.text(4, low_edge + 22, "call", kInk);
  }
  std::map<std::string, int64_t> sizes;
  for (const runfile::PlanBuffer& b : p.buffers) sizes[group_of(b.account)] += b.size.value;
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [group, size] : sizes) order.emplace_back(-size, group);
  std::sort(order.begin(), order.end());
  int64_t painted = 0;  // pixels; buffers of a plan do not lie on one another, but a file may say so
  constexpr int64_t kMostPainted = 100'000'000;
  std::map<std::string, size_t> colour;
  for (const auto& [size, group] : order) colour.emplace(group, colour.size() % std::size(kPalette));
  for (const runfile::PlanBuffer& b : p.buffers) {
    const int left = x(double(b.first)), right = std::max(left + 1, x(double(b.last) + 1));
    const int top = y(double(b.offset.value) + double(b.size.value)),
              bottom = std::max(top + 1, y(double(b.offset.value)));
    if ((painted += int64_t(right - left) * (bottom - top)) > kMostPainted) break;
    // a line of the ground between neighbours, where there is room for one
    picture.fill(left, top, right - (right - left > 3), bottom - (bottom - top > 3),
                 kPalette[colour[group_of(b.account)]]);
  }
  const int bound = y(double(p.program.lower_bound.value));
  for (int at = left_edge; at < width; at += 12) picture.fill(at, bound, at + 7, bound + 1, kInk);
  if (axes) {
    picture.fill(left_edge - 1, top_edge, left_edge, low_edge, kInk);
    picture.fill(left_edge - 1, low_edge, width, low_edge + 1, kInk);
    // Which colour is whose, the largest first, as far as there is room.
    int at = left_edge;
    for (const auto& [size, group] : order) {
      const std::string label = shown(group, 16);
      const int wide = 26 + events::Picture::text_width(label);
      if (at + wide > width) break;
      picture.fill(at, 6, at + 14, 20, kPalette[colour[group]]);
      picture.text(at + 18, 6, label, kInk);
      at += wide;
    }
  }
  return picture;
}

namespace {

/// Packets of a trace: they are sorted by time before they are written.
class Trace {
 public:
  uint64_t process(const std::string& name) {
    constexpr uint64_t kPid = 1;
    describe(events::Message().number(1, ++tracks_).message(3, events::Message().number(1, kPid).bytes(6, name)));
    return process_ = tracks_;
  }
  uint64_t counter(const std::string& name) {
    constexpr uint64_t kUnitBytes = 3;
    describe(events::Message()
                 .number(1, ++tracks_)
                 .bytes(2, name)
                 .number(5, process_)
                 .message(8, events::Message().number(3, kUnitBytes)));
    return tracks_;
  }
  uint64_t slices(const std::string& name) {
    describe(events::Message().number(1, ++tracks_).bytes(2, name).number(5, process_));
    return tracks_;
  }
  void count(uint64_t track, double t, int64_t value) { add(t, 1, event(kCounter, track).number(30, uint64_t(value))); }
  void begin(uint64_t track, double t, const std::string& name) {
    add(t, 2, event(kBegin, track).bytes(22, "phase").bytes(23, name));
  }
  void end(uint64_t track, double t) { add(t, 0, event(kEnd, track)); }

  std::string take() {
    std::ranges::stable_sort(
        events_, [](const Packet& a, const Packet& b) { return std::pair(a.ns, a.rank) < std::pair(b.ns, b.rank); });
    std::string out = head_;
    for (const Packet& p : events_)
      out += packet(events::Message().number(8, uint64_t(p.ns)).number(10, kSequence).bytes(11, p.data));
    return out;
  }

 private:
  enum Type { kBegin = 1, kEnd = 2, kCounter = 4 };
  static constexpr uint64_t kSequence = 1;
  struct Packet {
    int64_t ns = 0;
    int rank = 0;  // at one moment: what ends, what is counted, what begins
    std::string data;
  };
  static events::Message event(Type type, uint64_t track) {
    return events::Message().number(9, type).number(11, track);
  }
  static std::string packet(const events::Message& m) { return events::Message().message(1, m).data(); }
  void describe(const events::Message& m) {
    head_ += packet(events::Message().number(8, 0).number(10, kSequence).message(60, m));
  }
  void add(double t, int rank, const events::Message& m) {
    events_.push_back({int64_t(std::llround(std::max(0.0, t) * 1e9)), rank, m.data()});
  }

  uint64_t tracks_ = 0, process_ = 0;
  std::string head_;
  std::vector<Packet> events_;
};

}  // namespace

std::string perfetto_trace(const RunContents& run) {
  Trace trace;
  trace.process(shown(run.title(), kLongestName));
  const uint64_t resident = trace.counter("resident memory");
  for (const runfile::OsRow& r : run.os)
    if (r.rss) trace.count(resident, r.t, r.rss->value);
  const std::vector<ProcessLine> processes = process_lines(run.evidence);
  if (!processes.empty()) {
    const uint64_t together = trace.counter(kTogether);
    for (const runfile::TreeRow& r : run.tree)
      if (r.rss) trace.count(together, r.t, r.rss->value);
  }
  for (size_t k = 0; k < std::min(processes.size(), kMostProcessLines); ++k) {
    const uint64_t track = trace.counter("resident memory of " + processes[k].name);
    for (const auto& [t, bytes] : processes[k].points) trace.count(track, t, bytes.value);
  }
  const AccountTable table = grouped(accounts_over_time(run), kMostGroups);
  for (const Account& a : table.accounts) {
    const uint64_t track = trace.counter(shown(a.name, kLongestName));
    for (size_t i = 0; i < table.t.size(); ++i) trace.count(track, table.t[i], a.bytes[i]);
  }
  std::map<std::string, std::pair<uint64_t, double>> kinds;  // track, and where its last slice ended
  const double end = run.seconds();
  std::vector<const runfile::Phase*> phases;
  for (const runfile::Phase& p : run.phases) phases.push_back(&p);
  std::ranges::stable_sort(phases, {}, [](const runfile::Phase* p) { return p->start; });
  for (const runfile::Phase* p : phases) {
    const auto [at, fresh] = kinds.try_emplace(p->kind, 0, 0.0);
    if (fresh) at->second.first = trace.slices("phase " + shown(p->kind, 80));
    // Slices of one kind follow each other; one that would begin inside the last begins at its end.
    const double from = std::max(p->start, at->second.second), to = std::max(p->end.value_or(end), from) + 1e-9;
    trace.begin(at->second.first, from,
                shown(p->name.empty() ? format("{} {}", p->kind, p->index) : p->name, kLongestName));
    trace.end(at->second.first, to);
    at->second.second = to;
  }
  return trace.take();
}

}  // namespace millpond::report
