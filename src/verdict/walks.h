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
  std::string how;   // "append", "item", "set", ...
  std::string by;    // "counted", "births"; "only": no other line could
  double gained = 0; // its share of what the holder gained
};

/// The deepest object whose survivors were born over a long time.
struct Holder {
  enum class How { kReached, kNative, kGarbage };
  How how = How::kReached;
  std::string type;
  std::vector<std::string> chain;  // from it to a root, in words
  double bytes = 0, samples = 0, items = 0;
  double repeats = 0;              // it begins a chain of so many objects of its type; 0: none
  std::optional<double> length, bounded;
  std::array<double, kBirths> births{};  // bytes, by equal parts of the time since the rounds began
  std::vector<Born> born;                // most bytes first
  std::vector<Put> puts;                 // most gained first

  std::string name() const { return chain.empty() ? type : chain.front(); }
  /// The share of the time since the rounds began in which it gained.
  double active() const;
  /// Whether what was put into it at any time is still there: no part of the time between the first birth and now is empty for long, and nothing bounds it.
  bool accumulates() const;
};

struct HeapWalk {
  double period = 0, seconds = 0;
  double alive = 0, reached = 0, native = 0, garbage = 0;  // bytes born since the rounds began
  std::vector<Holder> holders;                             // most bytes first

  /// The holder of most bytes that accumulates; null: none does.
  const Holder* accumulating() const;
  /// What one gained in a round, on average since it began to; what all that accumulate did.
  double gained_each_round(const Holder& holder) const;
  double gained_each_round() const;
};

/// Of a note `puts`: into those holders of the walk that they are of.
void take_puts(const nlohmann::json& note, HeapWalk& walk);

/// Of a note `walk`; nothing where it says why none was made.
std::optional<HeapWalk> walk_of(const nlohmann::json& note);

}  // namespace millpond::verdict
