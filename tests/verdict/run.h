// Run: evidence made up for a test, in a few words.
//
//   Run().rss({600, 610, 620, ...}).live_from(300, 10).probe(4, 640, 640, 635).note(R"({"note": "holders",
//   ...})").judged()
//
// Megabytes are 10^6 bytes here, as in shared/cases.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "verdict/verdict.h"

namespace millpond::verdict {

inline Bytes mb(double n) { return Bytes{int64_t(std::llround(n * 1e6))}; }

enum class Life { kLeak, kOnce, kChurn, kExtended };

class Run {
 public:
  explicit Run(std::string kind = "epoch", double seconds = 10) : kind_(std::move(kind)), seconds_(seconds) {}

  /// One period for each value.
  Run& rss(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      Mark m;
      m.t = 20 + seconds_ * double(i + 1);
      m.kind = kind_;
      m.name = kind_ + " 7";
      m.index = int64_t(i);
      m.period = true;
      m.rss = mb(values[i]);
      evidence.marks.push_back(std::move(m));
      evidence.peak_rss = std::max(evidence.peak_rss, mb(values[i]));
    }
    evidence.seconds = 20 + seconds_ * double(values.size());
    if (!values.empty() && evidence.baseline_rss.value == 0) evidence.baseline_rss = mb(values.front());
    return *this;
  }
  Run& grow(double from, double by, int n) {
    std::vector<double> v;
    for (int i = 0; i < n; ++i) v.push_back(from + by * i);
    return rss(v);
  }
  Run& baseline(double value) { return evidence.baseline_rss = mb(value), *this; }
  Run& live(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      evidence.marks[i].heap_in_use = mb(values[i] * 0.7);
      evidence.marks[i].heap_mapped = mb(values[i] * 0.1);
      evidence.marks[i].python_arenas = mb(values[i] * 0.2);
    }
    return *this;
  }
  Run& live_from(double from, double by) {
    std::vector<double> v;
    for (size_t i = 0; i < evidence.marks.size(); ++i) v.push_back(from + by * double(i));
    return live(v);
  }
  Run& free(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) evidence.marks[i].heap_free = mb(values[i]);
    return *this;
  }
  Run& arenas(double value) {
    for (Mark& m : evidence.marks) m.python_arenas = mb(value);
    return *this;
  }
  Run& tree(const std::vector<double>& values, int processes) {
    for (size_t i = 0; i < values.size(); ++i)
      evidence.marks[i].tree_private_dirty = mb(values[i]), evidence.marks[i].processes = processes;
    return *this;
  }
  /// Just after period `at` (from 1).
  Run& probe(int at, double before, double after_gc, double after_trim, int64_t collected = 0) {
    evidence.probes.push_back(
        {evidence.marks[size_t(at - 1)].t + 0.1, at, mb(before), mb(after_gc), mb(after_trim), collected});
    return *this;
  }
  Run& note(const std::string& text) { return evidence.notes.push_back(text), *this; }
  Run& framework(const std::string& name, const std::string& backend = "") {
    return note(R"({"note": "framework", "name": ")" + name + R"(", "version": "1", "backend": ")" + backend + "\"}");
  }
  Run& counter(const std::string& name, double from, double by) {
    for (size_t i = 0; i < evidence.marks.size(); ++i)
      evidence.counters[name].emplace_back(evidence.marks[i].t, from + by * double(i));
    return *this;
  }
  Run& unit(Unit unit, double by) {
    for (size_t i = 0; i < evidence.marks.size(); ++i)
      evidence.marks[i].units[size_t(unit)] = uint64_t(std::llround(by * double(i + 1)));
    return *this;
  }
  Run& line(const std::string& what, const std::string& file, int number, const std::string& function,
            const std::string& text, int count) {
    nlohmann::json call = {{"what", what},         {"file", file}, {"line", number},
                           {"function", function}, {"text", text}, {"count", count}};
    note(nlohmann::json{{"note", "lines"}, {"calls", {call}}}.dump());
    return *this;
  }
  /// A line under which a tf.function was traced so often, each time for the same reason.
  Run& traced(const std::string& file, int number, const std::string& why, int count) {
    nlohmann::json call = {{"what", "trace"},   {"file", file},   {"line", number},       {"function", "main"},
                           {"text", "step(x)"}, {"count", count}, {"why", {{why, count}}}};
    note(nlohmann::json{{"note", "lines"}, {"calls", {call}}}.dump());
    return *this;
  }
  Run& holder(const std::string& type, const std::string& item, double mb_per_period, const std::string& name,
              const std::string& file, int number, const std::string& function, const std::string& text,
              nlohmann::json bounded = nullptr, double per_period = 1, nlohmann::json items = nullptr) {
    nlohmann::json c = {{"items", std::move(items)},
                        {"type", type},
                        {"length", 20},
                        {"per_period", per_period},
                        {"item_type", item},
                        {"bytes_per_period", mb_per_period * 1e6},
                        {"exact", true},
                        {"holder", name},
                        {"chain", {type + " of 20", name}},
                        {"file", file},
                        {"line", number},
                        {"function", function},
                        {"text", text},
                        {"found_by", "source"},
                        {"bounded", bounded}};
    containers_.push_back(std::move(c));
    return *this;
  }
  Run& type(const std::string& name, double count, double per_period) {
    types_.push_back({{"type", name}, {"count", count}, {"per_period", per_period}, {"bytes", 0}});
    return *this;
  }
  Run& stage(const std::string& op, int number, const std::string& text, nlohmann::json buffer = nullptr) {
    note(nlohmann::json{{"note", "dataset"},
                        {"op", op},
                        {"buffer", std::move(buffer)},
                        {"file", "data.py"},
                        {"line", number},
                        {"text", text}}
             .dump());
    return *this;
  }
  Run& limit(const std::string& name, double value) { return evidence.limits.push_back({name, mb(value)}), *this; }

  /// A site with live bytes at every period: `by` MB at each (leak: they stay; once: `by` at the first; churn: the
  /// newest only; extended: one block, each time replaced by a larger one).
  Run& site(std::vector<Frame> frames, double by, Life life, double block_kib = 256, double before = 0) {
    Site s;
    s.frames = std::move(frames);
    const int id = int(evidence.sites.size()), n = int(evidence.marks.size());
    s.total = mb(by * (life == Life::kOnce ? 1 : n));
    s.freed = life == Life::kChurn ? mb(by * (n - 1)) : Bytes{};
    evidence.sites.push_back(std::move(s));
    for (int i = 0; i < n; ++i) {
      SiteState state;
      state.site = id;
      for (int born = 0; born <= i; ++born) {
        if (life == Life::kOnce && born > 0) break;
        if (life == Life::kChurn && born < i) continue;
        const int bin = i == 0 ? 7 : std::min(7, born * 8 / (i + 1));
        state.age[size_t(life == Life::kOnce ? 0 : bin)] += mb(by);
        state.bytes += mb(by);
      }
      state.age[0] += mb(before);
      state.bytes += mb(before);
      state.blocks = double(state.bytes.value) / (block_kib * 1024);
      if (life == Life::kExtended) state.blocks = 1, state.age = {}, state.age.back() = state.bytes;
      evidence.marks[size_t(i)].sites.push_back(state);
    }
    return *this;
  }
  Verdict judged() {
    if (!containers_.empty() || !types_.empty()) {
      note(nlohmann::json{{"note", "holders"}, {"containers", containers_}, {"types", types_}}.dump());
      containers_ = types_ = nlohmann::json::array();
    }
    return judge(evidence);
  }

  Evidence evidence;

 private:
  std::string kind_;
  double seconds_;
  nlohmann::json containers_ = nlohmann::json::array(), types_ = nlohmann::json::array();
};

inline Frame user(const std::string& file, int line, const std::string& function) {
  return {file, function, line, false, true};
}
inline Frame library(const std::string& file, int line = 1, const std::string& function = "f") {
  return {file, function, line, false, false};
}
inline Frame native(const std::string& module, const std::string& function) {
  return {module, function, 0, true, false};
}

inline std::string first_cause(const Verdict& v) { return v.findings.empty() ? "" : v.findings.front().cause; }
inline int first_line(const Verdict& v) {
  return v.findings.empty() || !v.findings.front().blame ? 0 : v.findings.front().blame->line;
}

}  // namespace millpond::verdict
