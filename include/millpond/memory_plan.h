// MemoryPlan: every byte that training will take, by name, before the first batch.
//
// Weights, slots and metrics' counts are the model's own and stay. Everything else shares one arena, as large as the
// program that needs most; the figures below for gradients, activations, workspace and staging are those of the moment
// that needs most (the peak call), so that they add up to the lower bound. What the arena is larger than that is the
// gap.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millpond/bytes.h"

namespace millpond {

struct MemoryPlan {
  std::string model;
  std::string optimizer;  // empty: for predicting only
  int64_t batch = 0;
  int threads = 1;

  Bytes weights, slots;                              // kept between steps; state (counters) counts as slots
  Bytes metrics;                                     // what AUC and the like count during an epoch
  Bytes gradients, activations, workspace, staging;  // in the arena at its peak
  Bytes constants;                                   // of the programs: tables, masks
  Bytes padding;                                     // alignment, and the gap
  Bytes arena, lower_bound;
  Bytes total;         // of all of the above but the arena, which is counted by its parts
  double gap = 0;      // (arena - lower bound) / lower bound
  double seconds = 0;  // that planning took, all programs together

  /// Where the arena's program needs most.
  int peak_call = 0, calls = 0;
  std::string peak_layer, peak_operator;

  struct Program {
    std::string name;  // "train", "evaluate", "predict"
    int64_t batch = 0;
    std::string samples;  // of a model that leaves dimensions to its data: the shapes of one sample, "[100] [20, 3]"
    Bytes arena, lower_bound;
    int calls = 0;
    int slow_kernels = 0;  // calls that run a plain loop
    double seconds = 0;
  };
  std::vector<Program> programs;

  struct Layer {
    std::string name;
    Bytes weights, slots;
    Bytes gradients, activations, workspace;  // at the peak
    Bytes most;                               // the most this layer's buffers ever take together in the step
  };
  std::vector<Layer> layers;

  /// "weights/dense/kernel", "activations/conv2d", "staging/x0", ... and their bytes: weights, slots and metrics, and
  /// the arena at its peak.
  std::vector<std::pair<std::string, Bytes>> accounts;
  /// Sum over all accounts with this name or under it: account("weights/dense"). 0 when there is none.
  Bytes account(std::string_view name) const;

  /// With a memory target (CompileOptions, PlanOptions): what runs a second time in a step, so that its values need not be
  /// kept, and what that adds to the step's arithmetic and to the bytes that its operators read and write.
  struct Recomputed {
    std::string layer, op;
    Bytes bytes;       // of the values
    double flops = 0;  // operations
  };
  Bytes memory_target;  // 0: none
  bool target_reached = true;
  bool search_exhausted = true;  // false: a very large graph; the search for what to run again ended before its end
  Bytes arena_kept;              // what the arena would be if everything were kept
  double more_flops = 0, more_moved = 0;  // 0.1: a tenth more
  std::vector<Recomputed> recomputed;     // in the order in which they run

  Bytes memory_free;           // of the machine, when this plan was made
  int64_t largest_batch = -1;  // that fits in it; -1: not asked for; 0: not even one sample fits

  /// A table for people; `by_layer` adds a row for each layer.
  std::string table(bool by_layer = false) const;
};

}  // namespace millpond
