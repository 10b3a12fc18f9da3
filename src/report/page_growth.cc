#include "report/page_growth.h"

#include <algorithm>
#include <cmath>

#include "verdict/account.h"

namespace millpond::report {
namespace {

constexpr size_t kMostGrowths = 64, kMostParts = 40;

int64_t whole(double bytes) { return std::isfinite(bytes) ? std::llround(std::clamp(bytes, -1e15, 1e15)) : 0; }

PageJson range_of(const verdict::Interval& range) { return PageJson::array({whole(range.low), whole(range.high)}); }

PageJson parts_of(const verdict::Account& a) {
  PageJson parts = PageJson::array();
  int64_t left = whole(a.growth);
  for (size_t i = 0; i < a.parts.size(); ++i) {
    const verdict::AccountPart& p = a.parts[i];
    const bool last = i + 1 == a.parts.size();
    if (parts.size() + 1 >= kMostParts && !last)
      continue;  // a division names shares of three per cent and more: there are never so many
    // What is rounded off goes to what is left over, which comes last: the parts add up.
    const int64_t bytes = last ? left : whole(p.bytes);
    left -= bytes;
    PageJson chain = PageJson::array(), born;
    for (const std::string& step : p.chain) chain.push_back(cut(step, 400));
    if (p.born) born = {{"file", cut(p.born->file)}, {"line", p.born->line}, {"function", cut(p.born->function)}};
    parts.push_back({{"kind", to_string(p.kind)},
                     {"name", cut(p.name, 400)},
                     {"chain", std::move(chain)},
                     {"born", std::move(born)},
                     {"bytes", bytes},
                     {"range", range_of(p.range)}});
  }
  return parts;
}

}  // namespace

std::string cut(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  return text.substr(0, most / 2) + " … " + text.substr(text.size() - most / 2);
}

PageJson page_growth(const RunContents& run) {
  PageJson list = PageJson::array();
  if (!run.verdict.accounts) return list;
  for (const verdict::Account& a : *run.verdict.accounts) {
    if (list.size() >= kMostGrowths) break;
    const auto of = std::ranges::find(run.evidence.processes, a.process, &verdict::SeenProcess::row);
    const bool known = !a.tree && of != run.evidence.processes.end();
    list.push_back({{"tree", a.tree},
                    {"pid", known ? PageJson(of->pid) : PageJson()},
                    {"process", known ? cut(of->name, 200) : ""},
                    {"main", !a.tree && a.process == run.evidence.process},
                    {"space", a.space},
                    {"level", whole(a.level)},
                    {"growth", whole(a.growth)},
                    {"range", range_of(a.range)},
                    {"rounds", a.rounds},
                    {"unit", to_string(a.unit)},
                    {"from", whole(1000 * a.from)},
                    {"to", whole(1000 * a.to)},
                    {"parts", parts_of(a)}});
  }
  return list;
}

}  // namespace millpond::report
