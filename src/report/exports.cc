#include "report/exports.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "report/text.h"
#include "verdict/case.h"

namespace millpond::report {
namespace {

using verdict::Evidence;
using verdict::Frame;
using verdict::Mark;

constexpr size_t kLongestFrame = 400;

Weighed weighed(const Evidence& e, std::string name, const std::map<int, std::pair<double, double>>& by_site) {
  Weighed w{std::move(name), {}};
  for (const auto& [site, value] : by_site)
    if (site >= 0 && size_t(site) < e.sites.size() && value.first >= 1)
      w.stacks.push_back({&e.sites[size_t(site)], value.first, std::max(0.0, value.second)});
  std::ranges::stable_sort(w.stacks, std::ranges::greater{}, &Weighed::Stack::bytes);
  return w;
}

std::string frame_name(const Frame& f) { return f.function.empty() ? "?" : shown(f.function, kLongestFrame); }

}  // namespace

Weighed live_stacks(const Evidence& e, const Moment& moment) {
  std::map<int, std::pair<double, double>> by_site;
  for (const verdict::SiteState& s : moment.mark->sites) by_site[s.site] = {double(s.bytes.value), s.blocks};
  return weighed(e, "alive " + moment.text, by_site);
}

Weighed grown_stacks(const Evidence& e) {
  const verdict::Periods periods = verdict::Case(e).periods;  // those the verdict was made by
  const Mark *first = nullptr, *last = nullptr;
  for (size_t i = 0; i < periods.size(); ++i) {
    const Mark* m = periods.marks[i];
    if (m->sites.empty() || periods.x[i] < periods.warm) continue;
    if (!first) first = m;
    last = m;
  }
  if (first == last) {
    first = last = nullptr;
    for (const Mark& m : e.marks) {
      if (m.sites.empty()) continue;
      if (!first) first = &m;
      last = &m;
    }
  }
  if (!first || first == last) return {"growth", {}};
  std::map<int, std::pair<double, double>> by_site;
  for (const verdict::SiteState& s : last->sites) by_site[s.site] = {double(s.bytes.value), s.blocks};
  for (const verdict::SiteState& s : first->sites)
    by_site[s.site].first -= double(s.bytes.value), by_site[s.site].second -= s.blocks;
  return weighed(e, format("growth from {:.1f} s to {:.1f} s", first->t, last->t), by_site);
}

std::string collapsed(const Weighed& w) {
  // One stack is one line, ';' parts its frames and the last blank its weight.
  std::map<std::string, double> lines;
  for (const Weighed::Stack& s : w.stacks) {
    std::string line;
    for (auto f = s.site->frames.rbegin(); f != s.site->frames.rend(); ++f) {
      std::string name = frame_name(*f);
      if (!f->file.empty())
        name += f->line > 0 ? format(" ({}:{})", shown(f->file, kLongestFrame), f->line)
                            : format(" ({})", shown(f->file, kLongestFrame));
      std::ranges::replace(name, ';', ':');
      line += (line.empty() ? "" : ";") + name;
    }
    lines[line.empty() ? "?" : line] += s.bytes;
  }
  std::string out;
  for (const auto& [line, bytes] : lines) out += format("{} {:.0f}\n", line, bytes);
  return out;
}

std::string speedscope(const std::vector<Weighed>& profiles, const std::string& name) {
  using Json = nlohmann::ordered_json;
  Json frames = Json::array(), list = Json::array();
  std::map<std::tuple<std::string, std::string, int>, size_t> seen;
  for (const Weighed& w : profiles) {
    Json samples = Json::array(), weights = Json::array();
    double sum = 0;
    for (const Weighed::Stack& s : w.stacks) {
      Json sample = Json::array();
      for (auto f = s.site->frames.rbegin(); f != s.site->frames.rend(); ++f) {
        const auto [at, fresh] = seen.try_emplace({f->file, f->function, f->line}, frames.size());
        if (fresh) {
          Json frame = {{"name", frame_name(*f)}};
          if (!f->file.empty()) frame["file"] = shown(f->file, kLongestFrame);
          if (f->line > 0) frame["line"] = f->line;
          frames.push_back(std::move(frame));
        }
        sample.push_back(at->second);
      }
      samples.push_back(std::move(sample));
      weights.push_back(std::llround(s.bytes));
      sum += double(std::llround(s.bytes));
    }
    list.push_back({{"type", "sampled"},
                    {"name", shown(w.name)},
                    {"unit", "bytes"},
                    {"startValue", 0},
                    {"endValue", sum},
                    {"samples", samples},
                    {"weights", weights}});
  }
  const Json whole = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                      {"shared", {{"frames", std::move(frames)}}},
                      {"profiles", std::move(list)},
                      {"name", shown(name, kLongestFrame)},
                      {"activeProfileIndex", 0},
                      {"exporter", "millpond"}};
  return whole.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace millpond::report
