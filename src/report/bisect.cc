#include "report/bisect.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/text.h"
#include "verdict/case.h"

namespace millpond::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWorth = 1e6;  // bytes over a few periods: less is what any program does

std::string rate(const GrowthSeen& g) {
  const double shown_bytes = std::fabs(g.bytes) < 1024 ? 0 : g.bytes;
  return format("{} per {}", to_bytes(shown_bytes), g.unit);
}

std::string line_of(const Bisection& b) { return b.line.empty() ? "" : format(" The line is {}.", shown(b.line, 200)); }

/// What was not tried, once, by reason: "callbacks, eager (no Keras in this program); cpu (no GPU here)".
std::string left_out(const Bisection& b) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const VariantRun& v : b.variants) {
    if (v.not_run.empty()) continue;
    const auto same = std::ranges::find(reasons, v.not_run, &std::pair<std::string, std::string>::first);
    if (same == reasons.end())
      reasons.emplace_back(v.not_run, v.name);
    else
      same->second += ", " + v.name;
  }
  std::string text;
  for (const auto& [why, names] : reasons) text += format("{}{} ({})", text.empty() ? "Left out: " : "; ", names, why);
  return text.empty() ? "" : text + ".";
}

}  // namespace

GrowthSeen growth_seen(const verdict::Evidence& e) {
  const verdict::Case c(e);
  GrowthSeen g;
  g.periods = int(c.periods.size());
  g.enough = c.growth.outcome != verdict::Outcome::kTooShort;
  g.unit = to_string(c.periods.unit);
  g.level = c.growth.level;
  const auto rises = [](const verdict::Course& course) {
    return course.rises() && course.move != verdict::Move::kStep;
  };
  g.goes_on = c.growth.outcome == verdict::Outcome::kLeak || rises(c.growth.held) || rises(c.growth.rss);
  g.total = c.growth.total;
  if (!g.goes_on) return g;  // the slope is that of the rise while there was one
  g.bytes = c.growth.slope.value, g.range = c.growth.slope.range;
  g.total = g.bytes * c.periods.length();
  return g;
}

bool grows(const VariantRun& r) {
  if (!r.growth.enough) return false;
  if (r.kind == verdict::Kind::kLeak) return true;
  return r.growth.goes_on && r.growth.range.low > 0 && r.growth.total > std::max(kWorth, 0.003 * r.growth.level);
}

Effect effect_of(const VariantRun& base, const VariantRun& v) {
  if (!v.not_run.empty() || !v.no_answer.empty() || !v.growth.enough || v.growth.unit != base.growth.unit ||
      base.growth.bytes <= 0)
    return Effect::kNone;
  const double left = v.growth.bytes / base.growth.bytes;
  return left < 0.25 ? Effect::kRemoves : left < 0.6 ? Effect::kLowers : Effect::kNone;
}

const VariantRun* Bisection::culprit() const {
  for (const VariantRun& v : variants)
    if (effect_of(base, v) == Effect::kRemoves) return &v;
  return nullptr;
}

