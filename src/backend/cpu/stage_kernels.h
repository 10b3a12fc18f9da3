// The inner loop of stage_rows for each instruction set.
#pragma once
#include "backend/cpu/isa.h"
#include "backend/cpu/stage_rows.h"

namespace millpond::backend::cpu {

struct StageKernels {
  bool (*rows)(const StageRows& s, int64_t begin, int64_t end);
};
MP_ISA_TABLE(StageKernels, stage_kernels)

}  // namespace millpond::backend::cpu
