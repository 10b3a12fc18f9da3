#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include "base/process.h"
#include "base/segment.h"
#include "far/far.h"
#include "ops/all.h"
#include "passes/steps.h"

using namespace millpond;
using namespace millpond::test;

namespace {

runtime::Options with(const backend::Backend& backend, int threads) {
  runtime::Options o;
  o.backend = &backend;
  o.threads = threads;
  return o;
}

}  // namespace

TEST_CASE("the cpu kernels train as the reference does") {
  int which = 0;
  for (const Step& step : {mlp_step({}), mlp_step({.rows = 33, .widths = {17, 65, 40, 1}, .dropout = true}),
                           mlp_step({.rows = 32, .widths = {100, 64, 1}}), conv_step(false), conv_step(true)}) {
    const std::vector<Tensor> slow = run_steps(step, with(backend::reference_backend(), 1), 3);
    for (int threads : {1, 2}) {
      CAPTURE(threads);
      CAPTURE(which);
      // Adam's first steps are the sign of the gradient: a weight whose gradient is within rounding of 0 may go either
      // way, by at most the sum of three learning rates (0.03); the largest weights are near 1.
      CHECK(worst_difference(slow, run_steps(step, with(backend::cpu_backend(), threads), 3)) < 0.07);
      const std::vector<Tensor> one = run_steps(step, with(backend::cpu_backend(), threads), 1);
      CHECK(std::abs(one[0].at(0) - run_steps(step, with(backend::reference_backend(), 1), 1)[0].at(0)) < 1e-4);
    }
    ++which;
  }
}

TEST_CASE("the same step with the same number of threads gives the same bits") {
  const Step step = mlp_step({.rows = 64, .widths = {200, 512, 256, 1}, .dropout = true});
  for (int threads : {1, 2}) {
    const std::vector<Tensor> a = run_steps(step, with(backend::cpu_backend(), threads), 5),
                              b = run_steps(step, with(backend::cpu_backend(), threads), 5);
    for (size_t i = 0; i < a.size(); ++i) CHECK(std::memcmp(a[i].data(), b[i].data(), size_t(a[i].bytes().value)) == 0);
  }
}

TEST_CASE("the plan of every step holds, at the lower bound") {
  for (const Step& step : {mlp_step({.rows = 64, .widths = {200, 512, 256, 1}, .dropout = true}), conv_step(true)}) {
    const runtime::Lowered p = runtime::lower(step.graph.clone(), with(backend::cpu_backend(), 2));
    CHECK(plan::violations(p.problem, p.plan).empty());
    CHECK(p.plan.size == p.plan.lower_bound);
  }
}

TEST_CASE("lowering gives the same result each time, takes no memory of tensors and generates no code") {
  const auto held = [] {
    int64_t sum = 0;
    each_holding([&](const std::string& account, Bytes b) {
      sum += account.starts_with("process/jit") || account == "test" ? b.value : 0;
    });
    return sum;
  };
  for (const Step& step :
       {mlp_step({.rows = 64, .widths = {200, 512, 256, 1}, .dropout = true}), conv_step(true), attention_step()}) {
    const int64_t before = held();
    runtime::Options options = with(backend::cpu_backend(), 2);
    options.passes.record = true;
    const runtime::Lowered a = runtime::lower(step.graph.clone(), options),
                           b = runtime::lower(step.graph.clone(), options);
    CHECK(held() == before);
    CHECK(graph::to_string(a.graph) == graph::to_string(b.graph));
    CHECK(a.plan.offsets == b.plan.offsets);
    REQUIRE(a.records.size() == b.records.size());
    for (size_t i = 0; i < a.records.size(); ++i) {
      CHECK(a.records[i].pass == b.records[i].pass);
      if (i > 0) CHECK(a.records[i].before == a.records[i - 1].after);  // nothing changes the graph between two passes
    }
    CHECK(a.records.back().after == graph::to_string(a.graph));
  }
}

TEST_CASE("without passes the graph stays as it was written, and each update is a copy of its own") {
  const Step step = mlp_step({.optimizer = "sgd"});
  runtime::Options options = with(backend::cpu_backend(), 1);
  options.passes = passes::Options::none();
  const auto operators = [](const graph::Graph& g, bool assigns) {
    int n = 0;
    for (const auto& node : g.nodes())
      n += node->role == graph::Role::kOperator && (node->op->name() == "assign") == assigns;
    return n;
  };
  graph::Graph written = step.graph.clone();
  written.sort();
  const runtime::Lowered plain = runtime::lower(step.graph.clone(), options);
  REQUIRE(plain.records.size() == 1);
  CHECK(plain.records[0].pass == "assign_updates");
  CHECK(operators(plain.graph, false) == operators(written, false));
  int copied = 0;
  for (const graph::Update& u : written.updates) copied += !graph::made_in_place(u.value, u.variable);
  CHECK(copied > 0);
  CHECK(operators(plain.graph, true) == copied);
  options.passes.in_variables = true;
  CHECK(operators(runtime::lower(step.graph.clone(), options).graph, true) == 0);
}

