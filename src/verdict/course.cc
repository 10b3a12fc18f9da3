#include "verdict/course.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "verdict/statistics.h"

namespace millpond::verdict {
namespace {

struct Even {
  std::vector<double> x, y;
};
/// Rounds that were not looked at lie on a line between those that were: only what is evenly spaced can be compared
/// round by round.
Even evenly(std::span<const double> x, std::span<const double> y) {
  constexpr size_t kMost = 1024;
  std::vector<double> gaps;
  for (size_t i = 1; i < x.size(); ++i) gaps.push_back(x[i] - x[i - 1]);
  const double length = x.back() - x.front(), step = std::max(median(std::move(gaps)), length / kMost);
  if (!(step > 0)) return {{x.begin(), x.end()}, {y.begin(), y.end()}};
  Even even;
  const size_t steps = size_t(std::lround(length / step));
  for (size_t i = 0, next = 1; i <= steps; ++i) {
    const double at = i == steps ? x.back() : x.front() + double(i) * step;
    while (next + 1 < x.size() && x[next] < at) ++next;
    const double from = x[next - 1], share = x[next] > from ? std::clamp((at - from) / (x[next] - from), 0.0, 1.0) : 1;
    even.x.push_back(at), even.y.push_back(y[next - 1] + share * (y[next] - y[next - 1]));
  }
  return even;
}

/// At the ends too: the first is no higher than the second, and the last may go on as the two before it did.
std::vector<double> level_of(std::span<const double> y) {
  std::vector<double> level = without_spikes(y);
  const size_t n = y.size();
  level[0] = std::min(y[0], level[1]);
  if (level[n - 2] >= level[n - 3]) level[n - 1] = std::min(y[n - 1], 2 * level[n - 2] - level[n - 3]);
  return level;
}

double noise_of(std::span<const double> y) {
  std::vector<double> bends;
  for (size_t i = 2; i < y.size(); ++i) bends.push_back(std::abs(y[i] - 2 * y[i - 1] + y[i - 2]));
  return kDeviation * median(std::move(bends)) / std::sqrt(6.0);
}

/// The least of all that follow: what of a level stays until the end. What rose after the last deep fall counts when it
/// is more than ever fell before.
std::vector<double> what_stays(std::span<const double> y, double least) {
  std::vector<double> stays(y.begin(), y.end());
  for (size_t i = y.size() - 1; i > 0; --i) stays[i - 1] = std::min(stays[i - 1], stays[i]);
  struct Fall {
    size_t at;
    double depth;
  };
  std::vector<Fall> falls;
  double peak = y[0], deepest = 0;
  for (size_t i = 1; i < y.size(); ++i) {
    peak = std::max(peak, y[i]);
    if (peak - y[i] <= least || (i + 1 < y.size() && y[i + 1] < y[i])) continue;
    falls.push_back({i, peak - y[i]});
    deepest = std::max(deepest, peak - y[i]);
    peak = y[i];
  }
  const auto last = std::find_if(falls.rbegin(), falls.rend(), [&](const Fall& f) { return f.depth >= 0.5 * deepest; });
  if (last == falls.rend()) return stays;
  const double floor = stays[last->at];
  if (stays.back() - floor <= kTable.tooth * deepest)
    for (double& s : stays) s = std::min(s, floor);
  return stays;
}

/// Where a level line turns into a rising one, by least squares; in one pass over prefix sums.
size_t hinge(std::span<const double> y) {
  const size_t n = y.size();
  std::vector<double> sum(n + 1, 0), squares(n + 1, 0), moments(n + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    const double v = y[i] - y[0];
    sum[i + 1] = sum[i] + v, squares[i + 1] = squares[i] + v * v, moments[i + 1] = moments[i] + double(i) * v;
  }
  size_t best = 0;
  double least = INFINITY;
  for (size_t k = 0; k + 3 < n; ++k) {
    const double before = double(k + 1), after = double(n - k), level = sum[k + 1] / before;
    const double level_error = squares[k + 1] - before * level * level;
    const double s = sum[n] - sum[k] - after * level,
                 m = moments[n] - moments[k] - double(k) * (sum[n] - sum[k]) - level * after * (after - 1) / 2;
    const double lags = (after - 1) * after * (2 * after - 1) / 6;
    const double rise = lags > 0 ? m / lags : 0;
    const double rest = squares[n] - squares[k] - 2 * level * (s + after * level) + after * level * level;
    const double error = level_error + rest - rise * m;
    if (error < least) least = error, best = k;
  }
  return best;
}

double value_at(std::span<const double> y, double i) {
  const size_t below = std::min(size_t(i), y.size() - 1), above = std::min(below + 1, y.size() - 1);
  return y[below] + (i - double(below)) * (y[above] - y[below]);
}

struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread(std::span<const double> v) {
  const double n = double(v.size()), mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
  double squares = 0;
  for (double x : v) squares += (x - mean) * (x - mean);
  return {mean, n > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

Spread rises_of_parts(std::span<const double> y, size_t from, size_t parts) {
  std::vector<double> rises;
  const double length = double(y.size() - 1 - from) / double(parts);
  for (size_t i = 0; i < parts; ++i)
    rises.push_back(value_at(y, double(from) + double(i + 1) * length) -
                    value_at(y, double(from) + double(i) * length));
  return spread(rises);
}

/// Student's t of the rises of equal parts. A tenth of the noise is added to their deviation, so that parts which are
/// alike to the byte have a t at all.
double alike(std::span<const double> y, size_t from, size_t parts, double noise) {
  const Spread s = rises_of_parts(y, from, parts);
  return s.mean / ((s.deviation + 0.1 * noise) / std::sqrt(double(parts)));
}

/// By least squares; the range is that of pairs, and that of equal parts where what is added differs from part to part.
Slope slope_of_rise(std::span<const double> x, std::span<const double> y, size_t from, size_t parts) {
  constexpr double kStudent = 2.1;  // 95 % to either side, of three to six parts
  Slope s = theil_sen(x.subspan(from), y.subspan(from));
  s.value = slope_of(x.subspan(from), y.subspan(from));
  const double off =
      kStudent * rises_of_parts(y, from, parts).deviation * std::sqrt(double(parts)) / (x.back() - x[from]);
  s.range = {std::min(s.range.low, s.value - off), std::max(s.range.high, s.value + off)};
  return s;
}

/// Where a rise in equal parts turns into a faster one in equal parts: something more is kept since then. `from`:
/// nowhere.
size_t faster_from(std::span<const double> y, size_t from, double noise) {
  size_t turn = from;
  double best = kTable.alike_few;
  for (size_t at = from + kTable.few; at + kTable.few < y.size(); ++at) {
    const double before = (y[at] - y[from]) / double(at - from), after = (y.back() - y[at]) / double(y.size() - 1 - at);
    if (after < kTable.faster * before) continue;
    const double worse = std::min(alike(y.first(at + 1), from, 3, noise), alike(y, at, 3, noise));
    if (worse > best) best = worse, turn = at;
  }
  return turn;
}

/// Without a round or two that gained far more than all others, which are alike: something else was taken then, once.
/// Walks and stairs have no such rounds.
std::vector<double> without_jumps(std::vector<double> y, double least) {
  std::vector<double> gains, off;
  for (size_t i = 1; i < y.size(); ++i) gains.push_back(y[i] - y[i - 1]);
  const double usual = median(gains);
  for (double g : gains) off.push_back(std::abs(g - usual));
  const double deviation = kDeviation * median(std::move(off)), far = kTable.jump * deviation;
  const auto jumps = [&](double gain) { return gain - usual > std::max(far, least); };
  const size_t many = size_t(std::ranges::count_if(gains, jumps));
  if (deviation >= 0.5 * usual || many > 2 || many * kTable.rare > gains.size()) return y;
  double taken = 0;
  for (size_t i = 1; i < y.size(); ++i) {
    if (jumps(gains[i - 1])) taken += gains[i - 1] - usual;
    y[i] -= taken;
  }
  return y;
}

/// The last third of all that rose gained less than half of the first, by more than chance, and the middle lies
/// between, or is far above it.
bool slows(std::span<const double> y, size_t from) {
  std::vector<double> gains;
  for (size_t i = from + 1; i < y.size(); ++i) gains.push_back(y[i] - y[i - 1]);
  const size_t third = gains.size() / 3;
  if (third < 2) return false;
  const std::span<const double> all(gains);
  const Spread first = spread(all.first(third)), middle = spread(all.subspan(third, third)),
               last = spread(all.last(third));
  const double error = off_together(first.deviation, last.deviation) / std::sqrt(double(third));
  const bool falls = last.mean < 0.75 * middle.mean && middle.mean < 0.9 * first.mean;
  return (falls || last.mean < kTable.slows / 2 * middle.mean) && last.mean < kTable.slows * first.mean &&
         first.mean - last.mean > 1.5 * error;
}

}  // namespace

std::string_view to_string(Move move) {
  constexpr std::array<std::string_view, 7> kNames = {"short", "flat", "grows", "slows", "stopped", "step", "unclear"};
  return kNames.at(size_t(move));
}

double Rate::off() const { return k95 * std::sqrt(variance); }

Rate rate(std::span<const double> seen_x, std::span<const double> seen_y) {
  if (seen_y.size() < 3 || seen_x.size() != seen_y.size() || seen_x.back() <= seen_x.front()) return {};
  const Even even = evenly(seen_x, seen_y);
  const std::span<const double> x(even.x), y(even.y);
  Rate r{slope_of(x, y), 0};
  const size_t n = y.size() - 1, lags = std::min<size_t>(4, n / 8);
  const double mean = (y.back() - y.front()) / double(n);
  const auto together = [&](size_t lag) {  // covariance of gains so many rounds apart
    double sum = 0;
    for (size_t i = lag; i < n; ++i) sum += (y[i + 1] - y[i] - mean) * (y[i + 1 - lag] - y[i - lag] - mean);
    return sum / double(n);
  };
  double all = together(0);
  for (size_t lag = 1; lag <= lags; ++lag) all += 2 * (1 - double(lag) / double(lags + 1)) * together(lag);
  const double looks = lags > 0 ? std::max(0.0, -together(1)) : 0;
  // Least squares of what adds up have 6/5 of the variance of the mean gain; few rounds know their variance badly
  // (Student).
  const double few = 1 + 2.5 / double(n), rounds = double(n), length = x.back() - x.front();
  r.variance =
      few * few *
      (1.2 * std::max(0.0, all) * rounds * rounds / std::max(1.0, rounds - 1 - double(lags)) + 12 * looks / rounds) /
      (length * length);
  return r;
}

namespace {

/// A round that gained most of what rose at once, with next to nothing around it: something was taken once. Its index
/// in y; 0: there is none.
size_t lone_jump(std::span<const double> y, double least) {
  size_t at = 0;
  double most = least;
  for (size_t i = 1; i < y.size(); ++i)
    if (y[i] - y[i - 1] > most) most = y[i] - y[i - 1], at = i;
  if (at == 0 || most < kTable.lone * (y.back() - y.front())) return 0;
  const size_t from = at - std::min(at, kTable.few), to = std::min(at + kTable.few, y.size() - 1);
  return std::abs(y[to] - y[from] - most) < kTable.lone * most ? at : 0;
}

Course course_until_end(std::span<const double> seen_x, std::span<const double> seen_y, double grain) {
  Course c;
  if (seen_y.size() < size_t(kTable.fewest) || seen_x.size() != seen_y.size()) return c;
  const Even even = evenly(seen_x, seen_y);
  const std::span<const double> x(even.x), y(even.y);
  const size_t n = y.size();
  if (n < size_t(kTable.fewest)) return c;
  std::vector<double> level = level_of(y);
  c.noise = std::max(noise_of(level), grain / kTable.noise);
  double& least = c.least = kTable.noise * c.noise;
  level = without_jumps(std::move(level), least);
  const std::vector<double> stays = what_stays(level, least);
  c.total = stays.back() - stays.front();
  c.move = Move::kFlat;
  if (c.total <= 2 * least) return c;
  least = std::max(least, kTable.worth * c.total);
  const auto last_below = [&](double bound) {
    return size_t(std::ranges::upper_bound(stays, bound) - stays.begin());
  };  // stays does not fall
  const size_t risen = last_below(stays.back() - least);  // the first of the last level
  const size_t onset = std::min(hinge(stays), risen - 1);
  size_t pause = 0, since = 0;  // from the first rise on: what lies before it is no pause, and one step has none
  for (size_t i = onset, from = onset; i <= risen; ++i)
    if (stays[i] >= stays[from] + least) pause = std::max(pause, since > 0 ? i - since : 0), since = from = i;
  c.onset = x[onset], c.last = x[risen];
  const auto slope_until = [&](size_t end) {
    return theil_sen(x.subspan(onset, end - onset), std::span(level).subspan(onset, end - onset));
  };
  const size_t quiet = std::max(size_t(kTable.quiet), size_t(std::ceil(kTable.longest * double(pause))));
  if (n - 1 - risen >= quiet) {
    c.move = Move::kStopped;
    c.slope = slope_until(risen + 1);
    return c;
  }
  c.slope = slope_until(n);
  if (risen - onset < kTable.few) {
    // One step is no rate: it is over when the rounds since then brought nothing, and may be the beginning of something
    // before.
    c.move = double(n - 1 - risen) >= kTable.late ? Move::kStopped : Move::kStep;
    return c;
  }
  const size_t parts = std::clamp((n - 1 - onset) / 2, size_t{3}, size_t(kTable.parts));
  c.alike = std::max(alike(level, onset, parts, c.noise), alike(stays, onset, parts, c.noise));
  c.slope = slope_of_rise(x, level, onset, parts);
  const size_t begun = last_below(stays.front() + least) - 1;
  if (slows(level, begun)) return c.move = Move::kSlows, c;
  c.move = c.alike >= (parts > 4 ? kTable.alike : kTable.alike_few) ? Move::kGrows : Move::kUnclear;
  // It may just have ended: nothing came in rounds that should have brought more than enough to be seen.
  const double idle = x.back() - c.last;
  const double quiet_rounds = double(n - 1 - risen), missing = idle * c.slope.value / least;
  const bool ended =
      quiet_rounds >= 2 && ((quiet_rounds > kTable.longest * double(pause) && missing > kTable.missing) ||
                            (quiet_rounds > double(pause) && missing > 2 * kTable.missing));
  if (ended) c.move = Move::kUnclear;
  if (c.move == Move::kGrows || ended) return c;
  if (const size_t turn = faster_from(level, begun, c.noise); turn > begun) {
    c.move = Move::kGrows;
    c.onset = x[turn];
    c.slope = slope_of_rise(x, level, turn, 3);
  }
  return c;
}

}  // namespace

Course course(std::span<const double> x, std::span<const double> y, double grain) {
  const Course all = course_until_end(x, y, grain);
  // What was taken at once makes all that came later look uneven, or like less and less: that is looked at by itself.
  if (all.move != Move::kUnclear && all.move != Move::kSlows) return all;
  const size_t jump = lone_jump(y, kTable.noise * all.noise);
  if (jump == 0 || y.size() - jump < size_t(kTable.fewest)) return all;
  const Course later = course(x.subspan(jump), y.subspan(jump), grain);
  return later.move == Move::kGrows ? later : all;
}

}  // namespace millpond::verdict
