// The models the program knows by name, each with the work it is measured on: how many samples, which batch, how long.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "millpond/model.h"

namespace millpond::cli {

struct Builtin {
  std::string_view name, about;
  int64_t batch;
  int64_t samples;  // of --synthetic
  int epochs;
  std::string_view loss, optimizer;  // as shown; `make_optimizer` is what is used
  std::function<Model()> make;
  std::function<Optimizer()> make_optimizer;
};

std::span<const Builtin> builtins();
/// Null when there is none of that name.
const Builtin* find_builtin(std::string_view name);

Model resnet50();
/// 124 million values: 12 blocks of width 768, vocabulary 50,257, sequences of 256, the embedding used again for the
/// output.
Model gpt2();

}  // namespace millpond::cli