TEST_CASE("a backend whose memory the host cannot touch computes the same bits") {
  for (const Step& step :
       {mlp_step({.rows = 33, .widths = {17, 65, 40, 1}, .dropout = true}), conv_step(true), attention_step()})
    for (int threads : {1, 2}) {
      const std::vector<Tensor> near = run_steps(step, with(backend::cpu_backend(), threads), 5),
                                far = run_steps(step, with(far_backend(), threads), 5);
      REQUIRE(near.size() == far.size());
      for (size_t i = 0; i < near.size(); ++i)
        CHECK(std::memcmp(near[i].data(), far[i].data(), size_t(near[i].bytes().value)) == 0);
    }
}

TEST_CASE("an address of the far backend cannot be followed") {
  const backend::Memory memory = far_backend().take(4096_B, "test");
  CHECK(memory.host() == nullptr);
  for (const bool write : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      for (const int s : {SIGSEGV, SIGBUS}) std::signal(s, SIG_DFL);  // doctest has handlers of its own
      auto* at = reinterpret_cast<volatile char*>(memory.address());
      if (write)
        *at = 1;
      else
        (void)*at;
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSEGV);
  }
}

TEST_CASE(
    "far: results are not there before they are waited for, and inputs that are written too early spoil the step") {
  graph::Graph g;
  graph::Builder b(g);
  g.outputs.push_back({"y", ops::multiply(b, b.input("x", {DType::kFloat32, {1}}), 2.0)});
  runtime::Program program("test", std::move(g), with(far_backend(), 1));
  const backend::Memory arena = far_backend().take(program.arena_bytes(), "test");
  program.bind(arena.address());
  Team team(1);
  auto* const x = reinterpret_cast<float*>(program.input("x"));
  const auto* const y = reinterpret_cast<const float*>(program.output("y"));
  program.open();
  *x = 3;
  program.run(team);
  CHECK(std::isnan(*y));
  program.open();
  CHECK(std::isnan(*x));
  *x = 5;
  program.wait();
  CHECK(*y == 6);
  program.run(team);
  *x = 7;  // without open()
  program.wait();
  CHECK(*y == 14);
}

TEST_CASE("a variable is written, read and looked at through its backend") {
  for (const backend::Backend* backend : {&backend::cpu_backend(), &far_backend()}) {
    CAPTURE(backend->name());
    runtime::Variable a("a", {DType::kFloat32, {3}}), b("b", {DType::kInt64, {}});
    runtime::Variable* both[] = {&a, &b};
    CHECK(runtime::bytes_to_place(std::vector<const runtime::Variable*>{&a, &b}) == 128_B);
    runtime::place(both, "test", *backend);
    CHECK(a.copy("test").at(2) == 0);
    a.write(Tensor::of({1.f, 2.f, 3.f}, {3}));
    CHECK(a.seen("test").at(1) == 2);
    a.overwrite([](Tensor& all) { std::ranges::fill(all.values<float>(), 4.f); });
    CHECK(a.copy("test").at(2) == 4);
    a.zero();
    CHECK(a.copy("test").at(2) == 0);
    b.put(int64_t{7});
    CHECK(b.get<int64_t>() == 7);
    if (backend->on_host())
      CHECK(a.view().at(0) == 0);
    else
      CHECK_THROWS_WITH_AS((void)a.view(),
                           "a lies in the memory of the backend \"far\", which the host cannot see; use copies: "
                           "get_weights and set_weights",
                           Error);
  }
}

