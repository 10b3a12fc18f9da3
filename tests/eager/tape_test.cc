// Gradients by tape: against central differences, against formulas, of higher order, of variables.
#include <atomic>
#include <thread>

#include "eager/support.h"

using namespace millpond;

namespace {
EagerTensor some(Shape shape, uint64_t seed, double low = -1, double high = 1) {
  Tensor t(DType::kFloat64, shape);
  for (int64_t i = 0; i < t.size(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    t.values<double>()[size_t(i)] = low + (high - low) * double(seed >> 11) / double(1ull << 53);
  }
  return EagerTensor(t);
}
}  // namespace

TEST_CASE("gradients of every function agree with central differences") {
  const EagerTensor x = some({3, 4}, 1), y = some({3, 4}, 2, 0.5, 2), row = some({4}, 3, 0.5, 2);
  check_gradients([](const EagerTensors& t) { return t[0] + t[1] * t[0]; }, {x, row});
  check_gradients([](const EagerTensors& t) { return t[0] / t[1] - 2 / t[1]; }, {x, y});
  check_gradients([](const EagerTensors& t) { return ops::power(t[0], t[1]); }, {y, row});
  check_gradients([](const EagerTensors& t) { return ops::exp(t[0]) + ops::log(t[1]) + ops::sqrt(t[1]); }, {x, y});
  check_gradients([](const EagerTensors& t) { return ops::tanh(t[0]) * ops::sigmoid(t[0]) + ops::erf(t[0]); }, {x});
  check_gradients([](const EagerTensors& t) { return ops::relu(t[0]) + ops::abs(t[0]) + ops::square(t[0]); }, {x});
  check_gradients([](const EagerTensors& t) { return ops::maximum(t[0], 0.1) + ops::clip(t[0], -0.3, 0.3); }, {x});
  check_gradients([](const EagerTensors& t) { return ops::matmul(t[0], ops::transpose(t[1])); }, {x, y});
  check_gradients([](const EagerTensors& t) { return ops::matmul(t[0], t[1]); }, {x, row});
  check_gradients([](const EagerTensors& t) { return ops::softmax(t[0]) + ops::log_softmax(t[0], 0); }, {x});
  check_gradients([](const EagerTensors& t) { return ops::mean(t[0], {0}) + ops::max(t[0], {0}) * ops::var(t[0]); },
                  {x});
  check_gradients([](const EagerTensors& t) { return ops::norm(t[0]); }, {x});
  check_gradients([](const EagerTensors& t) { return ops::concatenate({t[0], t[1]}, 1); }, {x, y});
  check_gradients([](const EagerTensors& t) { return t[0][{Slice{.step = -2}, Slice{1, 3}}] * t[0][{0, 1}]; }, {x});
  check_gradients(
      [](const EagerTensors& t) { return ops::take(t[0], ops::arange(0, 2), 1) + t[0][{ellipsis, newaxis, 0}]; }, {x});
  check_gradients([](const EagerTensors& t) { return ops::where(t[0] > 0, t[0], ops::square(t[1])); }, {x, y});
  check_gradients([](const EagerTensors& t) { return ops::broadcast_to(ops::expand_dims(t[0], 0), {2, 3, 4}); }, {x});
  check_gradients([](const EagerTensors& t) { return ops::cast(t[0], DType::kFloat64) % 0.7; }, {y});
}

TEST_CASE("a value that is used several times gathers its gradients, and one that is not has none") {
  const EagerTensor x({1, 2, 3}), y({4, 5, 6}), other({7, 8, 9});
  GradientTape tape;
  tape.watch({x, other});
  const EagerTensor z = x * x + x * y;
  const EagerTensors g = tape.gradient(z, {x, other});
  check_near(g[0], {6, 9, 12});
  CHECK(g[1].is_none());
  GradientTape second;
  second.watch({x, other});
  check_near(second.gradient(x * y, {x, other}, {.unconnected_gradients = UnconnectedGradients::kZero})[1], {0, 0, 0});
}

TEST_CASE("seeds multiply, several targets are summed, and the target itself has the gradient one") {
  const EagerTensor x({1, 2, 3});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const EagerTensor y = x * 2, z = x * x;
  check_near(tape.gradient(z, x, {.output_gradients = {EagerTensor({1, 10, 100})}}), {2, 40, 600});
  check_near(tape.gradient(EagerTensors{y, z}, {x})[0], {4, 6, 8});
  check_near(tape.gradient(y, {y, x})[0], {1, 1, 1});
  check_near(tape.gradient(z, x), {2, 4, 6});
  CHECK(message_of([&] { return tape.gradient(z, x, {.output_gradients = {EagerTensor({1, 2})}}); }) ==
        "GradientTape::gradient: output gradient 0 is float32[2], but its target float32[3]");
}

TEST_CASE("a tape that is not persistent answers once, and frees what it holds") {
  const EagerTensor x = ops::ones({100, 100});
  const Bytes before = eager_memory().used;
  GradientTape tape;
  tape.watch(x);
  EagerTensor y = ops::exp(ops::tanh(x));
  CHECK(eager_memory().used > before);
  EagerTensor g = tape.gradient(y, x);
  y = g = EagerTensor();
  CHECK(eager_memory().used == before);
  CHECK(message_of([&] { return tape.gradient(x * 2, x); }) ==
        "GradientTape::gradient: the tape has answered once, and is not persistent; ask for all gradients at once, or "
        "make it with {.persistent = true}");
  tape.reset();
  tape.watch(x);
  CHECK(double(tape.gradient(ops::sum(x * 3), x)[{0, 0}]) == 3);
}

TEST_CASE("what is not recorded has no gradient: pauses, stop_gradient, whole numbers") {
  const EagerTensor x({1, 2});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  EagerTensor outside;
  {
    const auto pause = tape.stop_recording();
    outside = x * x;
  }
  CHECK(tape.gradient(outside, x).is_none());
  check_near(tape.gradient(stop_gradient(x) * x, x), {1, 2});
  CHECK(tape.gradient(ops::cast(ops::cast(x, DType::kInt32), DType::kFloat32), x).is_none());
  CHECK(message_of([&] {
          tape.watch(ops::arange(0, 3));
          return 0;
        }).starts_with("GradientTape::watch: a tensor of int32 has no gradient"));
  CHECK(message_of([&] {
          return tape.gradient(ops::arange(0, 3), x);
        }).starts_with("GradientTape::gradient: target 0 is int32[3], which has no gradient"));
}

TEST_CASE("gradients of gradients: a tape around each") {
  const EagerTensor x = some({3}, 5, 0.5, 2);
  GradientTape third, second, first;
  third.watch(x), second.watch(x), first.watch(x);
  const EagerTensor y = ops::power(x, 4) + ops::exp(2 * x);
  const EagerTensor dy = first.gradient(y, x), d2y = second.gradient(dy, x), d3y = third.gradient(d2y, x);
  const std::vector<double> v = list(x);
  std::vector<double> one, two, three;
  for (double a : v) {
    one.push_back(4 * a * a * a + 2 * std::exp(2 * a));
    two.push_back(12 * a * a + 4 * std::exp(2 * a));
    three.push_back(24 * a + 8 * std::exp(2 * a));
  }
  check_near(dy, one, 1e-12);
  check_near(d2y, two, 1e-12);
  check_near(d3y, three, 1e-12);
  // Through products and sums too.
  const EagerTensor m = some({3, 3}, 6);
  check_gradients(
      [](const EagerTensors& t) {
        GradientTape inner;
        inner.watch(t[0]);
        return inner.gradient(ops::sum(ops::tanh(ops::matmul(t[1], t[0]))), t[0]);
      },
      {x, m});
}

TEST_CASE("jacobian: the gradient of each element of the target") {
  const EagerTensor x({1, 2, 3}), m({{1, 0, 2}, {3, 4, 0}});
  GradientTape tape;
  tape.watch(x);
  const EagerTensor j = tape.jacobian(ops::matmul(m, ops::square(x)), x);
  CHECK(j.shape() == Shape{2, 3});
  check_near(j, {2, 0, 12, 6, 16, 0});
}

TEST_CASE("a function with a gradient of its own") {
  int asked = 0;
  const auto clipped = custom_gradient([&](const EagerTensors& x) -> WithGradient {
    return {{x[0] * 1, x[1] * x[0]}, [&asked](const EagerTensors& dy) -> EagerTensors {
              ++asked;
              return {ops::clip(dy[0], -1, 1), dy[1] * 100};
            }};
  });
  const EagerTensor x({1, 2}), y({3, 4});
  GradientTape tape;
  tape.watch({x, y});
  const EagerTensors made = clipped({x, y});
  check_near(made[1], {3, 8});
  const EagerTensors g = tape.gradient(ops::sum(made[0] * 5) + ops::sum(made[1]), {x, y});
  check_near(g[0], {1, 1});
  check_near(g[1], {100, 100});
  CHECK(asked == 1);
  // One that hands its argument through, twice differentiated.
  const auto cubed = custom_gradient([](const EagerTensors& t) -> WithGradient {
    const EagerTensor v = t[0];
    return {{v}, [v](const EagerTensors& dy) -> EagerTensors { return {dy[0] * v * v * v}; }};
  });
  GradientTape outer, inner;
  outer.watch(x), inner.watch(x);
  const EagerTensor slope = inner.gradient(cubed({x})[0], x);
  check_near(slope, {1, 8});
  check_near(outer.gradient(slope, x), {3, 12});
}

TEST_CASE("variables are watched by themselves, and what was read stays when they change") {
  Variable w(EagerTensor({1, 2}), {.name = "w"}), frozen(EagerTensor({5, 6}), {.trainable = false, .name = "frozen"});
  GradientTape tape({.persistent = true});
  const EagerTensor before = w;
  const EagerTensor y = w.value() * w * frozen;
  w.assign_add(EagerTensor({10, 10}));
  check_near(before, {1, 2});
  check_near(w, {11, 12});
  check_near(tape.gradient(y, w), {10, 24});  // with what w was: 2 w frozen
  CHECK(tape.gradient(y, frozen).is_none());
  const Variables seen = tape.watched_variables();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].is(w));
  CHECK(w.path() == "w");
  GradientTape asked({.watch_accessed_variables = false});
  CHECK(asked.gradient(w * frozen.value(), w).is_none());
  GradientTape told;
  told.watch(frozen);
  check_near(told.gradient(w * frozen.value(), {frozen, w})[0], {11, 12});
  CHECK(message_of([&] {
          w.assign(EagerTensor({1, 2, 3}));
          return 0;
        }) ==
        "Variable::assign: \"w\" is float32[2], but is assigned float32[3]; reshape or broadcast the value first");
  w.assign(w.value());
  check_near(w, {11, 12});
}

