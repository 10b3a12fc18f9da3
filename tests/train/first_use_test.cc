// What went wrong when the library was tried from its headers alone, each as a sentence that is true now.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <thread>

#include "backend/backend.h"
#include "runfile/support.h"
#include "runtime/program.h"
#include "support.h"
#include "train/memory.h"
#include "train/progress.h"

using namespace millpond;

// At namespace scope: made before main, and before whatever this library has of static life.
namespace {
Dense first_layer(4, relu);
Sequential before_main{Input({3}), first_layer, Dense(1)};
}  // namespace

TEST_CASE("layers and models may live at namespace scope") {
  before_main.compile("sgd", "mse");
  CHECK(before_main.fit(uniform({8, 3}, 1), uniform({8, 1}, 2), {.verbose = 0}).steps == 1);
  CHECK(first_layer.count_params() == 16);
}

TEST_CASE("NaN passes every activation, alone, behind a product and behind a convolution with its pool") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "hard_sigmoid", "tanh", "softmax",
                           "softplus", "softsign", "silu", "gelu", "exponential"}) {
    CAPTURE(name);
    const ActivationFunction f(name);
    for (const int64_t width : {3, 16, 37}) {
      Tensor x = uniform({4, width}, 1, -1, 1);
      x.values<float>()[size_t(2 * width + 1)] = nan;
      for (Sequential model : {Sequential{Input({width}), Activation(f)}, Sequential{Input({width}), Dense(5, f)},
                               Sequential{Input({width}), Dense(40, f), Dense(33, f)}}) {
        const Tensor y = model.predict(x, {.check_inputs = false})[0];
        const int64_t out = y.shape()[1];
        bool row = false, others = false;
        for (int64_t i = 0; i < y.size(); ++i) (i / out == 2 ? row : others) |= y.at(i) != y.at(i);
        CHECK(row);
        CHECK(!others);
      }
    }
  }
  for (const int channels : {1, 3, 5})
    for (int64_t pixel = 0; pixel < 8 * 8; ++pixel) {  // any of them reaches the pooled image
      Sequential model{Input({8, 8, channels}), Conv2D(17, {3, 3}, relu, {.padding = "same"}), MaxPooling2D({2, 2})};
      Tensor x = uniform({1, 8, 8, channels}, 1, -1, 1);
      x.values<float>()[size_t(pixel * channels)] = nan;
      const Tensor y = model.predict(x, {.check_inputs = false})[0];
      const int64_t row = pixel / 8 / 2, col = pixel % 8 / 2;
      CHECK(std::isnan(y.at((row * 4 + col) * 17)));
    }
}

TEST_CASE("NaN weights make a NaN loss") {
  Sequential model{Input({20}), Dense(16, relu), Dense(1)};
  model.compile("sgd", "mse");
  std::vector<Tensor> weights = model.get_weights();
  weights[0].values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  model.set_weights(weights);
  const double loss =
      model.evaluate(uniform({8, 20}, 1), uniform({8, 1}, 2), {.verbose = 0, .check_inputs = false})["loss"];
  CHECK(loss != loss);
}