TEST_CASE("sums of scalars over many runs come out as one by one, however late a backend runs") {
  const Step step = mlp_step({.rows = 16, .widths = {9, 12, 1}});
  for (const backend::Backend* backend : {&backend::cpu_backend(), &far_backend()}) {
    CAPTURE(backend->name());
    std::vector<std::unique_ptr<runtime::Variable>> own;
    graph::Graph g = step.graph.clone();
    for (const auto& v : step.variables) {
      own.push_back(std::make_unique<runtime::Variable>(v->account(), v->type()));
      runtime::Variable* one[] = {own.back().get()};
      runtime::place(one, "test", *backend);
      own.back()->write(v->view());
      for (const auto& n : g.nodes())
        if (n->variable == v.get()) n->variable = own.back().get();
    }
    runtime::Program program("test", std::move(g), with(*backend, 1));
    program.sum_outputs({{"hits", 1.0}, {"loss", 16.0}});
    const backend::Memory arena = backend->take(program.arena_bytes(), "test");
    program.bind(arena.address());
    Team team(1);
    double sums[2] = {0, 0}, wanted[2] = {0, 0};
    const auto stage = [&] {
      program.open();
      for (const auto& [name, t] : step.batch) std::memcpy(program.input(name), t.data(), size_t(t.bytes().value));
    };
    for (int i = 0; i < 7; ++i) {  // looked at each time
      stage();
      program.run(team);
      program.wait();
      wanted[0] += double(*reinterpret_cast<const float*>(program.output("hits")));
      wanted[1] += double(*reinterpret_cast<const float*>(program.output("loss"))) * 16.0;
    }
    for (size_t i = 0; i < own.size(); ++i) own[i]->write(step.variables[i]->view());
    for (int i = 0; i < 7; ++i) {  // not before the end
      stage();
      program.run(team, sums);
    }
    program.wait();
    CHECK(sums[0] == wanted[0]);
    CHECK(sums[1] == wanted[1]);
  }
}

TEST_CASE("an output that is a view of an input is still there when the step has ended") {
  graph::Graph g;
  graph::Builder b(g);
  const graph::Value x = b.input("x", {DType::kFloat32, {64, 64}});
  graph::Value h = x;
  for (int i = 0; i < 4; ++i) h = ops::matmul(b, h, ops::transpose(b, h, {1, 0}));
  g.outputs = {{"deep", h}, {"flat", ops::reshape(b, x, {4096})}};
  runtime::Program program("test", std::move(g), with(backend::reference_backend(), 1));
  const backend::Memory arena = program.backend().take(program.arena_bytes() + 64_B, "test");
  program.bind(arena.address());
  auto* const in = reinterpret_cast<float*>(program.input("x"));
  for (int i = 0; i < 4096; ++i) in[i] = float(i % 7) * 0.01f;
  Team team(1);
  program.run(team);
  const auto* const flat = reinterpret_cast<const float*>(program.output("flat"));
  int wrong = 0;
  for (int i = 0; i < 4096; ++i) wrong += flat[i] != float(i % 7) * 0.01f;
  CHECK(wrong == 0);
}

TEST_CASE("a variable whose old value is still wanted is assigned last") {
  // y = 2 x is read after x has become x + 1, so x + 1 may not be made in x's bytes before
  graph::Graph g;
  graph::Builder b(g);
  runtime::Variable x("x", {DType::kFloat32, {3}});
  runtime::Variable* one[] = {&x};
  runtime::place(one, "test");
  const graph::Value v = b.variable("x", x.type(), &x);
  const graph::Value next = ops::add(b, v, 1.0);
  const graph::Value y =
      ops::multiply(b, ops::add(b, ops::matmul(b, ops::reshape(b, v, {1, 3}), ops::reshape(b, v, {3, 1})), 0.0), 2.0);
  g.updates.push_back({v, next});
  g.outputs.push_back({"y", y});
  runtime::Program program("test", std::move(g), with(backend::reference_backend(), 1));
  const backend::Memory arena = program.backend().take(program.arena_bytes() + 64_B, "test");
  program.bind(arena.address());
  Team team(1);
  for (int i = 0; i < 3; ++i) {
    program.run(team);
    CHECK(*reinterpret_cast<const float*>(program.output("y")) == doctest::Approx(2.0 * 3 * i * i));
  }
  CHECK(x.view().at(0) == 3);
}

TEST_CASE("the null backend plans what no machine could hold") {
  graph::Graph g;
  graph::Builder b(g);
  std::vector<std::unique_ptr<runtime::Variable>> weights;
  graph::Value h = b.input("x0", {DType::kFloat32, {1024, 65536}});
  for (int i = 0; i < 24; ++i) {  // 103 billion parameters
    weights.push_back(std::make_unique<runtime::Variable>("w", graph::TensorType{DType::kFloat32, {65536, 65536}}));
    h = ops::relu(b, ops::matmul(b, h, b.variable("w", weights.back()->type(), weights.back().get())));
  }
  g.outputs.push_back({"y", h});
  const Bytes before = *resident();
  const runtime::Lowered p = runtime::lower(std::move(g), with(backend::null_backend(), 1));
  CHECK(p.plan.size >= Bytes{2LL * 1024 * 65536 * 4});
  CHECK((*resident() - before).value < (8_MiB).value);
}
