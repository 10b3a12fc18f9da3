#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "far/far.h"
#include "ops/all.h"
#include "passes/steps.h"

using namespace millpond;
using namespace millpond::test;
using graph::Builder;
using graph::Value;

namespace {

runtime::Options with(const backend::Backend& backend, int threads) {
  runtime::Options o;
  o.backend = &backend;
  o.threads = threads;
  return o;
}
runtime::Options plain(const backend::Backend& backend) {
  runtime::Options o = with(backend, 1);
  o.passes = passes::Options::none();
  return o;
}

Tensor of(std::vector<float> values, Shape shape) {
  Tensor t(DType::kFloat32, shape);
  std::copy(values.begin(), values.end(), t.values<float>().begin());
  return t;
}

// Runs a graph without variables once.
std::vector<Tensor> run(graph::Graph g, std::vector<std::pair<std::string, Tensor>> batch,
                        const runtime::Options& options) {
  Step step;
  step.graph = std::move(g);
  step.batch = std::move(batch);
  return run_steps(step, options, 1);
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes() != b[i].bytes() || std::memcmp(a[i].data(), b[i].data(), size_t(a[i].bytes().value)) != 0)
      return false;
  return true;
}

}  // namespace

TEST_CASE("scan: an LSTM trains as the same steps written out") {
  for (const RecurrentOptions& o :
       {RecurrentOptions{}, RecurrentOptions{.length = 1}, RecurrentOptions{.length = 2},
        RecurrentOptions{.length = 17, .rows = 16, .inputs = 16, .units = 32},
        RecurrentOptions{.length = 9, .rows = 1, .inputs = 1, .units = 1},
        RecurrentOptions{.length = 6, .rows = 5, .inputs = 7, .units = 11, .optimizer = "adam"}}) {
    CAPTURE(o.length);
    CAPTURE(o.units);
    const Step written_out = unrolled_step(o), loop = scan_step(o);
    const std::vector<Tensor> wanted = run_steps(written_out, plain(backend::reference_backend()), 3);
    // Sums over the steps are added in another order: float32 rounding, times the few steps of training.
    CHECK(worst_difference(wanted, run_steps(loop, plain(backend::reference_backend()), 3)) < 1e-5);
    CHECK(worst_difference(wanted, run_steps(loop, with(backend::reference_backend(), 1), 3)) < 1e-5);
    CHECK(worst_difference(wanted, run_steps(loop, plain(backend::cpu_backend()), 3)) < 1e-4);
    CHECK(worst_difference(wanted, run_steps(written_out, with(backend::cpu_backend(), 1), 3)) < 1e-4);
    for (int threads : {1, 2, 3}) {
      CAPTURE(threads);
      const std::vector<Tensor> fast = run_steps(loop, with(backend::cpu_backend(), threads), 3);
      CHECK(worst_difference(wanted, fast) < 1e-4);
      CHECK(same_bits(fast, run_steps(loop, with(backend::cpu_backend(), threads), 3)));
    }
    CHECK(same_bits(run_steps(loop, with(backend::cpu_backend(), 1), 3), run_steps(loop, with(far_backend(), 1), 3)));
  }
}

TEST_CASE("scan: the arena of a loop is that of one step and what is saved, and its plan is as quick for any length") {
  Bytes before;
  int calls = 0;
  for (const int64_t length : {10, 100, 1000}) {
    Step step = scan_step({.length = length, .rows = 8, .inputs = 16, .units = 32});
    const runtime::Lowered l = runtime::lower(std::move(step.graph), with(backend::cpu_backend(), 1));
    CHECK(plan::violations(l.problem, l.plan).empty());
    if (calls) CHECK(int(l.calls.size()) == calls);
    calls = int(l.calls.size());
    if (before.value) CHECK(l.plan.size.value < before.value * 11);
    before = l.plan.size;
    Bytes scratch;
    for (const runtime::Call& c : l.calls)
      if (c.flow) {
        scratch = std::max(scratch, c.flow->scratch);
        for (const auto& body : c.flow->bodies) CHECK(plan::violations(body->problem, body->plan).empty());
      }
    CHECK(scratch > 0_B);
    CHECK(scratch < 256_KiB);
  }
}

