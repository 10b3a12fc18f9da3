#include <doctest/doctest.h>

#include <set>

#include "backend/host/backend.h"
#include "ops/all.h"
#include "passes/steps.h"
#include "support/operators.h"

using namespace millpond;
using namespace millpond::test;

namespace {

runtime::Options on_reference(passes::Options passes) {
  runtime::Options o;
  o.backend = &backend::reference_backend();
  o.passes = passes;
  return o;
}

int count(const graph::Graph& g, std::string_view name) {
  int n = 0;
  for (const auto& node : g.nodes()) n += node->role == graph::Role::kOperator && node->op->name() == name;
  return n;
}

// A backend with the core operators alone: whoever asks it for a fusion fails the test.
class Plain final : public backend::HostBackend {
 public:
  std::string_view name() const override { return "plain"; }
  std::unique_ptr<backend::Kernel> make(const graph::Operator& op, const backend::Request& request) const override {
    static const std::set<std::string_view> core = {
#define MP_OPERATOR(Class, name) #name,
#define MP_FUSION(Class, name)
#include "ops/list.inc"
    };
    CAPTURE(op.name());
    CHECK(core.contains(op.name()));
    if (const auto* product = dynamic_cast<const ops::MatMul*>(&op)) CHECK(product->epilogue.empty());
    if (const auto* convolution = dynamic_cast<const ops::Conv2D*>(&op)) CHECK(convolution->epilogue.empty());
    return backend::reference_backend().make(op, request);
  }
};

graph::Graph after_passes(const Step& step) {
  graph::Graph g = step.graph.clone();
  passes::run(g, {}, nullptr);
  return g;
}

// Three Adam steps divide by the root of squared gradients, so a rounding in a gradient near 0 can move a weight by up
// to three learning rates; the reference computes sums in double, which keeps the order of sums from mattering here.
constexpr double kSame = 2e-5;

}  // namespace

TEST_CASE("each pass alone, and all together, leave what a step computes as it was") {
  std::vector<std::pair<std::string, Step>> steps;
  steps.emplace_back("mlp", mlp_step({}));
  steps.emplace_back("mlp with dropout",
                     mlp_step({.rows = 6, .widths = {4, 9, 8, 3}, .dropout = true, .optimizer = "adamw"}));
  steps.emplace_back("mlp with gelu", mlp_step({.widths = {5, 7, 6, 2}, .gelu = true}));
  steps.emplace_back("mlp with momentum", mlp_step({.optimizer = "momentum"}));
  steps.emplace_back("mlp with an odd rule", mlp_step({.rows = 6, .widths = {4, 9, 8, 3}, .optimizer = "odd"}));
  steps.emplace_back("convolution", conv_step(false));
  steps.emplace_back("two convolutions", conv_step(true));
  steps.emplace_back("attention", attention_step());
  for (const auto& [name, step] : steps) {
    CAPTURE(name);
    const std::vector<Tensor> plain = run_steps(step, on_reference(passes::Options::none()), 3);
    CHECK(worst_difference(plain, run_steps(step, on_reference({}), 3)) < kSame);
    for (bool passes::Options::* one :
         {&passes::Options::fold_constants, &passes::Options::common_subexpressions, &passes::Options::simplify,
          &passes::Options::fuse, &passes::Options::epilogue, &passes::Options::conv_pool, &passes::Options::recompute,
          &passes::Options::update, &passes::Options::order, &passes::Options::in_place, &passes::Options::attention}) {
      passes::Options only = passes::Options::none(), but = {};
      only.*one = true, but.*one = false;
      CHECK(worst_difference(plain, run_steps(step, on_reference(only), 3)) < kSame);
      CHECK(worst_difference(plain, run_steps(step, on_reference(but), 3)) < kSame);
    }
  }
}

TEST_CASE("a backend that offers no fusion gets none, and computes the same") {
  const Plain plain;
  for (const Step& step : {mlp_step({.widths = {5, 7, 6, 2}, .gelu = true}), conv_step(true)}) {
    runtime::Options options;
    options.backend = &plain;
    CHECK(worst_difference(run_steps(step, on_reference({}), 3), run_steps(step, options, 3)) < kSame);
  }
}

TEST_CASE("the graph keeps its invariants through all passes") {
  for (const Step& step : {mlp_step({.dropout = true}), conv_step(true)}) {
    graph::Graph g = step.graph.clone();
    CHECK(violations(g).empty());
    passes::run(g, {}, nullptr);
    CHECK(violations(g).empty());
  }
}