TEST_CASE("the largest batch is found to half a percent, be the room small or large") {
  Sequential small{Input({4}), Dense(8, relu), Dense(1)}, large{Input({100}), Dense(64, relu), Dense(1)},
      image{Input({20, 20, 3}), Conv2D(8, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(), Dense(10)};
  for (Sequential* model : {&small, &large, &image}) {
    model->compile("adam", "mse");
    const nn::Network& net = model->impl()->built();
    const train::Compiled& compiled = *model->impl()->compiled;
    const train::SampleShapes samples = train::samples_to_plan(net, &compiled, {});
    runtime::Options options;
    options.threads = 2;
    options.plan.exact = options.plan.climb = false;
    runtime::Variable counter("counter", {DType::kInt32, {}});
    train::MetricCounts counts;
    const auto arena = [&](int64_t batch) {
      return runtime::Program("plan",
                              train::trace(net, &compiled, train::Kind::kTrain, batch, samples, &counter, counts,
                                           options.offered_passes())
                                  .graph,
                              options)
          .arena_bytes();
    };
    for (const int64_t wanted : {1, 2, 7, 8, 9, 100, 1000, 65536, 300000}) {
      CAPTURE(wanted);
      const int64_t found = train::largest_batch(net, &compiled, train::Kind::kTrain, options, samples, arena(wanted));
      CHECK(arena(found) <= arena(wanted));
      CHECK(found * 200 >= wanted * 198);
    }
  }
}

TEST_CASE("a number of threads that no machine serves is refused") {
  Sequential model{Input({3}), Dense(1)};
  model.compile("sgd", "mse");
  CHECK(message_of([&] { model.fit(uniform({8, 3}, 1), uniform({8, 1}, 2), {.verbose = 0, .threads = 100000}); }) ==
        "threads is 100000, but must be 0 (all) to 1024");
  CHECK(message_of([&] { (void)model.predict(uniform({8, 3}, 1), {.threads = -1}); }) ==
        "threads is -1, but must be 0 (all) to 1024");
}

TEST_CASE("a learning rate that is no number is refused, and the old one stays") {
  Optimizer adam = Adam(0.5);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0})
    CHECK(message_of([&] { adam.set_learning_rate(bad); }).starts_with("adam: learning_rate is "));
  CHECK(adam.learning_rate() == 0.5);
}

TEST_CASE("a callback that is a null pointer is refused where it is given") {
  CHECK(message_of([] { CallbackRef none{std::shared_ptr<Callback>()}; }) == "a callback is a null pointer");
}

namespace {
std::atomic<int> users_handler_calls{0};
void users_handler(int) { ++users_handler_calls; }
}  // namespace

TEST_CASE("fits in two threads give the user's own handler of Ctrl-C back, whichever ends first") {
  struct sigaction mine{}, before{}, after{};
  mine.sa_handler = users_handler;
  sigaction(SIGINT, &mine, &before);
  struct Inner : Callback {
    void on_epoch_end(int, const Logs&) override {
      std::thread([] {  // begins after the outer one and ends before it
        Sequential other{Input({3}), Dense(1)};
        other.compile("sgd", "mse");
        other.fit(uniform({8, 3}, 1), uniform({8, 1}, 2), {.verbose = 0});
      })
          .join();
    }
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
      all.emplace_back([t] {
        Sequential model{Input({3}), Dense(1)};
        model.compile("sgd", "mse");
        model.fit(uniform({8, 3}, 1), uniform({8, 1}, 2), {.epochs = 1 + t, .verbose = 0, .callbacks = {Inner()}});
      });
    for (std::thread& t : all) t.join();
    sigaction(SIGINT, nullptr, &after);
    CHECK((after.sa_handler == users_handler));
  }
  std::raise(SIGINT);
  CHECK(users_handler_calls == 1);
  sigaction(SIGINT, &before, nullptr);
}

TEST_CASE("a program that ignores Ctrl-C goes on ignoring it while it trains") {
  struct sigaction ignore{}, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  struct Press : Callback {
    void on_train_batch_end(int64_t, const Logs&) override { std::raise(SIGINT); }
  };
  Sequential model{Input({3}), Dense(1)};
  model.compile("sgd", "mse");
  CHECK(!model.fit(uniform({8, 3}, 1), uniform({8, 1}, 2), {.verbose = 0, .callbacks = {Press()}}).interrupted);
  sigaction(SIGINT, &before, nullptr);
}

namespace {
std::string text_of(std::FILE* file) {
  std::fflush(file);
  std::rewind(file);
  std::string text(4096, 0);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}
}  // namespace

TEST_CASE("progress: data that does not say how long it is has a count and no total") {
  std::FILE* file = std::tmpfile();
  train::Progress progress(2, file);
  progress.begin(0, 3, 0);
  progress.end(32, {});
  const std::string text = text_of(file);
  CHECK(text.starts_with("Epoch 1/3  32 steps "));
  std::fclose(file);
}

