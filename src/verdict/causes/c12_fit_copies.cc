#include "base/format.h"
#include "verdict/causes/fit_copy.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> fit_copies(const Case& c) {
  const FitCopy copy = fit_copy(c);
  if (copy.bytes < std::max(16e6, 0.02 * c.growth.level)) return {};
  // Seen as live blocks under the line, or as a jump large enough to hold it.
  const double seen = std::max(c.reserved_at(copy.place), c.jump());
  if (seen < 0.3 * copy.bytes) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .weight = 1, .bytes = std::min(copy.bytes, seen)};
  m.blame = copy.place;
  m.holder = "a tensor with all of the training data";
  if (copy.doubles > 0)
    m.evidence.push_back(format("{} of the arrays given to fit are float64; casting them makes a copy of {}",
                                amount(copy.doubles), amount(copy.doubles / 2)));
  m.evidence.push_back(format("memory is {} above its level before training", amount(std::max(0.0, c.jump()))));
  if (copy.doubles > 0)
    m.fix =
        "Not a leak. Make the data float32 (`data.astype(np.float32)`, or dtype=np.float32 when it is made) and drop "
        "the original, or feed a tf.data or PyDataset stream.";
  return m;
}

}  // namespace

const Cause c12_fit_copies = {
    .id = "C12",
    .title = "fit copied the whole data set once, before the first batch",
    .explanation = "Keras casts float64 arrays to float32 as a whole, and TensorFlow copies arrays into one tensor.",
    .fix = "Not a leak. Feed a tf.data or keras.utils.PyDataset stream instead of one array if the copy does not fit.",
    .threads = {"tensorflow#31312", "tensorflow#52086", "tensorflow#71744"},
    .detect = fit_copies};

}  // namespace millpond::verdict
