#include "passes/recompute_to.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_set>

namespace millpond::passes {

namespace {

// What a processor computes while a byte comes from memory: a core of the last years does some ten times 10^10
// operations a second and reads some 10^10 bytes.
constexpr double kFlopsPerByte = 8;
// A round aims at this share less than the present peak, and at a quarter of a percent where that much is not to be
// had. Looking so far ahead, it drops what is alive over many large calls before what is alive at the largest only: for
// resnet50 at half its arena that takes half of the arithmetic that a round of 2 % takes.
constexpr double kShare = 0.25, kSmallShare = 0.0025;
// A round ends early where a value is only worth this share of the first one that it chose: nearer to the peak there
// may be better ones.
constexpr double kMuchLess = 0.125;
// It can stop where the peak is this share of the first one less than at the last such place.
constexpr double kBetween = 0.005;
// The path ends where as much would be done again as the step does, and where the search itself has looked at so many
// operands: some seconds, half a minute for a graph of 30,000 calls.
constexpr double kMostAgain = 1;
constexpr double kMostWork = 4e8;

struct Choice {
  int value, before;
  Schedule::Ways ways;
  double cost = 0;
};

class Search {
 public:
  Search(graph::Graph& graph, const RecomputeOptions& options) : graph_(graph), options_(options) {}

  Recomputed run() {
    Schedule s(graph_, options_.schedule);
    look(s);
    Recomputed r;
    r.target = options_.target;
    r.step_flops = s.flops(), r.step_moved = s.moved();
    const int64_t first = now_.peak;
    r.before = r.after = arena(now_);
    if (r.reached()) return r;

    points_.push_back({0, first});
    most_ = (1 + kMostAgain) * cost(s);
    for (double share = kShare; goes_on(s);) {
      const int64_t before = now_.peak;
      const int64_t less = std::max(int64_t{1}, int64_t(double(before) * share));
      const bool chosen = round(s, before - less, r);
      if (r.reached()) {
        finish(s, r);
        return r;
      }
      if (!chosen || now_.peak >= before) {
        if (share == kSmallShare) break;
        share = kSmallShare;
      } else {
        share = kShare;
      }
    }

    r.exhausted = work_ < kMostWork;
    // The least that it came to. A plan can be no smaller than the peak, so few points have to be planned.
    std::vector<Point> points = points_;
    std::ranges::stable_sort(points, {}, &Point::peak);
    Point best{0, 0};
    r.after = r.before;
    for (const Point& p : points) {
      if (Bytes{p.peak} >= r.after) break;
      if (const Bytes size = arena(at(p.choices)); size < r.after) r.after = size, best = p;
    }
    if (best.choices == 0) return r;
    Schedule again = replay(best.choices);
    finish(again, r);
    return r;
  }

 private:
  struct Point {
    int choices;
    int64_t peak;
  };
  // A value in the queue. Unless it was tried on the schedule as it is now (`tried`), this is the best that it can be.
  struct Entry {
    int bucket;    // of the score, in powers of two
    double alive;  // bytes and calls that it keeps alive, for each that it frees
    double score;  // bytes over the aim taken off all calls, for the cost
    int value;
    size_t tried;  // after how many choices
    Choice choice;
    bool operator<(const Entry& o) const {
      if (bucket != o.bucket) return bucket < o.bucket;
      if (alive != o.alive) return alive > o.alive;
      if (score != o.score) return score < o.score;
      return value > o.value;
    }
  };
  // The time between two uses of a value that has most bytes over the aim.
  struct Gap {
    int before = Schedule::kNone;  // the call behind it
    int calls = 0;                 // in between
    int over = 0;                  // those of them that are over the aim
    int64_t bytes = 0;             // by how much, all together
  };

  static double cost(const Schedule& s) { return s.flops() + kFlopsPerByte * s.moved(); }
  bool goes_on(const Schedule& s) const { return work_ < kMostWork && cost(s) < most_; }

  Bytes arena(const Schedule::Profile& p) const { return plan::solve(Schedule::problem(p), options_.plan).size; }
  Schedule replay(int choices) const {
    Schedule s(graph_, options_.schedule);
    Schedule::Profile p;
    for (int i = 0; i < choices; ++i) {
      const Choice& c = choices_[size_t(i)];
      s.measure(p);
      s.make_again(c.value, c.before, c.ways, p);
    }
    return s;
  }
  Schedule::Profile at(int choices) const {
    Schedule::Profile p;
    replay(choices).measure(p);
    return p;
  }

