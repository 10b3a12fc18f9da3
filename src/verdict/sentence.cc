#include "verdict/sentence.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/causes/words.h"
#include "verdict/process_levels.h"

namespace millpond::verdict {
namespace {

std::string lower_first(std::string text) {
  // "TensorFlow" and "JAX" keep their letters.
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1]))) {
    const std::string word = text.substr(0, text.find(' '));
    for (size_t i = 1; i < word.size(); ++i)
      if (std::isupper(static_cast<unsigned char>(word[i]))) return text;
    if (word == "Keras" || word == "Python" || word == "Adam") return text;
    text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
  }
  if (text.starts_with("A ")) text[0] = 'a';
  return text;
}

std::string leak(const Finding& f, const std::string& device) {
  std::string text =
      format("Memory{} grows by {} {}: ", device.empty() ? "" : " of " + device, amount(f.bytes_per_unit), each(f));
  const bool nameless = f.cause == "P1" || f.cause == "N1" || f.holder.empty();
  // Without debug information a function is all that can be named.
  if (f.blame)
    text += format("at {}{} ",
                   f.blame->line == 0 && !f.blame->function.empty() ? tell(*f.blame) : format("`{}`", at(*f.blame)),
                   nameless ? ":" : "");
  text += lower_first(f.title) + ".";
  if (const std::string more = forecast_words(f); !more.empty()) text += " " + more;
  return text;
}

/// Where memory ends, as a limit is called by people.
std::string limit_words(const Forecast& f) {
  const std::string name = f.limit == "machine" ? "what this machine has free" : f.limit;
  return format("the limit of {} ({})", f.bytes, name);
}

/// Growth that is too small to matter in this run, and is there.
std::string small(const Finding& f) {
  return format("Memory grows a little: {} {}, {} in all{}.", amount(f.bytes_per_unit), each(f), f.total,
                f.blame ? format(", at `{}`", at(*f.blame)) : "");
}

/// Since which of its rounds resident memory has stayed within what is called small; nothing where it has not for a few
/// of them, or still rises.
std::optional<size_t> level_since(const Case& c) {
  constexpr size_t kFew = 3;
  const Series& rss = c.periods.rss;
  if (rss.size() < 2 || c.growth.rss.rises()) return {};
  size_t first = rss.size();
  while (first > 0 && std::abs(rss.y[first - 1] - c.growth.level) <= c.growth.small) --first;
  return first + std::min(kFew, rss.size()) <= rss.size() ? std::optional(first) : std::nullopt;
}

/// "over all 10 epochs", "since epoch 2", "over the last 38 printed lines", "for the last 12 s".
std::string since_words(const Case& c, size_t first) {
  const Periods& p = c.periods;
  if (p.unit == Unit::kSecond) return format("for the last {}", duration(p.rss.x.back() - p.rss.x[first]));
  if (first == 0) return format("over all {}", counted(double(p.rss.size()), noun_of(p.unit)));
  const size_t at = size_t(std::ranges::lower_bound(p.x, p.rss.x[first]) - p.x.begin());
  if (p.unit == Unit::kEpoch && at < p.marks.size())
    return format("since epoch {}", thousands(double(p.marks[at]->index)));
  return format("over the last {}", counted(double(p.rss.size() - first), noun_of(p.unit)));
}

/// What a healthy process is made of, in the last round: as much as has a number of its own and is a tenth of it or
/// more, two at most.
std::string made_of(const Case& c) {
  constexpr double kWorthSaying = 0.1;
  constexpr size_t kMostSaid = 2;
  const Mark& last = *c.periods.marks.back();
  std::vector<std::pair<double, std::string>> parts;
  const auto own = std::ranges::find(c.evidence.processes, c.evidence.process, &SeenProcess::row);
  if (c.evidence.process != 0 && own != c.evidence.processes.end()) {
    Rounds now;
    now.t = {last.t}, now.x = {0};
    for (const auto& [kind, words] : {std::pair("library", "libraries"), std::pair("file", "memory-mapped files"),
                                      std::pair("shared_memory", "shared memory")})
      if (const auto found = own->mappings.find(kind); found != own->mappings.end()) {
        TimeSeries series;
        for (const Mapped& m : found->second) series.emplace_back(m.t, double(m.resident.value));
        if (const std::vector<double> level = levels_at(now, series); !level.empty())
          parts.emplace_back(level.front(), words);
      }
  }
  double user = 0, other = 0;
  for (const SiteGroup& s : c.sites.groups) (s.user && !c.imports(s) ? user : other) += s.bytes;
  // Blocks that were never written to are no memory: what allocators have is at most what is resident beside the files.
  double room = c.growth.level;
  for (const auto& [bytes, words] : parts) room -= bytes;
  const double scale = user + other > room && room > 0 ? room / (user + other) : 1;
  parts.emplace_back(user * scale, "taken by the program's own lines");
  parts.emplace_back(other * scale, "work memory of libraries");
  if (last.heap_free) parts.emplace_back(double(last.heap_free->value), "free in the allocator");
  std::erase_if(parts, [&](const auto& p) { return p.first < kWorthSaying * c.growth.level; });
  std::ranges::stable_sort(parts, std::ranges::greater{}, [](const auto& p) { return p.first; });
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kMostSaid; ++i)
    text +=
        format("{}{}{} {}", i == 0 ? "; " : ", ", amount(parts[i].first), i == 0 ? " of it are" : "", parts[i].second);
  return text;
}

