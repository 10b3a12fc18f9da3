// Where the memory of a model lies, account by account, so that what is resident of it can be measured.
#pragma once
#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "train/model.h"

namespace millpond::train {

struct Place {
  std::string account;
  const std::byte* begin;  // borrowed; only its address is used
  Bytes size;
};

/// Weights, slots, constants and the arena. The arena is one: what lies in it changes during a step.
std::vector<Place> places_of(const ModelImpl& model);
/// While fit runs, the arrays it learns from and validates with: data/x0, data/y0, data/val_x0, ...
std::vector<Place> places_of_data(const ModelImpl& model);

/// Every other tensor of this process that is charged to data/<something>: predictions and weights that callbacks keep,
/// arrays that nobody learns from. `known` are the ranges that have their account already.
void charge_other_data(ledger::Ledger& ledger, const std::vector<Place>& known);

/// What the data pipelines that run now hold: pipeline/<stage>; large buffers with their addresses.
void charge_pipelines(ledger::Ledger& ledger);

/// A layer's name that is no account's is charged to "<weights or slots>/other".
void charge(ledger::Ledger& ledger, const Place& place);

}  // namespace millpond::train