std::string bisect_sentence(const Bisection& b) {
  if (!b.base.growth.enough)
    return format(
        "Too few rounds were seen to tell ({} of them): give --seconds, or let the program print a line for each "
        "round.",
        b.base.growth.periods);
  if (!grows(b.base) && !b.base.growth.goes_on && b.base.growth.total > kWorth)
    return format(
        "Memory rose in a step or two and stopped by itself ({} rounds were seen): there is nothing to look for.",
        b.base.growth.periods);
  if (!grows(b.base))
    return format("Memory does not grow in this program ({} over {} of them): there is nothing to look for.",
                  rate(b.base.growth), b.base.growth.periods);
  std::string also, lower, tried;
  const VariantRun* culprit = b.culprit();
  for (const VariantRun& v : b.variants) {
    const Effect effect = effect_of(b.base, v);
    if (effect == Effect::kRemoves && &v != culprit) also += (also.empty() ? "" : ", ") + v.name;
    if (effect == Effect::kLowers) lower += format("{}{} ({})", lower.empty() ? "" : ", ", v.name, rate(v.growth));
    if (v.not_run.empty() && v.no_answer.empty()) tried += (tried.empty() ? "" : ", ") + v.name;
  }
  if (culprit)
    return format("Memory grows by {}; {} it does not ({}): {} owns the growth.{}{}{}", rate(b.base.growth),
                  culprit->done, rate(culprit->growth), culprit->owner,
                  also.empty() ? "" : format(" The growth also stops with: {}.", also), line_of(b),
                  culprit->next.empty() ? "" : " " + culprit->next);
  if (tried.empty())
    return format("Memory grows by {}, and no variant could be tried.{}", rate(b.base.growth), line_of(b));
  return format(
      "Memory grows by {} in every variant ({}): what grows is in the loop, the model or the library itself.{}{}",
      rate(b.base.growth), tried, lower.empty() ? "" : format(" Less with: {}.", lower),
      b.line.empty() ? " `millpond watch` says more." : line_of(b));
}

std::string bisect_text(const Bisection& b, const TextStyle& style) {
  Table table({"<variant", "growth", "rounds", "<verdict", "<what was done"});
  const auto row = [&](const VariantRun& v) {
    const std::string name = v.name.empty() ? "as it is" : v.name;
    if (!v.not_run.empty()) return;
    if (!v.no_answer.empty())
      return table.add(
          {name, "-", v.growth.periods ? std::to_string(v.growth.periods) : "-", "no answer", shown(v.no_answer, 200)});
    std::string verdict(to_string(v.kind));
    if (!v.name.empty()) {
      const Effect effect = effect_of(b.base, v);
      if (grows(b.base) && effect != Effect::kNone) verdict = effect == Effect::kRemoves ? "growth gone" : "lower";
    }
    table.add({name, v.growth.enough ? rate(v.growth) : "-", std::to_string(v.growth.periods),
               v.growth.enough ? verdict : "too short", v.done});
  };
  row(b.base);
  for (const VariantRun& v : b.variants) row(v);
  const std::string untried = left_out(b);
  return table.text(style.width, 2) + (untried.empty() ? "" : "  " + wrapped(untried, style.width, 2, 2)) + "\n" +
         wrapped(bisect_sentence(b), style.width, 0, 0);
}

Json bisect_json(const Bisection& b) {
  const auto one = [&](const VariantRun& v) {
    Json j = {{"variant", v.name.empty() ? "as it is" : v.name}, {"what", v.done}};
    if (!v.not_run.empty()) {
      j["not_run"] = v.not_run;
      return j;
    }
    if (!v.no_answer.empty()) j["no_answer"] = v.no_answer;
    j["bytes_per_period"] = v.growth.enough ? Json(v.growth.bytes) : Json();
    j["bytes_per_period_range"] = v.growth.enough ? Json::array({v.growth.range.low, v.growth.range.high}) : Json();
    j["period"] = v.growth.unit;
    j["periods"] = v.growth.periods;
    j["verdict"] = to_string(v.kind);
    j["seconds"] = v.seconds;
    if (!v.name.empty()) {
      const Effect effect = effect_of(b.base, v);
      j["effect"] = effect == Effect::kRemoves ? "removes" : effect == Effect::kLowers ? "lowers" : "none";
    }
    return j;
  };
  Json variants = Json::array();
  for (const VariantRun& v : b.variants) variants.push_back(one(v));
  const VariantRun* culprit = grows(b.base) ? b.culprit() : nullptr;
  return {{"sentence", bisect_sentence(b)},
          {"grows", grows(b.base)},
          {"removed_by", culprit ? Json(culprit->name) : Json()},
          {"line", b.line.empty() ? Json() : Json(b.line)},
          {"base", one(b.base)},
          {"variants", variants}};
}

}  // namespace millpond::report
