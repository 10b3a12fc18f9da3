#include "cli/builtin.h"

#include <array>

#include "millpond/millpond.h"

namespace millpond::cli {
namespace {

Model tiny() { return Sequential({Input({4}), Dense(8, relu), Dense(1, sigmoid)}, "tiny"); }
Model mlp_small() { return Sequential({Input({100}), Dense(64, relu), Dense(1, sigmoid)}, "mlp_small"); }
Model mlp_large() {
  return Sequential({Input({200}), Dense(512, relu), Dropout(.5), Dense(256, relu), Dropout(.5), Dense(1, sigmoid)},
                    "mlp_large");
}
Model mlp_784() {
  return Sequential({Input({784}), Dense(512, relu), Dense(512, relu), Dense(10, softmax)}, "mlp_784");
}
Model cnn_224() {
  return Sequential(
      {Input({224, 224, 3}), Conv2D(32, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(), Dense(10, softmax)}, "cnn_224");
}

constexpr std::string_view kBinary = "binary_crossentropy", kClasses = "sparse_categorical_crossentropy";

// Samples, batch and epochs as in the comparison with the peers.
const std::array kBuiltins = {
    Builtin{"tiny", "4-8-1", 8, 16384, 5, kBinary, "adam", tiny, [] { return Adam(); }},
    Builtin{"mlp_small", "100-64-1", 32, 10016, 5, kBinary, "adam", mlp_small, [] { return Adam(); }},
    Builtin{"mlp_large", "200-512-256-1 with dropout", 64, 10048, 5, kBinary, "adam", mlp_large, [] { return Adam(); }},
    Builtin{"mlp_784", "784-512-512-10", 128, 12800, 4, kClasses, "adam", mlp_784, [] { return Adam(); }},
    Builtin{"cnn_224", "224x224x3, convolution 32 3x3, max-pool, dense 10", 32, 192, 4, kClasses, "adam", cnn_224,
            [] { return Adam(); }},
    Builtin{"resnet50", "224x224x3, 1000 classes", 8, 32, 3, kClasses, "sgd with momentum 0.9", resnet50,
            [] { return SGD(0.01, {.momentum = 0.9}); }},
    Builtin{"gpt2", "124 million values, sequences of 256", 1, 4, 3, kClasses, "adamw", gpt2,
            [] { return AdamW(3e-4); }},
};

}  // namespace

std::span<const Builtin> builtins() { return kBuiltins; }

const Builtin* find_builtin(std::string_view name) {
  for (const Builtin& b : kBuiltins)
    if (b.name == name) return &b;
  return nullptr;
}

}  // namespace millpond::cli
