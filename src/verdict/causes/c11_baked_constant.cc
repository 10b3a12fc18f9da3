#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

constexpr double kLarge = 96 << 10;  // on the average of a place; a graph's own blocks are far smaller

std::optional<Match> baked_constant(const Case& c) {
  if (c.leaking()) {
    // Every trace brings the same large blocks again.
    const CountedLine* line = c.notes.line("trace");
    if (!line || std::max(c.rose("tf.traces"), c.times("trace")) < 3) return {};
    const double large = c.grown_in_blocks(kLarge);
    const std::optional<double> under = c.growth_share(line->place);
    if (large < 0.5 * c.growth.total || under.value_or(0) < 0.6) return {};
    Match m{.share = std::min(1.0, *under) * (1 - c.data_share()), .weight = 1};
    m.blame = line->place;
    m.evidence.push_back(format("{} of the growth are large blocks, made while tracing under {}",
                                amount(large), at(line->place)));
    return m;
  }
  const Stage* slices = c.notes.stage("from_tensor_slices");
  if (!slices) slices = c.notes.stage("from_tensors");
  if (!slices) return {};
  const double bytes = c.reserved_at(slices->place);
  if (bytes < std::max(20e6, 0.03 * c.growth.level)) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .weight = 1, .bytes = bytes};
  m.blame = slices->place;
  m.evidence.push_back(format("{} are alive that {} took once", amount(bytes), at(slices->place)));
  return m;
}

}  // namespace

const Cause c11_baked_constant = {.id = "C11",
                                  .title = "An array was copied into a graph as a constant",
                                  .explanation =
                                      "from_tensor_slices(array), and a closure over an array in a traced function, "
                                      "copy the array into the graph, once for each trace.",
                                  .fix =
                                      "Pass the array as an argument or keep it in a tf.Variable; feed large arrays by "
                                      "a generator or by keras.utils.PyDataset.",
                                  .threads = {"tensorflow#38693", "jax#16278", "jax#11448"},
                                  .detect = baked_constant};

}  // namespace millpond::verdict