TEST_CASE("scan: nothing but what backward reads is saved, and element-wise work is made again") {
  Step step = scan_step({.length = 10, .rows = 4, .inputs = 8, .units = 16});
  const runtime::Lowered l = runtime::lower(std::move(step.graph), with(backend::cpu_backend(), 1));
  int64_t saved = 0;
  for (const runtime::Call& c : l.calls)
    if (c.flow && !c.flow->reverse)
      for (const auto& e : c.flow->stacks) saved += e.stride.value;
  // What is put out, the four gates before their functions, and the two values carried into the step.
  CHECK(saved == 4 * 16 * 4 * (1 + 4 + 2));
}

TEST_CASE("scan: sums, products and counts that a person can check") {
  graph::Graph g;
  Builder b(g);
  const Value x = b.input("x", {DType::kFloat32, {4, 2}}), zero = b.input("zero", {DType::kFloat32, {2}});
  const auto sum = [](Builder& body, std::span<const Value> in) -> std::vector<Value> {
    const Value s = ops::add(body, in[0], in[1]);
    return {s, ops::multiply(body, s, 10.0)};
  };
  const std::vector<Value> on = ops::scan(b, std::vector{zero}, std::vector{x}, {}, sum);
  const std::vector<Value> back = ops::scan(b, std::vector{zero}, std::vector{x}, {}, sum, {.reverse = true});
  g.outputs = {{"last", on[0]}, {"all", on[1]}, {"back", back[1]}};
  const std::vector<std::pair<std::string, Tensor>> batch{{"x", of({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2})},
                                                          {"zero", of({0, 0}, {2})}};
  for (const backend::Backend* backend : {&backend::reference_backend(), &backend::cpu_backend(), &far_backend()}) {
    const std::vector<Tensor> out = run(g.clone(), batch, with(*backend, 1));
    CHECK(same_bits(out, {of({16, 20}, {2}), of({10, 20, 40, 60, 90, 120, 160, 200}, {4, 2}),
                          of({160, 200, 150, 180, 120, 140, 70, 80}, {4, 2})}));
  }
}

TEST_CASE("scan: a loop in a loop, and its gradient") {
  // y = sum over i of prod over j of (x[i][j] * w), by two scans and written out.
  constexpr int64_t kRows = 3, kCols = 4;
  Tensor x(DType::kFloat32, {kRows, kCols}), w = of({0.7f}, {});
  for (int64_t i = 0; i < x.size(); ++i) x.values<float>()[size_t(i)] = 0.5f + 0.1f * float(i);
  const auto make = [&](bool loops) {
    graph::Graph g;
    Builder b(g);
    const Value xs = b.input("x", {DType::kFloat32, {kRows, kCols}}), ws = b.input("w", {DType::kFloat32, {}});
    Value total = b.scalar(DType::kFloat32, 0);
    if (loops) {
      const auto row = [](Builder& outer, std::span<const Value> in) -> std::vector<Value> {
        const Value one = ops::reshape(outer, outer.scalar(DType::kFloat32, 1), {});
        const auto product = ops::scan(outer, std::vector{one}, std::vector{in[1]}, std::vector{in[2]},
                                       [](Builder& inner, std::span<const Value> v) -> std::vector<Value> {
                                         return {ops::multiply(inner, v[0], ops::multiply(inner, v[1], v[2]))};
                                       });
        return {ops::add(outer, in[0], product[0])};
      };
      total = ops::scan(b, std::vector{total}, std::vector{xs}, std::vector{ws}, row)[0];
    } else {
      for (int64_t i = 0; i < kRows; ++i) {
        Value product = b.scalar(DType::kFloat32, 1);
        for (int64_t j = 0; j < kCols; ++j)
          product =
              ops::multiply(b, product, ops::multiply(b, ops::reshape(b, ops::slice(b, xs, {i, j}, {1, 1}), {}), ws));
        total = ops::add(b, total, product);
      }
    }
    const std::vector<Value> grads = passes::gradients(b, total, std::vector{xs, ws});
    g.outputs = {{"y", total}, {"dx", grads[0]}, {"dw", grads[1]}};
    return g;
  };
  const std::vector<Tensor> wanted = run(make(false), {{"x", x}, {"w", w}}, plain(backend::reference_backend()));
  for (const backend::Backend* backend : {&backend::reference_backend(), &backend::cpu_backend(), &far_backend()})
    for (int threads : {1, 2})
      CHECK(worst_difference(wanted, run(make(true), {{"x", x}, {"w", w}}, with(*backend, threads))) < 1e-5);
}

