#include <doctest/doctest.h>

#include <cmath>

#include "train/support.h"

using namespace millpond;

namespace {
Sequential classifier() {
  Sequential model({Input({4}, DType::kFloat32, "in"), Dense(3, softmax, {.name = "out"})}, "m");
  model.compile("sgd", "sparse_categorical_crossentropy", {"accuracy"});
  return model;
}
/// The refusal, after checking that no weight has changed.
std::string refusal(Model model, const Arrays& x, const Arrays& y, FitOptions o = {}) {
  o.verbose = 0;
  const auto before = flat(model.get_weights());
  const std::string text = message_of([&] { model.fit(x, y, o); });
  CHECK(flat(model.get_weights()) == before);
  return text;
}
}  // namespace

TEST_CASE("bad input: shapes are refused with input, both shapes and sizes") {
  CHECK(refusal(classifier(), uniform({8, 5}, 1), classes({8}, 3, 1))
            .starts_with("fit: samples of x0 have the shape [5], but the input \"in\" wants [4]"));
  CHECK(refusal(classifier(), uniform({8, 4}, 1), classes({7}, 3, 1)) == "fit: x0 has 8 samples, but y0 has 7");
  CHECK(refusal(classifier(), {uniform({8, 4}, 1), uniform({8, 4}, 1)}, classes({8}, 3, 1))
            .starts_with("fit: the model \"m\" has 1 inputs, but 2 arrays are given"));
  CHECK(refusal(classifier(), uniform({8, 4}, 1), classes({8, 3}, 3, 1)).find("give labels the shape [8]") !=
        std::string::npos);
  CHECK(refusal(classifier(), Tensor(DType::kFloat32, {0, 4}), Tensor(DType::kInt32, {0}))
            .starts_with("fit: the data has no samples"));
  CHECK(refusal(classifier(), Arrays{}, Arrays{}).starts_with("fit: no data is given"));
}

TEST_CASE("bad input: a label out of range is named with row, value and both sizes before its step") {
  for (const int32_t bad : {3, -1, 1 << 30}) {
    Tensor y = classes({8}, 3, 1);
    y.values<int32_t>()[5] = bad;
    CHECK(refusal(classifier(), uniform({8, 4}, 1), y, {.batch_size = 8})
              .starts_with("label " + std::to_string(bad) +
                           " in row 5 of y0 is out of range: the output \"out\" has 3 classes, 0 to 2"));
  }
  Tensor y(DType::kInt64, {8});
  y.values<int64_t>()[2] = (int64_t{1} << 32) + 1;
  CHECK(refusal(classifier(), uniform({8, 4}, 1), y, {.batch_size = 8}).find("row 2 of y0") != std::string::npos);
  Tensor nan = classes({8}, 3, 1).astype(DType::kFloat32);
  nan.values<float>()[1] = NAN;
  CHECK(refusal(classifier(), uniform({8, 4}, 1), nan, {.batch_size = 8}).find("row 1 of y0") != std::string::npos);
}

TEST_CASE("bad input: NaN and infinity are named with row and column, unless the check is off") {
  Tensor x = uniform({8, 4}, 1);
  x.values<float>()[4 * 6 + 2] = NAN;
  CHECK(refusal(classifier(), x, classes({8}, 3, 1), {.batch_size = 8})
            .starts_with("row 6 of x0, value 2 is NaN; clean the data"));
  x.values<float>()[4 * 6 + 2] = -INFINITY;
  CHECK(
      refusal(classifier(), x, classes({8}, 3, 1), {.batch_size = 8}).starts_with("row 6 of x0, value 2 is infinite"));
  Sequential model = classifier();
  CHECK(std::isnan(model.fit(x, classes({8}, 3, 1), {.verbose = 0, .check_inputs = false})["loss"][0]));
}

TEST_CASE("bad input: NaN for an input of integers, and a number too large for float32, are refused as well") {
  Sequential model{Input({1}, DType::kInt32, "in"), Dense(1)};
  model.compile("sgd", "mse");
  Tensor x = uniform({4, 1}, 1);
  x.values<float>()[2] = NAN;
  CHECK(refusal(model, x, uniform({4, 1}, 1)).starts_with("row 2 of x0 is NaN"));
  Tensor big = uniform({8, 4}, 1).astype(DType::kFloat64);
  big.values<double>()[5] = 1e300;
  CHECK(refusal(classifier(), big, classes({8}, 3, 1)).starts_with("row 1 of x0, value 1 is too large for float32"));
}

TEST_CASE("bad input: good batches before a bad one have trained, the bad one has not") {
  Sequential model = classifier();
  Tensor x = uniform({8, 4}, 1);
  x.values<float>()[4 * 6] = NAN;
  CHECK(message_of([&] { model.fit(x, classes({8}, 3, 1), {.batch_size = 2, .verbose = 0, .shuffle = false}); }) != "");
  CHECK(model.optimizer().iterations() == 3);
}

TEST_CASE("bad input: an index out of an embedding's range is named") {
  Sequential model{Input({3}, DType::kInt32), Embedding(5, 2, {.name = "words"}), Flatten(), Dense(1)};
  model.compile("sgd", "mse");
  Tensor x = classes({4, 3}, 5, 1);
  x.values<int32_t>()[7] = 5;
  CHECK(refusal(model, x, uniform({4, 1}, 1))
            .starts_with("index 5 in row 2 of x0, value 1 is out of range: the layer \"words\" has 5 rows, 0 to 4"));
}

TEST_CASE("bad input: options that make no sense are refused") {
  const Tensor x = uniform({8, 4}, 1), y = classes({8}, 3, 1);
  CHECK(refusal(classifier(), x, y, {.batch_size = 0}) == "fit: batch_size is 0, but must be at least 1");
  CHECK(refusal(classifier(), x, y, {.epochs = -1}) == "fit: epochs is -1, but must be at least 0");
  CHECK(refusal(classifier(), x, y, {.validation_split = 1}).starts_with("fit: validation_split is 1"));
  CHECK(refusal(classifier(), x, y, {.validation_split = 0.99}).find("leaves 0 to train and 8 to validate") !=
        std::string::npos);
  CHECK(refusal(classifier(), x, y, {.threads = -1}).starts_with("threads is -1"));
  Sequential raw{Input({4}), Dense(3)};
  CHECK(message_of([&] { raw.fit(x, y); }).find("has not been compiled") != std::string::npos);
  CHECK(message_of([&] { raw.compile({.optimizer = "adam"}); }).starts_with("compile: no loss is given"));
  CHECK(message_of([&] {
          raw.compile("adam", {"mse", "mae"});
        }).starts_with("compile: 2 losses for a model of 1 output"));
  CHECK(message_of([&] { raw.get_layer("conv"); }).find("has no layer \"conv\"") != std::string::npos);
}

TEST_CASE("bad input: what does not fit into memory is refused with the numbers and the largest batch") {
  Sequential model({Input({1 << 20}), Dense(16), Dense(1)}, "wide");
  model.compile("adam", "mse");
  // A batch that needs a thousand times the machine's memory; the data are one sample, seen many times.
  Tensor one(DType::kFloat32, {1, 1 << 20});
  const std::string text = message_of([&] {
    Sequential huge({Input({1 << 20}), Dense(1 << 20)}, "huge");
    huge.compile("adam", "mse");
    huge.fit(one, one, {.verbose = 0});
  });
  CHECK(text.starts_with("fit refused: it needs"));
  CHECK(text.find("is free") != std::string::npos);
  CHECK(text.find("weights 4.00 TiB") != std::string::npos);
  CHECK(text.find("not even one sample fits") != std::string::npos);
}