std::string flat(const Case& c) {
  const Series& rss = c.periods.rss;
  if (rss.size() < 2)
    return "Memory does not grow, as far as was seen: nothing in this run recurs, so its rounds could not be compared.";
  if (const std::optional<size_t> first = level_since(c))
    return format("No leak: flat at {} {}{}.", amount(c.growth.level), since_words(c, *first), made_of(c));
  return format("Memory is flat: {} after the first {}, {} after the last ({} seen).", amount(rss.y.front()),
                noun_of(c.periods.unit), amount(rss.y.back()), thousands(double(rss.size())));
}

/// What was taken once and stays is a healthy program's memory: where it lies, and what it is made of; only its amount
/// is told where that was not seen.
std::string reserve(const Case& c, const Finding& f, const std::string& where) {
  const std::optional<size_t> first = level_since(c);
  if (!f.cause.empty() && !first)
    return format("Not a leak: {} were taken once and stay{}. {}.", f.total, where, f.title);
  const std::string level =
      format("No leak: flat at {}{}", amount(c.growth.level), first ? " " + since_words(c, *first) : "");
  if (!f.cause.empty())
    return format("{}; {} of it were taken once{}: {}.", level, f.total, where, lower_first(f.title));
  const std::string parts = made_of(c);
  return parts.empty() ? format("{}; {} of it were taken once{}.", level, f.total,
                                f.blame ? format(", most at `{}`", at(*f.blame)) : "")
                       : level + parts + ".";
}

}  // namespace

std::string each(const Finding& f) { return f.each.empty() ? each(f.unit) : f.each; }

std::string seen_over(const Finding& f) {
  return counted(std::round(f.units_seen), f.each.starts_with("each time") ? "time" : noun_of(f.unit));
}

std::string forecast_round(const Forecast& f) {
  const bool named = f.unit == Unit::kEpoch || f.unit == Unit::kBatch || f.unit == Unit::kFit || f.unit == Unit::kCall;
  // The round in which it happens: one that ends just as the limit is reached is that round.
  return named && f.unit_index ? format("{} {}", to_string(f.unit), thousands(std::ceil(*f.unit_index - 1e-6))) : "";
}

std::string forecast_words(const Finding& finding) {
  if (!finding.forecast) return "";
  const Forecast& f = *finding.forecast;
  std::string when;
  if (const std::string round = forecast_round(f); !round.empty())
    when = format(" in {},", round);
  else if (f.unit_index)
    when = format(" after {},", counted(std::max(1.0, std::round(f.units_left)), noun_of(f.unit), " more"));
  const std::string likely = duration(f.seconds), soon = duration(f.seconds_range.low),
                    late = duration(f.seconds_range.high);
  const std::string range = soon == late ? "" : format(" ({} to {})", soon, late);
  return format("At this rate {} is reached{} in about {}{}.", limit_words(f), when, likely, range);
}

std::string device_name(const Evidence& e) {
  if (e.space == "host") return "";
  const auto gpu = std::ranges::find_if(e.gpus, [&](const Gpu& g) { return format("gpu:{}", g.device) == e.space; });
  return gpu == e.gpus.end() ? e.space : format("{} ({})", e.space, gpu->name);
}

std::string sentence(const Case& c, const Verdict& v) {
  const Finding* f = v.findings.empty() ? nullptr : &v.findings.front();
  if (v.too_short)
    return format("Too short to judge: the program ran for {}, and its memory was {}.", duration(c.evidence.seconds),
                  looks(c.evidence) == 0   ? "never looked at"
                  : looks(c.evidence) == 1 ? "looked at once"
                                           : format("looked at {} times", looks(c.evidence)));
  if (v.kind == Kind::kUnsure)
    return c.periods.enough()
               ? format("Memory rose by {} after warm-up, and nothing shows yet whether that is a leak: {}.",
                        amount(c.growth.total), v.would_settle)
               : format("The run was too short to tell: {} seen; {}.",
                        c.periods.size() == 0   ? "no round was"
                        : c.periods.size() == 1 ? "only one round was"
                                                : format("only {} rounds were", c.periods.size()),
                        v.would_settle);
  if (v.kind == Kind::kFlat || !f) return f && f->kind == Kind::kLeak ? small(*f) : flat(c);
  if (v.kind == Kind::kLeak) return leak(*f, device_name(c.evidence));
  const std::string where = f->blame ? format(" ({})", at(*f->blame)) : "";
  switch (v.kind) {
    case Kind::kRetention:
      return format("Not a leak: {} are free but not given back{}. {}.", f->total, where, f->title);
    case Kind::kFragmentation:
      return format("Not a leak: {} are pinned by a few living objects{}. {}.", f->total, where, f->title);
    case Kind::kCache:
      return format("Not a leak: {} {}{}. {}.", f->total, f->fills ? "so far" : "fill once and stay", where, f->title);
    default:
      return reserve(c, *f, where);
  }
}

}  // namespace millpond::verdict
