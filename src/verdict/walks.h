// Who holds the survivors, as the probe's walks over Python's objects found it (probe/walk.h): by births, not by names.
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "verdict/verdict.h"

namespace millpond::verdict {

inline constexpr size_t kBirths = 16;

struct Born {
  Place place;  // the innermost of the user's lines
  double bytes = 0;
};

/// A line that puts things into a holder, and was seen to while it gained.
struct Put {
  Place place;
  std::string by;     // "counted", "births"; "only": no other line could
  double gained = 0;  // its share of what the holder gained
  double seen = 0;    // times it ran meanwhile
  bool hook = false;  // it is of a function in a torch module's table of hooks
};

/// What an earlier walk found of a holder.
struct Looked {
  double period = 0;
  std::optional<double> length, inner;  // items; what lies in these
};

/// The deepest object whose survivors were born over a long time.
struct Holder {
  enum class How { kReached, kNative, kGarbage };
  How how = How::kReached;
  std::string type;
  std::vector<std::string> chain;  // from it to a root, in words
  double bytes = 0, samples = 0;
  double graph = 0;    // of the bytes: what only a graph of gradients keeps
  double repeats = 0;  // it begins a chain of so many objects of its type; 0: none
  std::optional<double> length, bounded;
  std::array<double, kBirths> births{};  // bytes, by equal parts of the time since the rounds began
  std::vector<Born> born;                // most bytes first
  std::vector<Put> puts;                 // most gained first
  std::vector<Looked>
      looks;  // of all walks that found it and of rounds at which its length was read, by round, this walk last
  bool grows = false;   // a single block that grows itself, seen to: a buffer, an array, a text; its lengths are bytes
  double period = 0;    // the round of the walk that found it
  double at_first = 0;  // bytes that the first walk found which knew it; 0: this is the first

  std::string name() const { return chain.empty() ? type : chain.front(); }
  /// The share of the time since the rounds began in which it gained.
  double active() const;
  /// The part of the time in which the oldest thing in it was born.
  size_t first() const;
  /// Whether what was put into it since a part of the time is still there: no part is empty for long, and nothing
  /// bounds it. Without one: since its oldest thing, which is from the first half of the time.
  bool accumulates(size_t from) const;
  bool accumulates() const;
  /// It has a limit of its own, or gains no items any more, or by less and less: then new ones take the place of old
  /// ones.
  bool ends() const;
  /// Its exact lengths rose at several looks and never fell, and it has not ended.
  bool goes_on() const;

 private:
  bool is_full_of_places() const;
  bool stopped() const;
  bool has_no_births() const;
  bool goes_on_inside() const;
};

struct HeapWalk {
  std::string kind;  // of the rounds that it followed
  double period = 0;
  double alive = 0, reached = 0, native = 0, garbage = 0;  // bytes born since the rounds began
  std::vector<Holder> holders;                             // most bytes first
  std::vector<Holder> growing;  // single blocks that grow themselves; their bytes are those of a holder too
  std::vector<Born> lines;      // of a device: where most of what is alive was allocated, held or not

  /// The holder of most bytes that accumulates; null: none does.
  const Holder* accumulating() const;
  /// What one gained in a round, on average since it began to.
  double gained_each_round(const Holder& holder) const;
};

/// Of a note `courses`: how many items those holders of the walk had until the very end.
void take_courses(const nlohmann::json& note, HeapWalk& walk);

/// Of a note `puts`: into those holders of the walk that they are of.
void take_puts(const nlohmann::json& note, HeapWalk& walk);

/// Of a note `walk`, with what the one before knew of its holders; nothing where it says why none was made.
std::optional<HeapWalk> walk_of(const nlohmann::json& note, const HeapWalk* before = nullptr);

}  // namespace millpond::verdict