TEST_CASE("no gradient of a dense kernel is left, and bias, relu and gate ride on the products") {
  graph::Graph g = after_passes(mlp_step({.widths = {4, 8, 8, 1}}));
  INFO(to_string(g));
  CHECK(count(g, "dense_update") == 1);  // the first layer: nobody wants the gradient of the data
  CHECK(count(g, "dense_backward") == 2);
  CHECK(count(g, "optimizer_step") == 0);
  CHECK(count(g, "matmul") == 3);
  CHECK(count(g, "unary") + count(g, "reduce") == 0);
  CHECK(count(g, "fused") == 1);  // loss, accuracy and the gradient of the logits in one pass
}

TEST_CASE("with dropout behind relu only the dropped-out activation is kept") {
  graph::Graph g = after_passes(mlp_step({.widths = {4, 8, 1}, .dropout = true}));
  INFO(to_string(g));
  for (const auto& n : g.nodes())
    if (n->role == graph::Role::kOperator && n->op->name() == "matmul") CHECK(n->types.size() == 1);
  CHECK(count(g, "dropout") == 0);
}

TEST_CASE("a gelu keeps its operand and its result, and backward makes the rest anew") {
  const Step step = mlp_step({.rows = 16, .widths = {4, 32, 1}, .gelu = true});
  graph::Graph g = after_passes(step);
  INFO(to_string(g));
  int kept = 0;  // tensors of the hidden layer that cross from forward to backward
  graph::Uses uses(g);
  for (const auto& n : g.nodes())
    for (size_t o = 0; o < n->types.size(); ++o)
      if (n->role == graph::Role::kOperator && n->phase == graph::Phase::kForward && n->types[o].shape == Shape{16, 32})
        for (const graph::Uses::Use& u : uses.of(n->output(int(o))))
          if (u.node && u.node->phase == graph::Phase::kBackward) {
            ++kept;
            break;
          }
  CHECK(kept == 2);
  passes::Options without;
  without.recompute = false;
  runtime::Options lean = on_reference({}), fat = on_reference(without);
  CHECK(runtime::Program("lean", step.graph.clone(), lean).arena_bytes() <
        runtime::Program("fat", step.graph.clone(), fat).arena_bytes());
}

TEST_CASE("what backward reads in two orders is kept in one") {
  const Step step = attention_step();
  graph::Graph g = after_passes(step);
  INFO(to_string(g));
  graph::Uses uses(g);
  for (const auto& n : g.nodes())
    if (n->role == graph::Role::kOperator && n->op->name() == "attention")
      for (const graph::Uses::Use& u : uses.of(n->output())) CHECK((u.node && u.node->phase == graph::Phase::kForward));
}

TEST_CASE("scores, causal mask and softmax between two products become attention, without the score matrix") {
  const int64_t length = 6, width = 4;
  for (const bool causal : {false, true}) {
    Step step;
    graph::Builder b(step.graph);
    const Shape shape{2, 3, length, width};
    std::vector<graph::Value> qkv;
    for (const char* name : {"q", "k", "v"}) {
      Tensor t(DType::kFloat32, shape);
      for (int64_t i = 0; i < t.size(); ++i) t.values<float>()[size_t(i)] = float((i * 37 + name[0]) % 11) / 5 - 1;
      step.batch.emplace_back(name, t);
      qkv.push_back(b.input(name, {DType::kFloat32, shape}));
    }
    graph::Value scores = ops::multiply(b, ops::matmul(b, qkv[0], qkv[1], false, true), 0.5);
    if (causal) {
      Tensor mask(DType::kFloat32, {length, length});
      for (int64_t i = 0; i < length; ++i)
        for (int64_t j = i + 1; j < length; ++j) mask.values<float>()[size_t(i * length + j)] = -1e9f;
      scores = ops::add(b, scores, b.constant(mask));
    }
    step.graph.outputs.push_back({"y", ops::matmul(b, ops::softmax(b, scores), qkv[2])});
    const std::vector<Tensor> plain = run_steps(step, on_reference(passes::Options::none()), 1);
    passes::Options without;
    without.offers = [](std::string_view) { return false; };
    CHECK(passes::run_before_gradients(step.graph, without).empty());
    CHECK(count(step.graph, "attention") == 0);
    CHECK(passes::run_before_gradients(step.graph, {}).size() == 1);
    step.graph.sort();
    INFO(to_string(step.graph));
    CHECK(count(step.graph, "attention") == 1);
    CHECK(count(step.graph, "softmax") + count(step.graph, "matmul") == 0);
    CHECK(worst_difference(plain, run_steps(step, on_reference({}), 1)) < 1e-6);
  }
}

