#include "backend/kernel.h"

namespace millpond::backend {

void run_alone(const Kernel& kernel, const Arguments& arguments) {
  const std::span<const int> phases = kernel.phases();
  for (int phase = 0; phase < int(phases.size()); ++phase)
    for (int block = 0; block < phases[phase]; ++block) kernel.run(arguments, phase, block, 0);
}

}  // namespace millpond::backend
