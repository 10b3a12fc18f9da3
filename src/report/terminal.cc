#include "report/terminal.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "report/accounts.h"
#include "report/moment.h"
#include "report/text.h"
#include "verdict/sites.h"

namespace millpond::report {
namespace {

constexpr size_t kMostAccounts = 6, kMostRows = 4, kSpark = 24, kName = 44;

/// One name with its line over time and what it holds.
struct Row {
  std::string name;
  std::vector<double> values;
  double now = 0, share = 0;
};

std::string rows_text(const char* label, const std::vector<Row>& rows, const TextStyle& style) {
  size_t wide = 0, line = 0;
  for (const Row& r : rows)
    wide = std::max(wide, std::min(kName, columns(r.name))), line = std::max(line, std::min(kSpark, r.values.size()));
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    const std::string name = shown(r.name, kName), spark = sparkline(r.values, int(kSpark));
    const std::string head = format("  {:<9} ", i == 0 ? label : "");
    out += style.color ? format("\033[2m{}\033[0m", head) : head;
    out += name + std::string(wide - std::min(wide, columns(name)) + 2, ' ');
    out += style.color ? format("\033[36m{}\033[0m", spark) : spark;
    out += std::string(line - std::min(line, columns(spark)) + 2, ' ');
    out += format("{:>9}{}\n", to_string(to_bytes(r.now)), r.share > 0 ? format("  {:4.1f} %", 100 * r.share) : "");
  }
  return out;
}

std::vector<Row> account_rows(const RunContents& run) {
  const AccountTable table = grouped(accounts_over_time(run, {.moments = 400}), kMostAccounts);
  // At the peak: as it ends a program has given much back.
  size_t peak = 0;
  for (size_t i = 0; i < table.t.size(); ++i)
    if (table.resident[i].value_or(0) > table.resident[peak].value_or(0)) peak = i;
  std::vector<Row> rows;
  for (const Account& a : table.accounts) {
    if (a.most() <= 0) continue;
    rows.push_back({a.kind == AccountKind::kReserved   ? a.name + " (reserved)"
                    : a.kind == AccountKind::kRetained ? a.name + " (retained)"
                                                       : a.name,
                    {a.bytes.begin(), a.bytes.end()},
                    double(a.bytes[peak]),
                    a.kind == AccountKind::kReserved || table.resident[peak].value_or(0) <= 0
                        ? 0
                        : double(a.bytes[peak]) / double(*table.resident[peak])});
  }
  return rows;
}

std::vector<Row> line_rows(const verdict::Evidence& e) {
  const std::optional<Moment> peak = peak_moment(e);
  if (!peak) return {};
  const auto key = [&](int site) {
    const verdict::Frame* f =
        site >= 0 && size_t(site) < e.sites.size() ? verdict::own_frame(e.sites[size_t(site)]) : nullptr;
    return f ? format("{}:{} {}", short_path(f->file.substr(f->file.rfind('/') + 1), 28), f->line,
                      shown(f->function, 30))
             : std::string();
  };
  std::map<std::string, double> held;
  double sum = 0;
  for (const verdict::SiteState& s : peak->mark->sites) {
    sum += double(s.bytes.value);
    if (const std::string k = key(s.site); !k.empty()) held[k] += double(s.bytes.value);
  }
  std::vector<Row> rows;
  for (const auto& [name, bytes] : held) rows.push_back({name, {}, bytes, sum > 0 ? bytes / sum : 0});
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Row::now);
  std::erase_if(rows, [](const Row& r) { return r.share < 0.02; });
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  std::vector<const verdict::Mark*> marks;
  for (const verdict::Mark& m : e.marks)
    if (!m.sites.empty()) marks.push_back(&m);
  for (const size_t i : spread(marks.size(), 100)) {
    std::map<std::string, double> now;
    for (const verdict::SiteState& s : marks[i]->sites) now[key(s.site)] += double(s.bytes.value);
    for (Row& r : rows) r.values.push_back(now[r.name]);
  }
  return rows;
}

std::string plan_text(const RunContents& run) {
  std::string out;
  for (const PlannedProgram& p : run.programs) {
    std::vector<int64_t> change(size_t(std::clamp<int64_t>(p.program.calls, 0, 1'000'000)) + 1, 0);
    for (const runfile::PlanBuffer& b : p.buffers) {
      if (b.first < 0 || size_t(b.first) >= change.size()) continue;
      change[size_t(b.first)] += b.size.value;
      if (b.last >= 0 && size_t(b.last) + 1 < change.size()) change[size_t(b.last) + 1] -= b.size.value;
    }
    std::vector<double> live;
    int64_t now = 0;
    for (size_t i = 0; i + 1 < change.size(); ++i) live.push_back(double(now += change[i]));
    const size_t peak = live.empty() ? 0 : size_t(std::ranges::max_element(live) - live.begin());
    out += format("  {:<9} {}, {} calls  {}  arena {}, lower bound {}", out.empty() ? "plan" : "",
                  shown(p.program.name, 30), p.program.calls, sparkline(live, int(kSpark)), p.program.planned,
                  p.program.lower_bound);
    if (peak < p.calls.size())
      out +=
          format("; peak at call {}, {} of {}", peak + 1, shown(p.calls[peak].op, 30), shown(p.calls[peak].layer, 30));
    out += "\n";
  }
  return out;
}

}  // namespace

std::string terminal_text(const RunContents& run, const TextStyle& style) {
  std::string out = doctor_text(run.evidence, run.verdict, run.meta, style);
  if (!style.verbose && !run.engine) return out;
  constexpr size_t kMostPlans = 6;
  if (!style.verbose)
    return out + "\n" + rows_text("accounts", account_rows(run), style) +
           clipped(plan_text(run), kMostPlans, style.width);
  const std::string accounts = rows_text("accounts", account_rows(run), style),
                    lines = rows_text("lines", line_rows(run.evidence), style), plan = plan_text(run);
  if (!out.ends_with("\n\n")) out += "\n";
  return out + accounts + lines + plan;
}

}  // namespace millpond::report