TEST_CASE("a convolution with relu and max-pool never stores its output") {
  for (const bool deep : {false, true}) {
    graph::Graph g = after_passes(conv_step(deep));
    INFO(to_string(g));
    CHECK(count(g, "conv_pool") == 1 + deep);
    CHECK(count(g, "conv_pool_backward") == 1 + deep);
    CHECK(count(g, "conv_pool_backward_input") == int(deep));  // nobody wants the gradient of the data
    CHECK(count(g, "conv2d") + count(g, "conv2d_backward_filter") + count(g, "conv2d_backward_input") == 0);
    CHECK(count(g, "max_pool2d") + count(g, "max_pool2d_backward") == 0);
    for (const auto& n : g.nodes())
      if (n->role == graph::Role::kOperator)
        for (const graph::TensorType& t : n->types)
          if (t.shape.rank() == 4) CHECK((t.shape[1] != 9 && t.shape[1] != 2));  // rows of the convolutions' outputs
  }
}

TEST_CASE(
    "a convolution, relu and max-pool are joined without a bias, with a frozen filter, and not where somebody else "
    "reads the relu") {
  struct Variant {
    bool bias = true, read = false;
    std::vector<int> wrt = {0, 1, 2};  // x, filter, bias
  };
  for (const Variant& v : {Variant{}, Variant{.bias = false, .wrt = {0, 1}}, Variant{.wrt = {0}}, Variant{.wrt = {2}},
                           Variant{.wrt = {0, 2}}, Variant{.wrt = {}}, Variant{.read = true}}) {
    Step step;
    graph::Builder b(step.graph);
    std::vector<graph::Value> in;
    for (const Shape& shape : {Shape{2, 6, 7, 3}, Shape{3, 3, 3, 4}, Shape{4}}) {
      const std::string name = "in" + std::to_string(in.size());
      Tensor t(DType::kFloat32, shape);
      for (int64_t i = 0; i < t.size(); ++i)
        t.values<float>()[size_t(i)] = float((i * 37 + int64_t(in.size())) % 101) / 50 - 1;
      step.batch.emplace_back(name, t);
      in.push_back(b.input(name, {DType::kFloat32, shape}));
    }
    graph::Value h = ops::conv2d(b, in[0], in[1], {});
    if (v.bias) h = ops::add(b, h, in[2]);
    h = ops::relu(b, h);
    graph::Value loss =
        ops::sum(b, ops::square(b, ops::max_pool2d(b, h, {.height = 2, .width = 2, .stride_h = 2, .stride_w = 2})));
    if (v.read) loss = ops::add(b, loss, ops::sum(b, h));
    step.graph.outputs.push_back({"loss", loss});
    std::vector<graph::Value> wrt;
    for (const int k : v.wrt) wrt.push_back(in[size_t(k)]);
    for (const graph::Value g : passes::gradients(b, loss, wrt))
      step.graph.outputs.push_back({"d" + std::to_string(step.graph.outputs.size()), g});
    graph::Graph g = after_passes(step);
    INFO(to_string(g));
    CHECK(count(g, "conv_pool") == int(!v.read));
    CHECK(count(g, "conv2d") == int(v.read));
    CHECK(worst_difference(run_steps(step, on_reference(passes::Options::none()), 1),
                           run_steps(step, on_reference({}), 1)) < 1e-6);
  }
}

TEST_CASE("two blocks of convolution, relu and max-pool on the cpu: four steps lose the same with passes as without") {
  // The longest sums have 6,300 terms (a filter's gradient, over 3 images of 42 * 50 pixels) and 6,732 (the dense
  // layer). A sum of n terms of both signs errs by about n^0.5 u of the sum of magnitudes, whatever their order, u =
  // 2^-24. Three layers forward, three back, four steps, each adding to the error of the one before it, and as much
  // again for a tie that falls otherwise: 16 * 6,732^0.5 u.
  const Step step = conv_step(true, 4, "sgd");
  runtime::Options plain, fused;
  plain.passes = passes::Options::none();
  for (int steps = 1; steps <= 4; ++steps) {
    const double a = run_steps(step, plain, steps)[0].at(0), b = run_steps(step, fused, steps)[0].at(0);
    CHECK(a == doctest::Approx(b).epsilon(8e-5));
  }
}

TEST_CASE("the second derivative of x^3 is 6 x") {
  graph::Graph g;
  graph::Builder b(g);
  runtime::Variable x("x", {DType::kFloat64, {4}});
  runtime::Variable* one[] = {&x};
  runtime::place(one, "test");
  for (int i = 0; i < 4; ++i) x.view().values<double>()[i] = i - 1.5;
  const graph::Value v = b.variable("x", x.type(), &x);
  const graph::Value first =
      passes::gradients(b, ops::sum(b, ops::multiply(b, v, ops::square(b, v))), std::span(&v, 1))[0];
  const graph::Value second = passes::gradients(b, ops::sum(b, first), std::span(&v, 1))[0];
  g.outputs.push_back({"second", second});
  runtime::Program program("test", std::move(g), on_reference({}));
  const backend::Memory arena = program.backend().take(program.arena_bytes() + 64_B, "test");
  program.bind(arena.address());
  Team team(1);
  program.run(team);
  const auto* out = reinterpret_cast<const double*>(program.output("second"));
  for (int i = 0; i < 4; ++i) CHECK(out[i] == doctest::Approx(6 * (i - 1.5)));
}

