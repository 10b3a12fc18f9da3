// What a model's programs take, told as a MemoryPlan, and the refusal when it is too much.
#pragma once
#include "millpond/memory_plan.h"
#include "train/model.h"

namespace millpond::train {

/// Adds what `program` needs to the plan; the one with the largest arena gives the figures of the arena. `samples`: what
/// it is for, where the model leaves that open (told_samples).
void add_program(MemoryPlan& plan, const runtime::Lowered& program, Kind kind, int64_t batch, std::string samples = {});
/// Weights, slots and what metrics count.
void add_variables(MemoryPlan& plan, const nn::Network& net, OptimizerImpl* optimizer, const runtime::Variable* counter,
                   std::span<runtime::Variable* const> counts);
/// What making values again has come to, or null where there was no target.
const passes::Recomputed* recomputed(const runtime::Lowered& program);
/// What the model takes with the programs it has made so far.
MemoryPlan plan_of_programs(const ModelImpl& model);

/// Throws Error(kMemory) when `more` bytes of arena and what has no place yet do not fit into the memory that is free.
void refuse_if_too_large(ModelImpl& model, const Ready& made, Bytes more);

/// The largest batch (to half a percent) whose arena fits into `room`, which weights and slots have left; 0: none. At
/// most 2^20.
int64_t largest_batch(const nn::Network& net, const Compiled* compiled, Kind kind, const runtime::Options& options,
                      const SampleShapes& samples, Bytes room);

}  // namespace millpond::train
