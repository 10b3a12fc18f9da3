#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "far/far.h"
#include "train/support.h"

using namespace millpond;

namespace {
struct File {
  std::string path =
      (std::filesystem::temp_directory_path() / ("millpond_" + std::to_string(::getpid()) + ".weights.h5")).string();
  ~File() { std::filesystem::remove(path); }
};
Sequential net(int64_t width = 5) {
  return Sequential{Input({6, 6, 2}), Conv2D(3, 2), BatchNormalization(), Flatten(), Dense(width), Dense(2)};
}
}  // namespace

TEST_CASE("weights: set_weights checks number and shapes before it changes any") {
  Sequential model = net();
  auto w = model.get_weights();
  CHECK(w.size() == 10);
  CHECK(model.weight_names()[2].ends_with("/gamma"));
  const auto before = flat(w);
  w[9] = uniform({3}, 1);
  CHECK(message_of([&] { model.set_weights(w); }).find("array 9 has the shape [3], but weights/dense") !=
        std::string::npos);
  w.pop_back();
  CHECK(message_of([&] { model.set_weights(w); }).find("has 10 weights, but 9 arrays are given") != std::string::npos);
  CHECK(flat(model.get_weights()) == before);
  Sequential other = net();
  other.set_weights(model.get_weights());
  CHECK(flat(other.get_weights()) == before);
}

TEST_CASE("weights: views are live, or refused where the host cannot see the weights") {
  Sequential model = net();
  model.compile("sgd", "mse");
  if (test::on_far()) {
    CHECK(message_of([&] {
            (void)model.weight_views();
          }).find("lies in the memory of the backend \"far\", which the host cannot see") != std::string::npos);
    return;
  }
  const auto views = model.weight_views();
  const auto before = flat(views);
  model.train_on_batch(uniform({4, 6, 6, 2}, 1), uniform({4, 2}, 2));
  CHECK(flat(views) != before);
  CHECK(flat(views) == flat(model.get_weights()));
}

TEST_CASE("weights: a saved file brings them back, and a file of another model is refused by name") {
  const File file;
  set_random_seed(1);
  Sequential model = net(), same = net(), other = net(7);
  model.save_weights(file.path);
  CHECK(flat(same.get_weights()) != flat(model.get_weights()));
  same.load_weights(file.path);
  CHECK(flat(same.get_weights()) == flat(model.get_weights()));
  const auto before = flat(other.get_weights());
  CHECK(message_of([&] {
          other.load_weights(file.path);
        }).find("layers/dense/vars/0 has the shape [75, 5], but weights/") != std::string::npos);
  Sequential more{Input({6, 6, 2}), Conv2D(3, 2), Conv2D(3, 2)};
  CHECK(message_of([&] { more.load_weights(file.path); }).find("has no layers/conv2d_1/vars/0") != std::string::npos);
  CHECK(flat(other.get_weights()) == before);
}