TEST_CASE("scan: a gradient of the gradient") {
  const auto make = [&](bool loop) {
    graph::Graph g;
    Builder b(g);
    const Value x = b.input("x", {DType::kFloat32, {5, 3}}), h0 = b.input("h", {DType::kFloat32, {3}});
    Value h = h0;
    const auto cell = [](Builder& body, Value state, Value in) {
      return ops::tanh(body, ops::add(body, ops::multiply(body, state, 0.9), in));
    };
    if (loop)
      h = ops::scan(b, std::vector{h0}, std::vector{x}, {},
                    [&](Builder& body, std::span<const Value> in) -> std::vector<Value> {
                      return {cell(body, in[0], in[1])};
                    })[0];
    else
      for (int64_t t = 0; t < 5; ++t) h = cell(b, h, ops::reshape(b, ops::slice(b, x, {t, 0}, {1, 3}), {3}));
    const Value first = passes::gradients(b, ops::sum(b, ops::square(b, h)), std::vector{x})[0];
    const Value second = passes::gradients(b, ops::sum(b, ops::square(b, first)), std::vector{h0})[0];
    g.outputs = {{"first", first}, {"second", second}};
    return g;
  };
  Tensor x(DType::kFloat32, {5, 3});
  for (int64_t i = 0; i < x.size(); ++i) x.values<float>()[size_t(i)] = std::sin(float(i));
  const std::vector<std::pair<std::string, Tensor>> batch{{"x", x}, {"h", of({0.1f, -0.2f, 0.3f}, {3})}};
  const std::vector<Tensor> wanted = run(make(false), batch, plain(backend::reference_backend()));
  CHECK(worst_difference(wanted, run(make(true), batch, with(backend::cpu_backend(), 1))) < 1e-4);
}

TEST_CASE("while_loop: as many steps as the condition says, none too, and never more than the bound") {
  for (const auto& [limit, most, wanted] :
       {std::tuple{100.f, 0, 128.f}, std::tuple{0.5f, 0, 1.f}, std::tuple{100.f, 3, 8.f}}) {
    graph::Graph g;
    Builder b(g);
    const Value x = b.input("x", {DType::kFloat32, {2}}), end = b.input("limit", {DType::kFloat32, {}});
    const std::vector<Value> out = ops::while_loop(
        b, std::vector{x}, std::vector{end},
        [](Builder& c, std::span<const Value> in) -> std::vector<Value> {
          return {ops::greater(c, in[1], ops::max(c, in[0]))};
        },
        [](Builder& s, std::span<const Value> in) -> std::vector<Value> { return {ops::multiply(s, in[0], 2.0)}; },
        most);
    g.outputs = {{"y", out[0]}};
    for (const backend::Backend* backend : {&backend::reference_backend(), &backend::cpu_backend(), &far_backend()})
      for (int threads : {1, 2})
        CHECK(run(g.clone(), {{"x", of({1, 0}, {2})}, {"limit", of({limit}, {})}}, with(*backend, threads))[0].at(0) ==
              wanted);
    CHECK_THROWS_AS(passes::gradients(b, ops::sum(b, out[0]), std::vector{x}), Error);
  }
}

