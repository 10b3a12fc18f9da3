// "Flat" as a test: the ledger of holdings and the resident memory of the process, over steps and over models.
#include <doctest/doctest.h>

#include "base/process.h"
#include "base/segment.h"
#include "train/support.h"

using namespace millpond;

namespace {
Bytes held() {
  Bytes sum;
  each_holding([&](const std::string&, Bytes b) { sum += b; });
  return sum;
}
/// Counted page by page, not by the kernel's lazy counter.
Bytes resident_now() { return totals()->anonymous; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kExact = false;  // a sanitizer's own memory grows with what it watches
#else
constexpr bool kExact = true;
#endif
}  // namespace

TEST_CASE("flat: a thousand steps take no byte and no page") {
  set_random_seed(1);
  Sequential model{Input({12, 12, 3}), Conv2D(8, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(), Dropout(0.2), Dense(16, relu), BatchNormalization(), Dense(4, softmax)};
  model.compile("adam", "sparse_categorical_crossentropy", {"accuracy"});
  const Tensor x = uniform({100, 12, 12, 3}, 1), y = classes({100}, 4, 2);
  const auto epochs = [&](int n) { model.fit(x, y, {.batch_size = 10, .epochs = n, .verbose = 0, .validation_data = {x, y}}); };
  epochs(5);
  const Bytes before = held(), pages = resident_now();
  epochs(100);
  CHECK(held() == before);
  if (kExact) CHECK(std::abs((resident_now() - pages).value) <= 2 * 4096);  // the history itself is a few hundred bytes
}

TEST_CASE("flat: two hundred different models end where the third one ended") {
  const auto one = [](int i) {
    const int64_t width = 10 + i % 37, filters = 3 + i % 11;
    Sequential model{Input({8 + i % 5, 9, 2}), Conv2D(filters, {2, 3}, relu), MaxPooling2D({2, 2}), Flatten(), Dense(width, relu), Dense(3, softmax)};
    model.compile(i % 2 ? Optimizer("adam") : Optimizer(SGD(0.01, {.momentum = 0.9})), "sparse_categorical_crossentropy", {"accuracy"});
    const int64_t n = 20 + i % 13;
    const Tensor x = uniform({n, 8 + i % 5, 9, 2}, uint64_t(i)), y = classes({n}, 3, uint64_t(i));
    model.fit(x, y, {.batch_size = 8, .epochs = 2, .verbose = 0});
    model.predict(x);
  };
  Bytes third, pages;
  for (int i = 0; i < 200; ++i) {
    one(i);
    if (i == 2) third = held(), pages = resident_now();
  }
  CHECK(held() == third);
  if (kExact) CHECK((resident_now() - pages).value <= 512 << 10);  // the allocator's own: pages, not a slope
}