  void look(const Schedule& s) {
    s.measure(now_);
    work_ += double(3 * s.order().size());
  }
  // What is over the aim, summed up to each call, and the places where each value is read.
  void aim(const Schedule& s, int64_t aim) {
    aim_ = aim;
    const size_t count = s.order().size();
    over_.assign(count + 1, 0);
    bytes_over_.assign(count + 1, 0);
    for (size_t i = 0; i < count; ++i) {
      const int64_t over = std::max<int64_t>(0, now_.live[i] - aim);
      over_[i + 1] = over_[i] + (over > 0);
      bytes_over_[i + 1] = bytes_over_[i] + over;
    }
    reads_begin_.assign(size_t(s.values()) + 1, 0);
    const auto each_read = [&](auto f) {
      for (size_t i = 0; i < count; ++i)
        for (const int v : s.call(s.order()[i]).reads)
          if (v != Schedule::kNone) f(size_t(v), int(i));
    };
    each_read([&](size_t v, int) { ++reads_begin_[v + 1]; });
    for (size_t v = 0; v + 1 < reads_begin_.size(); ++v) reads_begin_[v + 1] += reads_begin_[v];
    reads_.resize(size_t(reads_begin_.back()));
    std::vector<int> next(reads_begin_.begin(), reads_begin_.end() - 1);
    each_read([&](size_t v, int place) { reads_[size_t(next[v]++)] = place; });
  }

  Gap widest(const Schedule& s, int value) const {
    Gap best;
    const Schedule::Value& v = s.value(value);
    if (v.size == 0 || v.maker == Schedule::kNone || v.fixed || v.escapes || !s.work_of(v.maker).repeatable)
      return best;
    int from = now_.place[size_t(v.maker)];
    if (from == Schedule::kNone) return best;
    for (int k = reads_begin_[size_t(value)]; k < reads_begin_[size_t(value) + 1]; ++k) {
      const int to = reads_[size_t(k)];
      if (to > from + 1) {
        const int over = over_[size_t(to)] - over_[size_t(from) + 1];
        const int64_t bytes = bytes_over_[size_t(to)] - bytes_over_[size_t(from) + 1];
        if (over > 0 && (bytes > best.bytes || (bytes == best.bytes && over > best.over)))
          best = {s.order()[size_t(to)], to - from - 1, over, bytes};
      }
      from = std::max(from, to);
    }
    return best;
  }

  static int bucket(double score) { return int(std::floor(std::log2(std::max(score, 1e-300)))); }

  void enter(const Schedule& s, int value) {
    const Gap gap = widest(s, value);
    if (gap.before == Schedule::kNone) return;
    const Schedule::Value& v = s.value(value);
    const Schedule::Work& w = s.work_of(v.maker);
    const double gain = std::min(double(gap.bytes), double(gap.over) * double(v.size));
    // Where nobody reads it before that time, and none of the call's other values, the call does not run twice but later.
    const bool later = std::ranges::all_of(s.call(v.maker).makes, [&](int o) {
      if (o != value) return o != Schedule::kNone && s.value(o).readers == 0;
      return reads_[size_t(reads_begin_[size_t(o)])] >= now_.place[size_t(gap.before)];
    });
    const double score = gain / (later ? 1 : std::max(1.0, w.flops + kFlopsPerByte * w.moved));
    queue_.push({bucket(score), 0, score, value, kUntried, {}});
  }

