// A cause: how it is recognised, what it is in plain words, how it is cured, and where people met it. Those that are
// recognised alike stand in one file; list.inc names them all.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verdict/case.h"

namespace millpond::verdict {

struct Match {
  Kind kind = Kind::kLeak;
  double share = 0;   // of the growth; for what does not grow: 1
  double weight = 1;  // how particular the evidence is: of two that explain the same, the more particular one is named
  double bytes = 0;   // of what does not grow
  std::optional<Unit> unit{};    // growth follows this; otherwise the period
  double additions = 0;          // how often in a period the blamed line adds; 0: not known
  double added = 0, each = 0;    // how often it did in all, and the bytes of one as they were weighed; 0: not known
  std::optional<Place> blame{};  // the line to change: where what stays is put into what holds it
  std::optional<Place> born{};   // where it is allocated, if that is another line
  std::string title{}, holder{}, fix{};  // empty: the cause's own title and fix
  std::vector<std::string> chain{};      // from the holder to a root, in words
  std::optional<Change> change{};        // what `fix` says, to carry out
  std::vector<std::string> evidence{};
  bool fills = false;  // of a cache: it has not reached its limit yet
  std::string
      cause{};  // of the catalogue, where the holder and the line that puts it there tell it, however it was found
  double score() const { return share * weight; }
};

/// Of an object that keeps what was put into it at any time: with its chain and lines the answer is complete, although
/// no cause of the catalogue is like it.
Match holder_match(const HeapWalk& walk, const Holder& holder);

struct Cause;
/// Of a container that grows: what kind of thing it keeps says which cause that is.
std::pair<const Cause*, Match> container_match(const Case& c, const Container& container);

struct Cause {
  std::string id{}, title{}, fix{};
  std::vector<std::string> threads{};
  std::optional<Match> (*detect)(const Case&) = nullptr;
  enum class In { kHost, kDevice, kBoth } in = In::kHost;  // of which memory it can be the cause
};

/// All of list.inc, in its order.
const std::vector<const Cause*>& causes();
const Cause& cause_of(std::string_view id);  // which there must be

#define CAUSES(name) extern const std::vector<Cause> name;
#include "verdict/causes/list.inc"
#undef CAUSES

}  // namespace millpond::verdict
