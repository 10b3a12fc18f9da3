#include "base/seed.h"

#include <mutex>
#include <optional>
#include <random>

#include "base/random.h"
#include "millpond/random.h"

namespace millpond {
namespace {
std::mutex mutex;
std::optional<Random> stream;
}  // namespace

void set_random_seed(uint64_t seed) {
  const std::lock_guard lock(mutex);
  stream.emplace(seed);
}

uint64_t draw_seed() {
  const std::lock_guard lock(mutex);
  if (!stream) stream.emplace(uint64_t{std::random_device()()} << 32 | std::random_device()());
  return stream->next();
}

}  // namespace millpond
