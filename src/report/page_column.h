// How numbers and names stand in the page's document: columns of differences, and a list in which every name is told
// once.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/accounts.h"
#include "report/page.h"
#include "report/page_growth.h"

namespace millpond::report {

/// What a run file may make of numbers is bounded before it is an integer.
inline int64_t bounded(double n) { return std::isfinite(n) ? std::llround(std::clamp(n, -1e15, 1e15)) : 0; }

/// Differences of neighbours.
class Column {
 public:
  void add(int64_t v) {
    list_.push_back(v - last_);
    last_ = v;
  }
  void add(const std::optional<int64_t>& v) {
    if (v)
      add(*v);
    else
      list_.push_back(nullptr);
  }
  void add(const std::optional<Bytes>& v) { add(v ? std::optional<int64_t>(v->value) : std::nullopt); }
  void seconds(double t) { add(int64_t(std::llround(std::clamp(t, 0.0, 1e12) * 1000))); }
  PageJson take() { return std::move(list_); }

 private:
  PageJson list_ = PageJson::array();
  int64_t last_ = 0;
};

class PageStrings {
 public:
  int64_t operator()(const std::string& text) {
    const auto [at, fresh] = ids_.try_emplace(text, int64_t(list_.size()));
    if (fresh) list_.push_back(cut(text));
    return at->second;
  }
  PageJson take() { return std::move(list_); }

 private:
  std::unordered_map<std::string, int64_t> ids_;
  PageJson list_ = PageJson::array();
};

/// Of more points than fit, the least and the most of every stretch, so that no peak is lost and every number shown was
/// measured.
template <class Value>
std::vector<size_t> peaks_of(size_t n, size_t most, Value value) {
  if (n <= most) return spread(n, most);
  std::set<size_t> chosen{0, n - 1};
  const size_t stretches = most / 2 - 1;
  for (size_t s = 0; s < stretches; ++s) {
    const size_t from = s * n / stretches, to = (s + 1) * n / stretches;
    size_t low = from, high = from;
    for (size_t i = from; i < to; ++i) {
      if (value(i) < value(low)) low = i;
      if (value(i) > value(high)) high = i;
    }
    chosen.insert(low), chosen.insert(high);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace millpond::report
