#include "base/random.h"

#include <cmath>
#include <numbers>

namespace millpond {

double Random::normal() {
  const double u = 1 - uniform();  // (0, 1]
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace millpond
