#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

constexpr const char* kReleases =
    "Python does not know this memory and cannot free it: call the function of the same library that gives it back (its free, close or destroy) for everything "
    "that was made, when it is no longer needed.";

/// Called from a line of Python, but no Python object: a function that ctypes or cffi calls took it.
bool foreign(const Site& site) {
  return !site.frames.empty() && site.frames.front().native && contains(site.frames.front().file, "/libffi");
}

std::optional<Match> called_from_python(const Case& c) {
  for (const SiteGroup& s : c.sites.groups) {
    if (!s.user || s.grown < 0.5 * c.growth.total) continue;
    double all = 0, native = 0;
    for (const int i : s.sites) {
      const double taken = double(c.evidence.sites[size_t(i)].total.value);
      all += taken;
      if (foreign(c.evidence.sites[size_t(i)])) native += taken;
    }
    if (all <= 0 || native < 0.8 * all) continue;
    Match m{.share = std::min(1.0, s.grown / std::max(1.0, c.growth.total)), .weight = 0.9};
    m.blame = s.place;
    if (c.periods.length() > 0 && s.block() > 0) {
      m.additions = s.grown / s.block() / c.periods.length();
      m.added = s.blocks, m.each = s.block();
    }
    m.fix = kReleases;
    m.evidence.push_back(format("{} calls native code that allocated {} which are still in use; Python holds none of it", tell(s.place), amount(s.bytes)));
    return m;
  }
  return {};
}

/// The C library counts more in use and no hook of ours was called: a function that was looked up in the library itself, as
/// ctypes.CDLL("libc.so.6").malloc is.
std::optional<Match> past_our_hooks(const Case& c) {
  const Growth& g = c.growth;
  if (!g.has_live || g.held.total < 0.6 * g.total || !g.has_sampled || g.sampled.total > 0.2 * g.total) return {};
  for (const Container& k : c.notes.containers)
    if (k.still && c.share(k) > 0.2) return {};
  Match m{.share = 0.8, .weight = 0.6};
  if (c.notes.agent) m.fix = kReleases;
  m.evidence.push_back(format("the C library has {} more in use, and only {} of that came through the functions that programs are linked with",
                              amount(g.held.total), amount(std::max(0.0, g.sampled.total))));
  return m;
}

std::optional<Match> native(const Case& c) {
  if (!c.growing()) return {};
  if (const std::optional<Match> found = called_from_python(c)) return found;
  if (const std::optional<Match> found = past_our_hooks(c)) return found;
  const SiteGroup* most = nullptr;
  for (const SiteGroup& s : c.sites.groups)
    if (!s.user && s.grown > 0 && (!most || s.grown > most->grown)) most = &s;
  if (!most) return {};
  Match m{.weight = 0.35};
  m.share = std::clamp(most->grown / std::max(1.0, c.growth.total), 0.1, 1.0);
  if (c.notes.agent) m.fix = kReleases;
  if (!c.notes.agent) {
    m.weight = 0.8;
    m.blame = most->place;  // the program's own function where its source is known
    const std::vector<Frame>& frames = c.evidence.sites[size_t(most->sites.front())].frames;
    for (const bool own : {false, true})  // the program's own source last, so that it is what remains
      if (const auto f = std::ranges::find_if(frames, [&](const Frame& at) { return at.native && at.line > 0 && (at.user || !own); }); f != frames.end())
        m.blame = place_of(*f);
  }
  m.evidence.push_back(format("{} allocated {} that are still in use, more in every part of the run", tell(most->place),
                              amount(most->bytes)));
  return m;
}

}  // namespace

const Cause n1_native = {.id = "N1",
                         .title = "Native code allocates and does not free",
                         .explanation = "malloc or new without its free, or a native container that only grows.",
                         .fix =
                             "Free what is allocated here, or give it an owner (std::unique_ptr, std::vector) that "
                             "goes out of scope; a sanitizer build "
                             "(-fsanitize=address) lists what is unreachable at exit.",
                         .threads = {},
                         .detect = native};

}  // namespace millpond::verdict
