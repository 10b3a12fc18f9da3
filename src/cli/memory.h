// Memory of a training run as it really is: which pages of what was planned are touched, and how much of all that is
// resident has a name.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cli/models.h"
#include "ledger/explain.h"

namespace millpond::cli {

/// The account of every array of the data and of every segment of the model, where they lie now.
ledger::Snapshot charged(const Model& model, const ModelData& data);

/// Of weights, slots and arena: bytes whose page is resident (mincore). A page that is only partly theirs counts with
/// that part.
Bytes touched(const Model& model);

/// Accounts and their bytes: the plan's, the data's, and for the rest of the process what `explanation` names.
std::map<std::string, Bytes> accounts(const MemoryPlan& plan, const ledger::Explanation& explanation);

}  // namespace millpond::cli
