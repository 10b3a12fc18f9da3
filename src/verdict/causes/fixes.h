// Fixes as code: what a line that keeps, caches, draws or calls would have to say instead. Each is decided by what was
// measured (the type of the container, the type and number of elements of what it keeps, how much one round adds) and
// by the statement as the agent took it apart; names are only copied.
#pragma once
#include <optional>
#include <string>

#include "verdict/causes/cause.h"

namespace millpond::verdict {

struct Fix {
  std::string text{};
  std::optional<Change> change{};  // absent: only words can be given
};

/// Into a match; nothing to say leaves the cause's own words.
void take(Match& match, Fix fix);

/// How a container could keep less, so that it stays as large as it is after one round.
Fix keep_less(const Case& c, const Container& container);

/// Of a line that makes figures: where they can be closed.
Fix close_figure(const CountedLine* line);

/// Of a line under which a tf.function is traced again and again: the number given as a tensor, the lambda made once,
/// shapes that are not told apart, no XLA. No text: nothing can be said beyond the cause's own words.
Fix give_tensor(const CountedLine& line);
Fix make_once(const CountedLine& line);
Fix relax_shapes(const CountedLine& line);
Fix without_xla(const CountedLine& line);

/// Of memory that the C allocator keeps after `place` freed it: a threshold below the size of its blocks, above which
/// each is mapped by itself and goes back when it is freed. No text: the blocks are small, or were not seen.
Fix give_back(const Case& c, const std::optional<Place>& place);

Fix set_variable(std::string text, std::string variable, std::string value);

}  // namespace millpond::verdict