  // The value as the schedule is now; the schedule comes out as it went in. False: it takes nothing off.
  bool try_out(Schedule& s, Entry& e) {
    const Gap gap = widest(s, e.value);
    if (gap.before == Schedule::kNone) return false;
    bool found = false;
    Schedule::Used used;
    constexpr Schedule::Ways kWays[] = {{}, {.live_on = 1}, {.earlier = false}};
    for (const Schedule::Ways& ways : kWays) {
      if (ways != kWays[0] && !(ways.earlier ? used.others : used.earlier)) continue;  // comes to the same
      const double before = cost(s);
      if (!s.make_again(e.value, gap.before, ways, now_)) continue;
      if (ways == kWays[0]) used = s.used();
      const double added = std::max(1.0, cost(s) - before);
      s.measure(tried_);
      work_ += double(6 * s.order().size());
      double over = 0, alive = 0;
      for (size_t i = 0; i < s.order().size(); ++i) {
        over += double(std::max<int64_t>(0, tried_.live[i] - aim_));
        const size_t call = size_t(s.order()[i]);
        if (call >= now_.place.size() || now_.place[call] == Schedule::kNone) continue;
        alive += double(std::max<int64_t>(0, tried_.live[i] - now_.live[size_t(now_.place[call])]));
      }
      s.undo();
      const double gain = double(bytes_over_.back()) - over;
      if (gain <= 0 || tried_.peak > now_.peak) continue;
      Entry one{0,
                alive / (double(s.value(e.value).size) * gap.calls),
                gain / added,
                e.value,
                choices_.size(),
                {e.value, gap.before, ways, added}};
      one.bucket = bucket(one.score);
      if (!found || e < one) e = one, found = true;
    }
    return found;
  }

  // Is this a place on the path to stop at, and does the step fit there?
  bool arrived(Recomputed& r, bool end_of_round) {
    const int64_t less = points_.back().peak - now_.peak, step = int64_t(kBetween * double(points_[0].peak));
    if (less <= 0 || (less < step && !end_of_round)) return false;
    points_.push_back({int(choices_.size()), now_.peak});
    if (now_.peak > r.target.value) return false;
    r.after = arena(now_);
    return r.reached();
  }

  // Chooses values until nothing is over the aim, or until the step fits; false: nothing could be chosen.
  bool round(Schedule& s, int64_t goal, Recomputed& r) {
    queue_ = {};
    aim(s, goal);
    for (int v = 0; v < s.values(); ++v) enter(s, v);
    const size_t before = choices_.size();
    double first_score = 0;  // of those that cost anything
    while (now_.peak > goal && !queue_.empty() && goes_on(s)) {
      Entry e = queue_.top();
      queue_.pop();
      if (e.tried != choices_.size()) {
        const int best = e.bucket;
        if (!try_out(s, e)) continue;
        if (e.bucket != best || e.alive > 0) {
          queue_.push(e);
          continue;
        }
      }
      if (e.score < kMuchLess * first_score) break;
      if (first_score == 0 && e.choice.cost > 1) first_score = e.score;
      const int values = s.values();
      s.make_again(e.choice.value, e.choice.before, e.choice.ways, now_);
      choices_.push_back(e.choice);
      look(s);
      if (arrived(r, false)) return true;
      aim(s, goal);
      for (int v = values; v < s.values(); ++v) enter(s, v);
      enter(s, e.value);  // there may be another time in which it is not read
    }
    return arrived(r, true) || choices_.size() > before;
  }

  void finish(const Schedule& s, Recomputed& r) {
    r.added_flops = s.flops() - r.step_flops;
    r.added_moved = s.moved() - r.step_moved;
    std::unordered_set<int> ran;
    for (const int c : s.order()) {
      if (ran.insert(s.call(c).work).second) continue;
      const Schedule::Work& w = s.work_of(c);
      Bytes bytes;
      for (const int v : s.call(c).makes)
        if (s.value(v).readers > 0) bytes += Bytes{s.value(v).size};
      r.calls.push_back({w.node->layer, std::string(w.node->op->name()), bytes, w.flops});
    }
    s.write(graph_);
  }

  static constexpr size_t kUntried = size_t(-1);
  graph::Graph& graph_;
  const RecomputeOptions& options_;
  Schedule::Profile now_, tried_;
  int64_t aim_ = 0;
  std::vector<int> over_, reads_begin_, reads_;
  std::vector<int64_t> bytes_over_;
  std::priority_queue<Entry> queue_;
  std::vector<Choice> choices_;
  std::vector<Point> points_;
  double work_ = 0;  // operands looked at, about
  double most_ = 0;  // that the step may cost
};

}  // namespace

Recomputed recompute_to(graph::Graph& graph, const RecomputeOptions& options) { return Search(graph, options).run(); }

}  // namespace millpond::passes
