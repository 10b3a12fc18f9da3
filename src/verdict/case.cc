#include "verdict/case.h"

#include <algorithm>
#include <map>

#include "verdict/causes/words.h"
#include "verdict/devices.h"

namespace millpond::verdict {
namespace {

/// Frames of the user's code, outermost first.
std::vector<const Frame*> user_stack(const Site& site) {
  std::vector<const Frame*> frames;
  for (const Frame& f : site.frames)
    if (is_user(f)) frames.push_back(&f);
  std::ranges::reverse(frames);
  return frames;
}

/// In which of the parts that ages come in, at the last mark, this one lies.
size_t part_of(const Case& c, const Mark& mark) {
  const auto begin =
      std::ranges::find_if(c.evidence.marks, [](const Mark& m) { return m.period && m.kind != "timer"; });
  const double from = begin == c.evidence.marks.end() ? 0 : begin->t;
  const double share = (mark.t - from) / (c.periods.marks.back()->t - from);
  return share > 0 ? size_t(std::min(share, 1.0) * kAgeParts) : 0;  // 0 where it is no number, too
}

/// Taken early, and it stays: nearly all of it is old, or was born in the first period, which may be most of a short
/// run.
bool early(const Case& c, const SiteGroup& s) {
  double sum = 0, later = 0;
  for (Bytes b : s.age) sum += double(b.value);
  if (sum <= 0 || double((s.age[0] + s.age[1]).value) > kTable.bulk * sum || is_old(s.age)) return true;
  const size_t first = part_of(c, *c.periods.marks.front());
  for (size_t i = first + 1; i < kAgeParts; ++i) later += double(s.age[i].value);
  return first + 2 < kAgeParts && later < kTable.rest * sum;  // of the last part or two nothing could be told
}

double reserved(const Case& c, const SiteGroup& s, double block) {
  return s.block() >= block && early(c, s) ? std::max(0.0, s.bytes - s.before) : 0;
}

}  // namespace

Case::Case(const Evidence& e) : evidence(e), notes(read_notes(e)), periods(find_periods(e, notes.lead)) {
  if (e.space != "host") weigh_by_walk(notes);
  sites = live_sites(e, periods);
  leaks = find_leaks(e, notes, periods, sites);
  account = verdict::account(*this);
  growth = measure_growth(e, periods, sites.total);
  decide(*this, growth);
}

const std::vector<AccountPart>& Case::parts() const {
  static const std::vector<AccountPart> none;
  return account ? account->parts : none;
}

double Case::rose(const std::string& name) const {
  const Series s = counter(evidence, periods, name).since(periods.warm);
  return s.size() < 2 ? 0 : std::max(0.0, s.y.back() - s.y.front());
}

bool Case::still_rises(const std::string& name) const {
  const double begin = std::max(periods.warm, growth.held.onset), half = begin + 0.5 * (periods.x.back() - begin);
  const Series s = counter(evidence, periods, name).since(half);
  return s.size() >= 2 && s.y.back() > s.y.front();
}

double Case::times(std::string_view what, std::optional<Unit> unit) const {
  const double by_units = unit ? periods.rate(*unit) * periods.length() : 0;
  // Lines are counted over the whole run: warm-up has its part of them. One at the start is none after it.
  const double all = notes.count(what), length = periods.x.empty() ? 0 : periods.x.back() - periods.x.front();
  const double by_lines = length > 0 && all > 1 ? all * periods.length() / length : 0;
  return std::max(by_units, by_lines);
}

std::optional<double> Case::growth_share(const std::function<bool(const Frame&)>& like) const {
  if (sites.gained <= 0) return {};
  double sum = 0;
  for (const SiteGain& g : sites.gains)
    if (std::ranges::any_of(evidence.sites[size_t(g.site)].frames, like)) sum += g.bytes;
  return sum / sites.gained;
}

std::optional<double> Case::growth_share(const Place& place) const {
  return growth_share([&](const Frame& f) { return same_line(place, f); });
}

double Case::grown_in_blocks(double block) const {
  if (periods.marks.empty()) return 0;
  std::map<int, double> size;
  for (const SiteState& s : periods.marks.back()->sites)
    if (s.blocks > 0) size[s.site] = double(s.bytes.value) / s.blocks;
  double sum = 0;
  for (const SiteGain& g : sites.gains)
    if (const auto at = size.find(g.site); at != size.end() && at->second >= block) sum += g.bytes;
  return sum;
}

double Case::share(const Container& c) const {
  if (growth.slope.value <= 0) return 0;
  const double share = c.bytes_per_period / growth.slope.value,
               weighs = c.per_period > 0 ? c.bytes_per_period / c.per_period * c.length : 0;
  const std::vector<double>& y = (periods.live.empty() ? periods.rss : periods.live).y;
  const double rose = y.empty() ? 0 : std::ranges::max(y) - std::ranges::min(y);
  const bool wrongly = share > 2 * kTable.too_much && weighs > kTable.too_much * rose;  // there is not so much
  return wrongly ? 1 / share : std::clamp(share, 0.0, 1.0);
}

double Case::data_share() const {
  double most = 0;
  for (const Container& c : notes.containers) {
    if (!c.still || c.bounded || is_model(c.item_type) || is_figure(c.item_type)) continue;
    if (c.is_user) most = std::max(most, share(c));
  }
  return most;
}

double Case::reserved_at(const Place& place) const {
  double sum = 0;
  for (const SiteGroup& s : sites.groups)
    if (s.user && same_line(s.place, place)) sum += reserved(*this, s, kTable.large_block);
  return sum;
}

double Case::reserved_natively(bool large) const {
  double sum = 0;
  for (const SiteGroup& s : sites.groups)
    if (!s.user) sum += reserved(*this, s, large ? kTable.large_block : kTable.element);
  return sum;
}

bool Case::imports(const SiteGroup& group) const {
  double all = 0, importing = 0;
  for (const int i : group.sites) {
    const Site& site = evidence.sites[size_t(i)];
    all += double(site.total.value);
    if (std::ranges::any_of(site.frames, [](const Frame& f) { return f.file.starts_with("<frozen importlib"); }))
      importing += double(site.total.value);
  }
  return importing > kTable.most * all;
}

double Case::outlived(const SiteGroup& group) const {
  if (periods.size() < 2) return 0;
  const size_t part = part_of(*this, *periods.marks[periods.size() - 2]);
  double sum = 0;
  for (size_t i = 1; i < part && i < kAgeParts; ++i) sum += double(group.age[i].value);
  return sum;
}

double Case::kept_by_user() const {
  double sum = 0;
  for (const SiteGroup& s : sites.groups)
    if (s.user && early(*this, s) && !imports(s)) sum += s.bytes;
  return sum;
}

std::optional<Place> Case::growing_place() const {
  // What every cohort leaves behind counts before what merely rose.
  for (const bool proven : {true, false})
    for (const SiteGroup& s : sites.groups)
      if (s.user && s.grown > kTable.rest * growth.total && s.grown > kTable.pieces && (!proven || of_every_age(s.age)))
        return with_text(s.place);
  return {};
}

Place Case::loop_place(const Place& inner) const {
  // Go inwards from the outermost function as long as nearly all of the growth goes the same way.
  std::vector<std::pair<std::vector<const Frame*>, double>> stacks;
  double all = 0;
  for (const SiteGain& g : sites.gains) {
    std::vector<const Frame*> stack = user_stack(evidence.sites[size_t(g.site)]);
    if (stack.empty()) continue;
    stacks.emplace_back(std::move(stack), g.bytes);
    all += g.bytes;
  }
  std::string file, function;
  for (size_t depth = 0;; ++depth) {
    std::map<std::pair<std::string, std::string>, double> here;
    for (const auto& [stack, bytes] : stacks)
      if (depth < stack.size()) here[{stack[depth]->file, stack[depth]->function}] += bytes;
    const auto most = std::ranges::max_element(here, {}, [](const auto& e) { return e.second; });
    if (most == here.end() || most->second < kTable.one_way * all) break;
    std::tie(file, function) = most->first;
  }
  if (function.empty() || (inner.function == function && inner.file == file)) return inner;
  // Which line of that function leads to `inner`.
  for (const Site& site : evidence.sites) {
    const std::vector<const Frame*> stack = user_stack(site);
    const bool through = std::ranges::any_of(stack, [&](const Frame* f) { return same_line(inner, *f); });
    if (!through) continue;
    for (const Frame* f : stack)
      if (f->function == function && f->file == file) return with_text(verdict::place_of(*f));
  }
  return inner;
}

std::optional<Place> Case::growing_loop() const {
  const std::optional<Place> grows = growing_place();
  return grows ? loop_place(*grows) : grows;
}

std::optional<Place> Case::made_at() const {
  const CountedLine* line = notes.line("model");
  return line ? line->loop ? *line->loop : loop_place(line->place) : growing_loop();
}

Place Case::with_text(Place place) const {
  if (!place.snippet.empty()) return place;
  const auto take = [&](const Place& p) {
    if (place.snippet.empty() && same_line(p, place)) place.snippet = p.snippet;
  };
  for (const CountedLine& l : notes.lines) take(l.place);
  for (const Container& c : notes.containers) take(c.place);
  for (const Stage& s : notes.stages) take(s.place);
  for (const SeenAdvice& a : notes.advice) take(a.place);
  return place;
}

}  // namespace millpond::verdict
