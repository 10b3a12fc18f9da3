// The process's one stream of seeds. Draws are numbers, not state of any object: nothing is kept.
#pragma once
#include <cstdint>

namespace millpond {

/// The next seed of the stream that set_random_seed starts; without it, from the system's entropy.
uint64_t draw_seed();

}  // namespace millpond
