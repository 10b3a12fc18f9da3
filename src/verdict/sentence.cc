#include "verdict/sentence.h"

#include <cmath>

#include "base/format.h"
#include "verdict/causes/words.h"

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

std::string leak(const Finding& f) {
  std::string text = format("Memory grows by {} {}: ", amount(f.bytes_per_unit), each(f));
  const bool nameless = f.cause == "P1" || f.cause == "N1" || f.holder.empty();
  if (f.blame) text += format("at `{}`{} ", at(*f.blame), nameless ? ":" : "");
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
  return format("Memory grows a little: {} {}, {} in all{}.", amount(f.bytes_per_unit), each(f), f.total, f.blame ? format(", at `{}`", at(*f.blame)) : "");
}

std::string flat(const Case& c) {
  const Series& rss = c.periods.rss;
  if (rss.size() < 2)
    return "Memory does not grow, as far as was seen: nothing in this run recurs, so its rounds could not be compared.";
  return format("Memory is flat: {} after the first {}, {} after the last ({} seen).", amount(rss.y.front()),
                noun_of(c.periods.unit), amount(rss.y.back()), thousands(double(rss.size())));
}

}  // namespace

std::string each(const Finding& f) { return f.each.empty() ? each(f.unit) : f.each; }

std::string seen_over(const Finding& f) { return counted(std::round(f.units_seen), f.each.starts_with("each time") ? "time" : noun_of(f.unit)); }

std::string forecast_round(const Forecast& f) {
  const bool named = f.unit == Unit::kEpoch || f.unit == Unit::kBatch || f.unit == Unit::kFit || f.unit == Unit::kCall;
  // The round in which it happens: one that ends just as the limit is reached is that round.
  return named && f.unit_index ? format("{} {}", to_string(f.unit), thousands(std::ceil(*f.unit_index - 1e-6))) : "";
}

std::string forecast_words(const Finding& finding) {
  if (!finding.forecast) return "";
  const Forecast& f = *finding.forecast;
  std::string when;
  if (const std::string round = forecast_round(f); !round.empty()) when = format(" in {},", round);
  else if (f.unit_index) when = format(" after {},", counted(std::max(1.0, std::round(f.units_left)), noun_of(f.unit), " more"));
  const std::string likely = duration(f.seconds), soon = duration(f.seconds_range.low), late = duration(f.seconds_range.high);
  const std::string range = soon == late ? "" : format(" ({} to {})", soon, late);
  return format("At this rate {} is reached{} in about {}{}.", limit_words(f), when, likely, range);
}

std::string sentence(const Case& c, const Verdict& v) {
  const Finding* f = v.findings.empty() ? nullptr : &v.findings.front();
  if (v.too_short)
    return format("Too short to judge: the program ran for {}, and its memory was {}.", duration(c.evidence.seconds),
                  looks(c.evidence) == 0 ? "never looked at" : looks(c.evidence) == 1 ? "looked at once" : format("looked at {} times", looks(c.evidence)));
  if (v.kind == Kind::kUnsure)
    return c.periods.enough()
               ? format("Memory rose by {} after warm-up, and nothing shows yet whether that is a leak: {}.",
                        amount(c.growth.total), v.would_settle)
               : format("The run was too short to tell: {} seen; {}.",
                        c.periods.size() == 0 ? "no round was" : c.periods.size() == 1 ? "only one round was" : format("only {} rounds were", c.periods.size()), v.would_settle);
  if (v.kind == Kind::kFlat || !f) return f && f->kind == Kind::kLeak ? small(*f) : flat(c);
  if (v.kind == Kind::kLeak) return leak(*f);
  const std::string where = f->blame ? format(" ({})", at(*f->blame)) : "";
  switch (v.kind) {
    case Kind::kRetention:
      return format("Not a leak: {} are free but not given back{}. {}.", f->total, where, f->title);
    case Kind::kFragmentation:
      return format("Not a leak: {} are pinned by a few living objects{}. {}.", f->total, where, f->title);
    case Kind::kCache:
      return format("Not a leak: {} fill once and stay{}. {}.", f->total, where, f->title);
    default:
      return format("Not a leak: {} were taken once and stay{}. {}.", f->total, where, f->title);
  }
}

}  // namespace millpond::verdict
