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

namespace millpond::report {
namespace {

constexpr size_t kLongestName = 400, kMostGroups = 64, kMostPictures = 12;

/// A cell as a spreadsheet reads it: quoted where it must be, and a name that begins like a formula is kept from being one.
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
  const auto after = std::upper_bound(e.marks.begin(), e.marks.end(), t + 1e-9, [](double at, const verdict::Mark& m) { return at < m.t; });
  return after == e.marks.begin() ? nullptr : &*(after - 1);
}

constexpr events::Colour kPalette[] = {{0x44, 0x77, 0xaa}, {0x5a, 0xb4, 0xcf}, {0x2f, 0x8f, 0x5b}, {0xc9, 0xa9, 0x35},
                                       {0xe0, 0x69, 0x7a}, {0x9a, 0x3d, 0x7f}, {0x7d, 0x74, 0xc9}, {0x8d, 0x6e, 0x55}};

std::string markdown(const RunContents& run) {
  std::string text = format("**{}** {}\n", to_string(run.verdict.kind), shown(run.verdict.sentence));
  for (const verdict::Finding& f : run.verdict.findings) {
    if (!f.sets_verdict) continue;
    text += format("\n### {} {}\n", to_string(f.kind), shown(f.title, 2000));
    if (f.blame) text += format("\n`{}:{}` in `{}`\n", shown(f.blame->file, kLongestName), f.blame->line, shown(f.blame->function, kLongestName));
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
    out += format("{:.3f},{},{},{},{},{}\r\n", t, m ? cell(m->kind) : "", m ? std::to_string(m->index) : "", cell(account), kind, bytes);
  };
  for (const runfile::OsRow& r : run.os)
    if (r.rss) line(r.t, "resident", "resident", r.rss->value);
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

std::string tensorboard_events(const RunContents& run) {
  const double start = started(run);
  events::EventFile file(start);
  const auto step = [](double t) { return int64_t(std::llround(t * 1000)); };
  for (const runfile::OsRow& r : run.os)
    if (r.rss && r.rss->value > 0) file.scalar("memory/resident", step(r.t), start + r.t, double(r.rss->value));
  const AccountTable table = grouped(accounts_over_time(run), kMostGroups);
  for (size_t i = 0; i < table.t.size(); ++i)
    for (const Account& a : table.accounts) file.scalar("accounts/" + shown(a.name, kLongestName), step(table.t[i]), start + table.t[i], double(a.bytes[i]));
  // By round: the same place of each, so that runs of other speed lie on one another.
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
    file.image("plan/" + shown(p.program.name, kLongestName), 0, start, picture.png(), picture.width(), picture.height());
  }
  return file.take();
}

events::Picture plan_picture(const PlannedProgram& p, int width, int height) {
  events::Picture picture(width, height, {0xf6, 0xf7, 0xf5});
  const double calls = double(std::max<int64_t>(1, p.program.calls));
  const double high = 1.03 * double(std::max<int64_t>(1, std::max(p.program.planned.value, p.program.lower_bound.value)));
  const auto x = [&](double call) { return int(std::clamp(call / calls, 0.0, 1.0) * width); };
  const auto y = [&](double address) { return int((1 - std::clamp(address / high, 0.0, 1.0)) * height); };
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
    const int top = y(double(b.offset.value) + double(b.size.value)), bottom = std::max(top + 1, y(double(b.offset.value)));
    if ((painted += int64_t(right - left) * (bottom - top)) > kMostPainted) break;
    // a line of the ground between neighbours, where there is room for one
    picture.fill(left, top, right - (right - left > 3), bottom - (bottom - top > 3), kPalette[colour[group_of(b.account)]]);
  }
  const int bound = y(double(p.program.lower_bound.value));
  for (int at = 0; at < width; at += 12) picture.fill(at, bound, at + 7, bound + 1, {0x17, 0x21, 0x1e});
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
    describe(events::Message().number(1, ++tracks_).bytes(2, name).number(5, process_).message(8, events::Message().number(3, kUnitBytes)));
    return tracks_;
  }
  uint64_t slices(const std::string& name) {
    describe(events::Message().number(1, ++tracks_).bytes(2, name).number(5, process_));
    return tracks_;
  }
  void count(uint64_t track, double t, int64_t value) { add(t, 1, event(kCounter, track).number(30, uint64_t(value))); }
  void begin(uint64_t track, double t, const std::string& name) { add(t, 2, event(kBegin, track).bytes(22, "phase").bytes(23, name)); }
  void end(uint64_t track, double t) { add(t, 0, event(kEnd, track)); }

  std::string take() {
    std::ranges::stable_sort(events_, [](const Packet& a, const Packet& b) { return std::pair(a.ns, a.rank) < std::pair(b.ns, b.rank); });
    std::string out = head_;
    for (const Packet& p : events_) out += packet(events::Message().number(8, uint64_t(p.ns)).number(10, kSequence).bytes(11, p.data));
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
  static events::Message event(Type type, uint64_t track) { return events::Message().number(9, type).number(11, track); }
  static std::string packet(const events::Message& m) { return events::Message().message(1, m).data(); }
  void describe(const events::Message& m) { head_ += packet(events::Message().number(8, 0).number(10, kSequence).message(60, m)); }
  void add(double t, int rank, const events::Message& m) { events_.push_back({int64_t(std::llround(std::max(0.0, t) * 1e9)), rank, m.data()}); }

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
    trace.begin(at->second.first, from, shown(p->name.empty() ? format("{} {}", p->kind, p->index) : p->name, kLongestName));
    trace.end(at->second.first, to);
    at->second.second = to;
  }
  return trace.take();
}

}  // namespace millpond::report
