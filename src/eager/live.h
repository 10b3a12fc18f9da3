// live: a variable's value as an eager tensor. It looks at the variable's own bytes as long as they stay as they are;
// before they change, whoever still has it gets a copy (runtime/variable.h, Reader). All reads of one variable have one
// id, so that a tape knows them as one source. Where a tensor's bytes lie is asked, and changes, under Context::mutex.
#pragma once
#include "eager/tensor.h"
#include "nn/layer.h"

namespace millpond::eager {

Ref live(const nn::Weight& weight);
/// Of a variable that a program reads: as above where somebody has read its weight so before.
Ref live(runtime::Variable& variable);

}  // namespace millpond::eager
