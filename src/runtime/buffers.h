// Which value lies where: views share bytes with what they view, updates happen in the variable's own bytes, a result may
// take the place of an operand nobody reads again; everything else becomes a buffer of the plan with its lifetime.
#pragma once
#include <map>
#include <string>

#include "plan/plan.h"
#include "runtime/program.h"

namespace millpond::runtime {

struct Assignment {
  plan::Problem problem;
  std::vector<Variable*> variables;
  std::vector<Tensor> constants;
  std::map<std::string, Place, std::less<>> inputs, outputs;
};

/// Makes every update end in its variable: adds ops::Assign where the new value cannot be made in the variable's bytes.
void lower_updates(graph::Graph& graph);

/// Fills in, out and scratch of every call. `in_place` allows results over operands (must-alias happens regardless).
Assignment assign_buffers(const graph::Graph& graph, std::vector<Call>& calls, bool in_place);

}  // namespace millpond::runtime
