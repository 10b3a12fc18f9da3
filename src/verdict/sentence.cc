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

std::string leak(const Case& c, const Finding& f) {
  std::string text = format("Memory grows by {} every {}", amount(f.bytes_per_unit), to_string(f.unit));
  if (f.blame && f.cause != "P1" && f.cause != "N1" && !f.holder.empty())
    text += format(": at {} {}", tell(*f.blame), lower_first(f.title));
  else if (f.blame)
    text += format(": {}: {}", tell(*f.blame), lower_first(f.title));
  else
    text += format(": {}", lower_first(f.title));
  text += ".";
  if (f.forecast) {
    text += format(" At this rate the limit of {} ({}) is reached", f.forecast->bytes, f.forecast->limit);
    if (f.forecast->unit_index)
      text += format(" in {} {}", to_string(c.periods.unit), thousands(*f.forecast->unit_index));
    text += format(", in about {}.", duration(f.forecast->seconds));
  }
  return text;
}

std::string flat(const Case& c) {
  const Series& rss = c.periods.rss;
  if (rss.size() < 2)
    return "Memory does not grow, as far as was seen: nothing in this run recurs, so its rounds could not be compared.";
  return format("Memory is flat: {} after the first {}, {} after the last ({} seen).", amount(rss.y.front()),
                to_string(c.periods.unit), amount(rss.y.back()), rss.size());
}

}  // namespace

std::string duration(double s) {
  if (s < 120) return format("{:.0f} s", s);
  if (s < 2 * 3600) return format("{:.0f} min", s / 60);
  if (s < 48 * 3600) return format("{:.0f} h", s / 3600);
  return format("{} days", thousands(s / 86400));
}

std::string thousands(double number) {
  std::string digits = format("{:.0f}", std::floor(number));
  for (int i = int(digits.size()) - 3; i > 0; i -= 3) digits.insert(size_t(i), 1, ',');
  return digits;
}

std::string sentence(const Case& c, const Verdict& v) {
  const Finding* f = v.findings.empty() ? nullptr : &v.findings.front();
  if (v.kind == Kind::kUnsure)
    return c.periods.enough()
               ? format("Memory rose by {} after warm-up, and nothing shows yet whether that is a leak: {}.",
                        amount(c.growth.total), v.would_settle)
               : format("The run was too short to tell: only {} rounds were seen; {}.", c.periods.size(),
                        v.would_settle);
  if (v.kind == Kind::kFlat || !f) return flat(c);
  if (v.kind == Kind::kLeak) return leak(c, *f);
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
