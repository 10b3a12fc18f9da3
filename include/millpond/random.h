// Seeds. Everything random (first weights, dropout, shuffling) follows from one seed: the same seed and the same number of
// threads give the same bits.
#pragma once
#include <cstdint>

namespace millpond {

/// Fixes all randomness that is drawn from now on in this process. Without it every run differs, as in Keras.
void set_random_seed(uint64_t seed);

/// Starts automatic layer names from "dense" again. There is nothing else to clear: a model's memory goes when the model goes.
void clear_session();

}  // namespace millpond
