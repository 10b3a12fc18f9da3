// initialize: fills a new weight. Value i depends on the seed and i alone, so threads may share the work and bits
// repeat. Which initializers there are, and Keras's JSON of each, stands in initializers.cc.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "millpond/initializers.h"
#include "millpond/tensor.h"
#include "nn/options.h"

namespace millpond::nn {

void initialize(Tensor weight, const Initializer& init, uint64_t seed);

/// Keras's class names.
std::vector<std::string> initializer_classes();
/// A new one of this class, for what looks at its options.
std::unique_ptr<Described> described_initializer(const std::string& type);
/// A name, or an object with class_name and config. `who` begins the text of an error.
Initializer initializer_from_json(const Json& json, const std::string& who);
Written initializer_to_json(const Initializer& init);

}  // namespace millpond::nn
