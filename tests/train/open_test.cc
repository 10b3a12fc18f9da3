// Dimensions that are None until data come: one model, a program for each shape it meets, one arena.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "train/model.h"
#include "train/support.h"

using namespace millpond;

namespace {

Sequential tagger(int64_t length) {
  Sequential model{Input({length, 3}), LSTM(5, {.return_sequences = true}), Dense(2, softmax)};
  model.compile({.optimizer = SGD(0.1), .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  return model;
}

// Batches of sequences of these lengths, in this order.
Dataset batches_of(const std::vector<int64_t>& lengths, int64_t batch) {
  return Dataset::from_generator([lengths, batch] {
    return [lengths, batch, at = size_t{0}](Element& e, Buffers& buffers) mutable {
      if (at == lengths.size()) return false;
      const int64_t length = lengths[at++];
      const Tensor x = uniform({batch, length, 3}, 10 + uint64_t(length)), y = classes({batch, length}, 2, 7);
      e.clear();
      e.push_back(buffers.tensor(DType::kFloat32, x.shape()));
      e.push_back(buffers.tensor(DType::kInt32, y.shape()));
      std::ranges::copy(x.values<float>(), e[0].values<float>().begin());
      std::ranges::copy(y.values<int32_t>(), e[1].values<int32_t>().begin());
      return true;
    };
  });
}

bool told_of_many_shapes(const History& h) {
  return std::ranges::any_of(h.notes, [](const std::string& note) {
    return note.starts_with("note: batches came in more shapes than a model keeps programs for");
  });
}

const train::Programs& programs_of(const Model& model) { return *model.impl()->uses.workspaces().front(); }

}  // namespace

TEST_CASE("None: for every length a model gives what a model of that length gives, trained as well") {
  set_random_seed(1);
  Sequential open = tagger(None);
  CHECK(open.inputs()[0].shape() == Shape{None, 3});
  CHECK(open.outputs()[0].shape() == Shape{None, 2});
  for (const int64_t length : {4, 9, 1, 4}) {
    CAPTURE(length);
    Sequential fixed = tagger(length);
    fixed.set_weights(open.get_weights());
    const Tensor x = uniform({6, length, 3}, 1), y = classes({6, length}, 2, 2);
    CHECK(flat({Tensor(open.predict(x))}) == flat({Tensor(fixed.predict(x))}));
    CHECK(open.evaluate(x, y, {.verbose = 0})["accuracy"] ==  // divided by samples and length at once, or after another
          doctest::Approx(fixed.evaluate(x, y, {.verbose = 0})["accuracy"]).epsilon(1e-12));
    CHECK(open.train_on_batch(x, y)["loss"] == fixed.train_on_batch(x, y)["loss"]);
    CHECK(flat(open.get_weights()) == flat(fixed.get_weights()));
  }
}

TEST_CASE("None: images of any size go through convolutions to a mean over all of them") {
  set_random_seed(1);
  Sequential model{Input({None, None, 3}),   Conv2D(4, {3, 3}, {.strides = 2, .activation = relu}),
                   MaxPooling2D(2),          ZeroPadding2D(1),
                   GlobalAveragePooling2D(), Dense(2)};
  CHECK(model.layers()[0](Input({None, 20, 3})).shape() == Shape{None, 9, 4});
  for (const Shape& size : {Shape{16, 20, 3}, Shape{7, 9, 3}})
    CHECK(Tensor(model.predict(uniform(size.with_front(2), 1))).shape() == Shape{2, 2});
  CHECK(message_of([&] {
          (void)model.predict(uniform({2, 16, 20, 4}, 1));
        }).starts_with("predict: samples of x0 have the shape [16, 20, 4], but the input \""));
}

TEST_CASE("None: a program is found again by all of its inputs, not by the first and the labels") {
  const Input a({None, 4}), b({None, 4});
  set_random_seed(1);
  Model model({a, b}, {Dense(1)(MultiHeadAttention(2, 3)(a, b))}, "look");
  const Tensor x = uniform({3, 5, 4}, 1), shorter = uniform({3, 2, 4}, 2), longer = uniform({3, 7, 4}, 3);
  const std::vector<float> first = flat({Tensor(model.predict({x, shorter}))});
  CHECK(flat({Tensor(model.predict({x, longer}))}) != first);
  CHECK(flat({Tensor(model.predict({x, shorter}))}) == first);
  CHECK(programs_of(model).all().size() == 2);
}

TEST_CASE(
    "None: batches of many lengths share an arena as large as the longest needs, and their programs are bounded") {
  set_random_seed(1);
  Sequential model = tagger(None);
  std::vector<int64_t> lengths;
  for (int64_t i = 1; i <= int64_t(train::Programs::kMost) + 10; ++i) lengths.push_back(i);
  const History h = model.fit(batches_of(lengths, 4), {.epochs = 2, .verbose = 0, .threads = 1});
  CHECK(h.steps == 2 * int64_t(lengths.size()));
  const train::Programs& programs = programs_of(model);
  CHECK(programs.all().size() == train::Programs::kMost);
  CHECK(programs.dropped() > 0);
  CHECK(told_of_many_shapes(h));
  Bytes longest;
  std::set<int64_t> kept;
  for (const train::Ready* r : programs.all()) {
    longest = std::max(longest, r->program.arena_bytes());
    kept.insert(r->key.samples.x[0][0]);
  }
  CHECK(programs.arena().size() >= longest);
  CHECK(programs.arena().size() < longest + Bytes{64 << 10});
  CHECK(kept.contains(lengths.back()));
  CHECK(!kept.contains(1));  // used longest ago
  // A few lengths, again and again, make no program twice and drop none.
  const int64_t dropped = programs.dropped();
  const History few = model.fit(batches_of({70, 71, 72, 70, 72, 71}, 4), {.epochs = 20, .verbose = 0, .threads = 1});
  CHECK(programs.dropped() == dropped);
  CHECK(!told_of_many_shapes(few));
}

TEST_CASE(
    "None: fit over batches of several lengths is the same steps one by one, and a sample counts as one in metrics") {
  const std::vector<int64_t> lengths{3, 8, 5, 3};
  set_random_seed(3);
  Sequential one = tagger(None);
  set_random_seed(3);
  Sequential other = tagger(None);
  const History h = one.fit(batches_of(lengths, 4), {.epochs = 1, .verbose = 0});
  double loss = 0, accuracy = 0;
  for (const int64_t length : lengths) {
    const Results r = other.train_on_batch(uniform({4, length, 3}, 10 + uint64_t(length)), classes({4, length}, 2, 7));
    loss += r["loss"] / double(lengths.size()), accuracy += r["accuracy"] / double(lengths.size());
  }
  CHECK(h["loss"][0] == doctest::Approx(loss).epsilon(1e-6));
  CHECK(h["accuracy"][0] == doctest::Approx(accuracy).epsilon(1e-6));
  CHECK(flat(one.get_weights()) == flat(other.get_weights()));
  // Validation of other lengths than are trained on.
  const History validated = one.fit(batches_of({4}, 4), {.verbose = 0, .validation = batches_of({2, 9}, 4)});
  CHECK(validated["val_loss"].size() == 1);
}

TEST_CASE("None: predictions of several shapes go to a function, but not into one array") {
  Sequential model = tagger(None);
  std::vector<Shape> shapes;
  const PredictOptions take{.output = [&](int64_t, std::span<const Tensor> y) { shapes.push_back(y[0].shape()); }};
  (void)model.predict(batches_of({3, 5}, 2), take);
  CHECK(shapes == std::vector<Shape>{{2, 3, 2}, {2, 5, 2}});
  CHECK(
      message_of([&] { (void)model.predict(batches_of({3, 5}, 2)); }) ==
      "predict: row 2 gives [5, 2], but rows before it gave [3, 2]: they do not go into one array; pad samples to one "
      "length, or take each batch as it comes with PredictOptions::output");
  CHECK(Tensor(model.predict(batches_of({3, 3}, 2))).shape() == Shape{4, 3, 2});
}

TEST_CASE("None: a plan says for which data it is, is that of a model of this size, and asks where nobody says") {
  Sequential open = tagger(None);
  clear_session();
  const Sequential fixed = tagger(12);
  const PlanOptions twelve{.batch = 4, .inputs = {{12, 3}}, .threads = 1, .largest_batch = false};
  const MemoryPlan a = open.plan(twelve), b = fixed.plan({.batch = 4, .threads = 1, .largest_batch = false});
  CHECK(a.total == b.total);
  CHECK(a.arena == b.arena);
  CHECK(a.programs[0].samples == "[12, 3]");
  CHECK(a.table().find("for samples of [12, 3]") != std::string::npos);
  CHECK(b.programs[0].samples.empty());
  CHECK(message_of([&] { (void)open.plan(); }).starts_with("nobody says how large samples are: the input \""));
  CHECK(message_of([&] {
          (void)open.plan({.inputs = {{12, 4}}});
        }).starts_with("samples of [12, 4] are given for the input \""));
  CHECK(message_of([&] {
          (void)open.plan({.inputs = {{12, 3}, {3}}});
        }).starts_with("2 shapes of inputs are given, but the model "));
  CHECK(open.print_passes(twelve).starts_with("as written"));
  const std::string summary = open.summary_text();
  CHECK(summary.find("(None, None, 5)") != std::string::npos);
  CHECK(summary.find("The memory plan depends on the dimensions that are None") != std::string::npos);
  CHECK(open.summary_text(twelve).find("Memory of training") != std::string::npos);
}

TEST_CASE("None: a step over shapes that were seen before takes no memory and makes nothing") {
  Sequential model = tagger(None);
  model.fit(batches_of({3, 6, 4}, 4), {.verbose = 0, .threads = 1});
  const train::Programs& programs = programs_of(model);
  const size_t made = programs.all().size();
  const Bytes arena = programs.arena().size();
  model.fit(batches_of({6, 3, 4, 3}, 4), {.epochs = 3, .verbose = 0, .threads = 1});
  CHECK(programs.all().size() == made);
  CHECK(programs.arena().size() == arena);
}
