// Seeds. Everything random (first weights, dropout, shuffling) follows from one seed: the same seed and the same number
// of threads give the same bits.
#pragma once
#include <cstdint>

namespace millpond {

/// Fixes all randomness that is drawn from now on in this process. Without it every run differs, as in Keras.
void set_random_seed(uint64_t seed);

/// While one lives, its thread draws from a stream of its own that begins with this seed: so models that are made and
/// trained by several threads at once are the same in every run. Scopes of one thread nest.
class SeedScope {
 public:
  explicit SeedScope(uint64_t seed);
  ~SeedScope();
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;

 private:
  friend uint64_t draw_seed();
  uint64_t seed_, drawn_ = 0;
  SeedScope* outer_;
};

/// Starts automatic layer names from "dense" again. There is nothing else to clear: a model's memory goes when the
/// model goes.
void clear_session();

}  // namespace millpond
