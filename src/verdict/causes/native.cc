#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

constexpr const char* kReleases =
    "Python does not know this memory and cannot free it: call the function of the same library that gives it back "
    "(its free, close or destroy) for everything "
    "that was made, when it is no longer needed.";

/// Called from a line of Python, but no Python object: a function that ctypes or cffi calls took it.
bool foreign(const Site& site) {
  return !site.frames.empty() && site.frames.front().native && contains(site.frames.front().file, "/libffi");
}

std::string name_of(const NativeScan::Variable& v) {
  return v.name.empty() ? format("a variable of {} that has no name", file_name(v.module))
                        : format("the variable `{}` of {}", v.name, file_name(v.module));
}

/// Where the block was born through which they are kept, if it has a place of its own.
std::string through(const Case& c, const NativeScan::Group& g) {
  if (g.ways.empty() || g.ways.front().bytes < kTable.most * g.bytes) return {};
  const auto site = std::ranges::find(c.evidence.sites, g.ways.front().site, &Site::row);
  const Frame* const own = site == c.evidence.sites.end() ? nullptr : own_frame(*site);
  return own ? tell(place_of(*own)) : std::string();
}

std::vector<int64_t> rows_of(const Case& c, const std::vector<int>& sites) {
  std::vector<int64_t> rows;
  for (const int i : sites) rows.push_back(c.evidence.sites[size_t(i)].row);
  return rows;
}

/// A walk found no object of Python that most of it belongs to: only such blocks were looked for.
bool of_no_object(const Case& c, const SiteGroup& s) {
  return c.notes.walk && c.notes.scan && c.notes.scan->of(rows_of(c, s.sites)).bytes > kTable.most * s.bytes;
}

/// Whether what was allocated at these places is lost or kept, and by what. It is said of a birth when it holds for at
/// least half of its bytes: old words in dead memory make single blocks look kept.
void tell_scan(const Case& c, const std::vector<int>& sites, Match& m) {
  if (!c.notes.scan) {
    m.evidence.push_back(c.notes.no_scan.empty()
                             ? "nobody looked for pointers to what is allocated here"
                             : format("nobody looked for pointers to what is allocated here: {}", c.notes.no_scan));
    return;
  }
  const NativeScan::Group g = c.notes.scan->of(rows_of(c, sites));
  if (g.bytes <= 0) return;
  const std::string way = through(c, g), by_way = way.empty() ? "" : format(", through a block that {} allocated", way);
  if (g.lost >= kTable.most * g.bytes) {
    m.title = "Native code loses what it allocates: there is no pointer to it any more";
    m.fix = "Free it before the last pointer to it goes, or give it an owner (std::unique_ptr, std::vector) that does.";
    m.evidence.push_back(
        format("of {} that were allocated here and are alive, no pointer to {} was found anywhere in the memory of the "
               "process: nothing can free them any more",
               amount(g.bytes), amount(g.lost)));
  } else if (g.by_static >= kTable.most * g.bytes && !g.variables.empty()) {
    m.holder = name_of(g.variables.front());
    m.title =
        format("Native code keeps what it allocates: {} leads to it, and there is more of it all the time", m.holder);
    m.evidence.push_back(format("of {} that were allocated here and are alive, {} are reached from {}{}",
                                amount(g.bytes), amount(g.variables.front().bytes), m.holder, by_way));
  } else if (g.by_stack >= kTable.most * g.bytes) {
    m.holder = "a variable on the stack of a function that runs";
    m.title =
        "Native code keeps what it allocates: a function that runs has a variable that leads to it, and there is more "
        "of it all the time";
    m.evidence.push_back(
        format("of {} that were allocated here and are alive, {} are reached from the stack of a thread{}",
               amount(g.bytes), amount(g.by_stack), by_way));
  } else if (g.by_block >= kTable.most * g.bytes && !way.empty()) {
    m.holder = format("a block that {} allocated", way);
    m.evidence.push_back(format("of {} that were allocated here and are alive, {} are pointed to by {}",
                                amount(g.bytes), amount(g.by_block), m.holder));
  } else {
    m.evidence.push_back(
        format("of {} that were allocated here and are alive, {} are pointed to: by variables {}, from stacks {}, by "
               "other blocks {}; to {} no pointer was found",
               amount(g.bytes), amount(g.bytes - g.lost), amount(g.by_static), amount(g.by_stack),
               amount(g.by_block + g.by_other), amount(g.lost)));
  }
}

std::optional<Match> called_from_python(const Case& c) {
  for (const SiteGroup& s : c.sites.groups) {
    if (!s.user || s.grown < kTable.most * c.growth.total) continue;
    double all = 0, native = 0;
    for (const int i : s.sites) {
      const double taken = double(c.evidence.sites[size_t(i)].total.value);
      all += taken;
      if (foreign(c.evidence.sites[size_t(i)])) native += taken;
    }
    if (all <= 0 || (native < kTable.native * all && !of_no_object(c, s))) continue;
    Match m{.share = std::min(1.0, s.grown / std::max(1.0, c.growth.total)), .weight = kTable.made};
    m.blame = s.place;
    if (c.periods.length() > 0 && s.block() > 0) {
      m.additions = s.grown / s.block() / c.periods.length();
      m.added = s.blocks, m.each = s.block();
    }
    m.fix = kReleases;
    m.evidence.push_back(
        format("{} calls native code that allocated {} which are still in use; Python holds none of it", tell(s.place),
               amount(s.bytes)));
    tell_scan(c, s.sites, m);
    return m;
  }
  return {};
}

/// The C library counts more in use and no hook of ours was called: a function that was looked up in the library
/// itself, as ctypes.CDLL("libc.so.6").malloc is.
std::optional<Match> past_our_hooks(const Case& c) {
  const Growth& g = c.growth;
  if (!g.has_live || g.held.total < kTable.mostly * g.total || !g.has_sampled ||
      g.sampled.total > kTable.part * g.total)
    return {};
  for (const Container& k : c.notes.containers)
    if (k.still && c.share(k) > kTable.part) return {};
  Match m{.share = kTable.native, .weight = kTable.by_shape};
  if (c.notes.agent) m.fix = kReleases;
  m.evidence.push_back(format(
      "the C library has {} more in use, and only {} of that came through the functions that programs are linked with",
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
  Match m{.weight = kTable.no_line};
  m.share = std::clamp(most->grown / std::max(1.0, c.growth.total), kTable.rest, 1.0);
  if (c.notes.agent) m.fix = kReleases;
  if (!c.notes.agent) {
    m.weight = kTable.by_level;
    m.blame = most->place;  // the program's own function where its source is known
    const Site& site = c.evidence.sites[size_t(most->sites.front())];
    if (!own_frame(site))
      if (const auto f = std::ranges::find_if(site.frames, [](const Frame& at) { return at.native && at.line > 0; });
          f != site.frames.end())
        m.blame = place_of(*f);
  }
  m.evidence.push_back(format("{} allocated {} that are still in use, more in every part of the run", tell(most->place),
                              amount(most->bytes)));
  tell_scan(c, most->sites, m);
  return m;
}

}  // namespace

const std::vector<Cause> kNativeCode = {
    {.id = "N1",
     .title = "Native code allocates and does not free",
     .fix = "Free what is allocated here, or give it an owner (std::unique_ptr, std::vector) that goes out of scope; a "
            "sanitizer build (-fsanitize=address) lists what is unreachable at exit.",
     .threads = {},
     .detect = native}};

}  // namespace millpond::verdict