TEST_CASE("cond: the one body or the other, and its gradient") {
  for (const bool which : {true, false}) {
    graph::Graph g;
    Builder b(g);
    const Value x = b.input("x", {DType::kFloat32, {3}}), t = b.input("t", {DType::kFloat32, {}});
    const Value yes = ops::greater(b, t, b.scalar(DType::kFloat32, 0));
    const Value y = ops::cond(
        b, yes, std::vector{x},
        [](Builder& c, std::span<const Value> in) -> std::vector<Value> { return {ops::square(c, in[0])}; },
        [](Builder& c, std::span<const Value> in) -> std::vector<Value> { return {ops::multiply(c, in[0], -3.0)}; })[0];
    const Value dx = passes::gradients(b, ops::sum(b, y), std::vector{x})[0];
    g.outputs = {{"y", y}, {"dx", dx}};
    for (const backend::Backend* backend : {&backend::reference_backend(), &backend::cpu_backend(), &far_backend()})
      for (int threads : {1, 2}) {
        const std::vector<Tensor> out =
            run(g.clone(), {{"x", of({1, 2, 3}, {3})}, {"t", of({which ? 1.f : -1.f}, {})}}, with(*backend, threads));
        CHECK(same_bits(out, which ? std::vector{of({1, 4, 9}, {3}), of({2, 4, 6}, {3})}
                                   : std::vector{of({-3, -6, -9}, {3}), of({-3, -3, -3}, {3})}));
      }
  }
}

TEST_CASE("control flow: flops are those of all steps, of the dearer body, and infinite where nobody knows how many") {
  graph::Graph g;
  Builder b(g);
  const Value x = b.input("x", {DType::kFloat32, {5}}), yes = b.input("yes", {DType::kBool, {}});
  const auto flops = [](Value v) {
    std::vector<graph::TensorType> in;
    for (Value operand : v.node->inputs) in.push_back(operand.type());
    return v.node->op->flops(in, v.node->types);
  };
  const auto go_on = [](Builder& c, std::span<const Value> in) -> std::vector<Value> {
    return {ops::greater(c, ops::max(c, in[0]), c.scalar(DType::kFloat32, 0))};
  };
  const auto square = [](Builder& s, std::span<const Value> in) -> std::vector<Value> {
    return {ops::square(s, in[0])};
  };
  const auto fourth = [](Builder& s, std::span<const Value> in) -> std::vector<Value> {
    return {ops::square(s, ops::square(s, in[0]))};
  };
  CHECK(flops(ops::cond(b, yes, std::vector{x}, square, fourth)[0]) == 10);
  CHECK(flops(ops::while_loop(b, std::vector{x}, {}, go_on, square, 7)[0]) == 7 * (5 + 1 + 5));
  CHECK(std::isinf(flops(ops::while_loop(b, std::vector{x}, {}, go_on, square)[0])));
}

TEST_CASE("control flow: what does not fit is refused with the shapes") {
  graph::Graph g;
  Builder b(g);
  const Value x = b.input("x", {DType::kFloat32, {4, 2}}), h = b.input("h", {DType::kFloat32, {3}});
  const auto message = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message([&] {
          ops::scan(b, std::vector{h}, std::vector{x}, {},
                    [](Builder&, std::span<const Value> in) -> std::vector<Value> { return {in[1]}; });
        }).find("carry 0 is float32[3], but a step makes it float32[2]") != std::string::npos);
  CHECK(message([&] {
          ops::while_loop(
              b, std::vector{h}, {}, [](Builder&, std::span<const Value> in) -> std::vector<Value> { return {in[0]}; },
              [](Builder&, std::span<const Value> in) -> std::vector<Value> { return {in[0]}; });
        }).find("must give one bool") != std::string::npos);
}