TEST_CASE("gradients of several values are weighted by their seeds and added up") {
  // d/dx (sum(s x^2) + sum(x y)) = 2 s x + y and d/dy = x, whichever way it is said
  const auto run = [](const auto& build) {
    graph::Graph g;
    graph::Builder b(g);
    std::vector<std::unique_ptr<runtime::Variable>> variables;
    std::vector<graph::Value> v;
    for (const char* name : {"x", "y", "s"}) {
      variables.push_back(std::make_unique<runtime::Variable>(name, graph::TensorType{DType::kFloat64, {3}}));
      runtime::Variable* one[] = {variables.back().get()};
      runtime::place(one, "test");
      variables.back()->write(Tensor::of({1.5 + double(v.size()), -2.0, 0.25 * double(v.size() + 1)}, {3}));
      v.push_back(b.variable(name, variables.back()->type(), variables.back().get()));
    }
    const std::vector<graph::Value> gradients = build(b, v);
    g.outputs = {{"dx", gradients[0]}, {"dy", gradients[1]}};
    runtime::Program program("test", std::move(g), on_reference({}));
    const backend::Memory arena = program.backend().take(program.arena_bytes() + 64_B, "test");
    program.bind(arena.address());
    Team team(1);
    program.run(team);
    std::vector<double> all;
    for (const char* name : {"dx", "dy"}) {
      const auto* out = reinterpret_cast<const double*>(program.output(name));
      all.insert(all.end(), out, out + 3);
    }
    return all;
  };
  const auto seeded = run([](graph::Builder& b, const std::vector<graph::Value>& v) {
    const passes::Seeded values[] = {{ops::square(b, v[0]), v[2]}, {ops::multiply(b, v[0], v[1])}};
    return passes::gradients(b, values, std::span(v).first(2));
  });
  const auto summed = run([](graph::Builder& b, const std::vector<graph::Value>& v) {
    const graph::Value loss = ops::add(b, ops::sum(b, ops::multiply(b, v[2], ops::square(b, v[0]))),
                                       ops::sum(b, ops::multiply(b, v[0], v[1])));
    return passes::gradients(b, loss, std::span(v).first(2));
  });
  for (size_t i = 0; i < seeded.size(); ++i) CHECK(seeded[i] == doctest::Approx(summed[i]));
  CHECK(seeded[0] == 2 * 3.5 * 1.5 + 2.5);
  CHECK(seeded[3] == 1.5);
}

TEST_CASE("a value that another value is made of gets its seed and the other's gradient") {
  graph::Graph g;
  graph::Builder b(g);
  const graph::Value x = b.input("x", {DType::kFloat32, {2}}), y = ops::multiply(b, x, 3.0),
                     z = ops::multiply(b, y, 5.0);
  const passes::Seeded values[] = {{z}, {y}, {y}};
  const std::vector<graph::Value> wrt{x, y, z};
  const auto gradients = passes::gradients(b, values, wrt);
  const auto got = evaluate(g, {Tensor::of({1.f, 1.f}, {2})}, gradients);
  CHECK(got[0].at(0) == 21);
  CHECK(got[1].at(0) == 7);
  CHECK(got[2].at(1) == 1);
}

TEST_CASE("a seed of another type, and the gradient of a whole number, are refused") {
  graph::Graph g;
  graph::Builder b(g);
  const graph::Value x = b.input("x", {DType::kFloat32, {3}}), row = b.input("row", {DType::kFloat32, {1}}),
                     wide = b.input("wide", {DType::kFloat64, {3}}), n = b.input("n", {DType::kInt32, {3}});
  const auto said = [&](passes::Seeded s) {
    try {
      passes::gradients(b, std::span(&s, 1), std::span(&x, 1));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(said({x, row}) == "gradients: the seed has the shape [1], but its value [3]");
  CHECK(said({x, wide}) == "gradients: the seed has the type float64, but its value float32");
  CHECK(said({n}) == "gradients: a value of type int32 has none; cast it to a floating type first");
}

TEST_CASE("a loss that is no scalar is refused") {
  graph::Graph g;
  graph::Builder b(g);
  const graph::Value x = b.input("x", {DType::kFloat32, {3}});
  CHECK_THROWS_WITH_AS(passes::gradients(b, x, std::span(&x, 1)),
                       "gradients: the loss has the shape [3]; reduce it to a scalar first", Error);
}