TEST_CASE("what is flat has no gradient") {
  const EagerTensor x = ops::ones({2, 3});
  GradientTape tape;
  tape.watch(x);
  CHECK(tape.gradient(ops::floor_divide(x, 2.0) + ops::sign(x), x).is_none());
}

TEST_CASE("tapes of two threads do not see each other") {
  const EagerTensor x({1, 2});
  GradientTape here;
  here.watch(x);
  EagerTensor y;
  std::thread([&] {
    GradientTape there;
    there.watch(x);
    y = x * 3;
    check_near(there.gradient(y, x), {3, 3});
  }).join();
  CHECK(here.gradient(y, x).is_none());
}

TEST_CASE("threads that change and read one variable see whole values, and every change counts") {
  Variable v(ops::zeros({1000}), {.name = "shared"});
  std::vector<std::thread> threads;
  std::atomic<int> torn{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        v.assign_add(ops::ones({1000}));
        const EagerTensor now = v;
        const EagerTensor same = now[{Slice{0, 1000}}] * 1;
        torn += double(ops::max(same)) != double(ops::min(same)) || double(ops::any(same != now)) != 0;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(torn == 0);
  CHECK(double(ops::min(v)) == 800);
}

TEST_CASE("what runs eager tensors is kept within its bound, and gradients count too") {
  set_eager_memory({.pool = 256_MiB, .programs = 256_KiB});
  const EagerTensor wide = ops::ones({64, 300});
  for (int64_t n = 1; n < 200; ++n) {
    const EagerTensor x = wide[{Slice{}, Slice{0, n}}];
    GradientTape tape;
    tape.watch(x);
    CHECK(double(tape.gradient(ops::sum(ops::tanh(x) * x), x)[{0, 0}]) ==
          doctest::Approx(std::tanh(1) + 1 - std::tanh(1) * std::tanh(1)));
    CHECK(eager_memory().programs <= 300_KiB);
  }
  set_eager_memory({});
}
