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
thread_local SeedScope* innermost = nullptr;
}  // namespace

SeedScope::SeedScope(uint64_t seed) : seed_(seed), outer_(innermost) { innermost = this; }
SeedScope::~SeedScope() { innermost = outer_; }

void set_random_seed(uint64_t seed) {
  const std::lock_guard lock(mutex);
  stream.emplace(seed);
}

uint64_t draw_seed() {
  if (innermost) return random_key(innermost->seed_, ++innermost->drawn_);
  const std::lock_guard lock(mutex);
  if (!stream) stream.emplace(uint64_t{std::random_device()()} << 32 | std::random_device()());
  return stream->next();
}

}  // namespace millpond