TEST_CASE("progress: the line that moves is no longer than the terminal is wide") {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  grantpt(master);
  unlockpt(master);
  const winsize narrow{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  ioctl(master, TIOCSWINSZ, &narrow);
  std::FILE* terminal = std::fopen(ptsname(master), "r+");
  REQUIRE(terminal);
  train::Progress progress(1, terminal);
  std::vector<Logs::Entry> entries;
  for (const char* name : {"loss", "accuracy", "mean_squared_error", "val_loss", "val_accuracy"})
    entries.push_back({name, 0.123456});
  progress.begin(0, 10, 1000);
  progress.draw(10, Logs(entries));
  progress.draw(20, Logs(entries));
  char text[1024];
  const ssize_t n = read(master, text, sizeof text);
  REQUIRE(n > 0);
  const std::string all(text, size_t(n));
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\r', at), all.size());
    CHECK(end - at < 60);
    at = end + 1;
  }
  std::fclose(terminal);
  close(master);
}

TEST_CASE("predictions that a callback keeps are in the run record, epoch by epoch") {
  const runfile::testing::Folder folder;
  const std::string path = folder / "run.pond";
  struct Keep : Callback {
    Tensor x;
    std::vector<Arrays> kept;
    void on_epoch_end(int, const Logs&) override { kept.push_back(model().predict(x)); }
  } keep;
  keep.x = uniform({5000, 6}, 1);
  Sequential model{Input({6}), Dense(32, relu)};
  model.compile("sgd", "mse");
  const Tensor y = uniform({5000, 32}, 2);
  const Bytes before = memory().account("data/predictions");
  const History h =
      model.fit(keep.x, y, {.batch_size = 500, .epochs = 4, .verbose = 0, .callbacks = {keep, RunRecord(path)}});
  const runfile::Reader r(path);
  std::vector<int64_t> series;
  for (const runfile::SeriesRow& row : r.series())
    if (row.account == "data/predictions" && row.kind == runfile::SeriesKind::kCurrent)
      series.push_back(row.bytes.value);
  REQUIRE(series.size() == 4);
  for (size_t i = 1; i < series.size(); ++i) CHECK(series[i] - series[i - 1] >= 5000 * 32 * 4);
  CHECK(memory().account("data/predictions") - before >= Bytes{4 * 5000 * 32 * 4});
  CHECK(h.memory.account("data/predictions") - before >= Bytes{4 * 5000 * 32 * 4});
  CHECK(h.resident.size() == 4);
  CHECK(h.resident[3] > h.resident[0]);
}

TEST_CASE("memory: accounts of the process and of one model, and what is resident") {
  Sequential model({Input({10}), Dense(100, relu, {.name = "hidden"}), Dense(1)}, "told");
  model.compile("adam", "mse");
  CHECK(model.memory().taken == Bytes{0});
  const Bytes before = memory().account("weights");
  model.fit(uniform({32, 10}, 1), uniform({32, 1}, 2), {.verbose = 0});
  const MemoryReport own = model.memory(), all = memory();
  CHECK(own.account("weights/hidden/kernel") == Bytes{10 * 100 * 4});
  CHECK(own.account("slots/adam.m/hidden/kernel") == Bytes{10 * 100 * 4});
  CHECK(own.account("arena") > Bytes{0});
  CHECK(all.account("weights") - before >= own.account("weights"));
  CHECK(all.resident > Bytes{1 << 20});
  CHECK(all.peak >= all.resident);
}

TEST_CASE("npy: a tensor goes into a file and comes back, read or mapped") {
  const runfile::testing::Folder folder;
  const Tensor x = uniform({7, 3}, 5);
  write_npy(folder / "x.npy", x);
  for (const Tensor& back : {read_npy(folder / "x.npy"), map_npy(folder / "x.npy")}) {
    CHECK(back.shape() == x.shape());
    CHECK(std::ranges::equal(back.values<float>(), x.values<float>()));
  }
}
