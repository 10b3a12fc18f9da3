// Every operator for every dtype it accepts against NumPy (generate.py): values on the reference and the cpu backend,
// by itself and inside a graph that the passes have changed; gradients against JAX's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <typeindex>

#include "base/format.h"
#include "base/team.h"
#include "millpond/npy.h"
#include "ops/all.h"
#include "passes/passes.h"
#include "runtime/program.h"
#include "support/operators.h"

namespace millpond::test {
namespace {

using Json = nlohmann::json;
using graph::Builder;

class Cases {
 public:
  Cases() : folder_(std::string(std::getenv("MILLPOND_BUILD_DIR")) + "/numpy") {
    if (const char* other = std::getenv("MILLPOND_NUMPY_CASES")) folder_ = other;
    std::ifstream file(folder_ + "/cases.json");
    if (file) all = Json::parse(file);
    for (const DType t : kAllDTypes) {
      const std::string name = format("{}/{}.npy", folder_, to_string(t));
      if (std::filesystem::exists(name)) pools_[t] = read_npy(name);
    }
  }
  Tensor tensor(const Json& j) const {
    const DType t = parse_dtype(j["dtype"].get<std::string>());
    const Shape shape(j["shape"].get<std::vector<int64_t>>());
    Tensor pool = pools_.at(t);
    return Tensor::view(pool.data() + j["at"].get<int64_t>() * size_of(t).value, t, shape);
  }
  std::vector<Tensor> tensors(const Json& j) const {
    std::vector<Tensor> made;
    for (const Json& t : j) made.push_back(t.is_null() ? Tensor() : tensor(t));
    return made;
  }
  const std::string& folder() const { return folder_; }
  Json all = Json::array();

 private:
  std::string folder_;
  std::map<DType, Tensor> pools_;
};

Value make(Builder& b, const Json& c, std::span<const Value> x) {
  const std::string op = c["op"];
  const Json& of = c["of"];
  const auto numbers = [&](const char* name) { return of[name].get<std::vector<int64_t>>(); };
  const auto ints = [&](const char* name) { return of[name].get<std::vector<int>>(); };
  const ops::Window pool{.height = 2, .width = 2, .stride_h = 2, .stride_w = 2};
  if (op == "select") return ops::select(b, x[0], x[1], x[2]);
  if (op == "cast") return ops::cast(b, x[0], parse_dtype(of["dtype"].get<std::string>()));
  if (op == "reshape") return ops::reshape(b, x[0], Shape(numbers("shape")));
  if (op == "transpose") return ops::transpose(b, x[0], ints("order"));
  if (op == "concatenate") return ops::concatenate(b, {x[0], x[1]}, of["axis"]);
  if (op == "slice") return ops::slice(b, x[0], numbers("starts"), Shape(numbers("sizes")));
  if (op == "pad") return ops::pad(b, x[0], numbers("before"), numbers("after"), of["value"]);
  if (op == "broadcast_to") return ops::broadcast_to(b, x[0], Shape(numbers("shape")));
  if (op == "sum") return ops::sum(b, x[0], ints("axes"), of["keepdims"]);
  if (op == "mean") return ops::mean(b, x[0], ints("axes"), of["keepdims"]);
  if (op == "max") return ops::max(b, x[0], ints("axes"), of["keepdims"]);
  if (op == "argmax") return ops::argmax(b, x[0]);
  if (op == "gather") return ops::gather(b, x[0], x[1]);
  if (op == "scatter_add") return ops::scatter_add(b, x[0], x[1], of["count"]);
  if (op == "one_hot") return ops::one_hot(b, x[0], of["depth"], parse_dtype(of["dtype"].get<std::string>()));
  if (op == "matmul") return ops::matmul(b, x[0], x[1], of["transpose_a"], of["transpose_b"]);
  if (op == "softmax") return ops::softmax(b, x[0]);
  if (op == "softmax_cross_entropy") return ops::softmax_cross_entropy(b, x[0], x[1]);
  if (op == "conv2d") return ops::conv2d(b, x[0], x[1], {.height = 3, .width = 3});
  if (op == "max_pool2d") return ops::max_pool2d(b, x[0], pool);
  if (op == "average_pool2d") return ops::average_pool2d(b, x[0], pool);
  if (op == "dropout") return ops::dropout(b, x[0], x[1], of["rate"], 7);
  if (op == "batch_norm") return ops::batch_norm(b, x[0], x[1], x[2], 1e-3)[of["output"].get<size_t>()];
  if (op == "layer_norm") return ops::layer_norm(b, x[0], x[1], x[2], 1e-3)[0];
  const ops::Function f = ops::parse_function(op);
  return ops::arity(f) == 1 ? ops::unary(b, f, x[0]) : ops::binary(b, f, x[0], x[1]);
}

// f(at, from) for each element of a tensor of this shape: `at` its number, `from` the same in a tensor with these steps.
template <class F>
void each(const Shape& shape, std::span<const int64_t> steps, int64_t first, F&& f) {
  for (int64_t at = 0; at < shape.size(); ++at) {
    int64_t from = first, rest = at;
    for (int d = shape.rank(); d-- > 0; rest /= shape[d]) from += rest % shape[d] * steps[size_t(d)];
    f(at, from);
  }
}
std::vector<int64_t> steps_of(const Shape& shape) {
  std::vector<int64_t> steps(size_t(shape.rank()), 1);
  for (int d = shape.rank() - 1; d-- > 0;) steps[size_t(d)] = steps[size_t(d) + 1] * shape[d + 1];
  return steps;
}

// An operand as a part of something else: what is handed in, and how the graph gets the operand out of it.
struct View {
  Tensor whole;
  std::function<Value(Builder&, Value)> take;
};
View view_of(const Tensor& x, const Json& how) {
  const Shape& shape = x.shape();
  const int64_t n = size_of(x.dtype()).value;
  if (how.contains("order")) {
    const auto order = how["order"].get<std::vector<int>>();
    std::vector<int64_t> dims, steps;
    std::vector<int> back(order.size());
    for (size_t d = 0; d < order.size(); ++d) {
      dims.push_back(shape[order[d]]);
      steps.push_back(steps_of(shape)[size_t(order[d])]);
      back[size_t(order[d])] = int(d);
    }
    Tensor whole(x.dtype(), Shape(dims));
    each(whole.shape(), steps, 0,
         [&](int64_t at, int64_t from) { std::memcpy(whole.data() + at * n, x.data() + from * n, size_t(n)); });
    return {whole, [back](Builder& b, Value v) { return ops::transpose(b, v, back); }};
  }
  const auto margin = how["margin"].get<std::vector<int64_t>>();
  std::vector<int64_t> dims;
  for (const int64_t d : shape) dims.push_back(d + margin[0] + margin[1]);
  Tensor whole(x.dtype(), Shape(dims));
  std::memset(whole.data(), 1, size_t(whole.bytes().value));  // a bool is 0 or 1
  const std::vector<int64_t> steps = steps_of(whole.shape());
  int64_t first = 0;
  for (const int64_t step : steps) first += margin[0] * step;
  each(shape, steps, first,
       [&](int64_t at, int64_t from) { std::memcpy(whole.data() + from * n, x.data() + at * n, size_t(n)); });
  const std::vector<int64_t> starts(dims.size(), margin[0]);
  return {whole, [starts, shape](Builder& b, Value v) { return ops::slice(b, v, starts, shape); }};
}

struct Made {
  graph::Graph graph;
  std::vector<Tensor> inputs;
  int count = 0;                // of outputs
  std::vector<bool> flat = {};  // gradients that do not exist: 0
};
// What a case wants of the graph: y; y of an operand that is a view; the gradients of the floating inputs that JAX gave.
enum class Of { kValue, kView, kGradients };
Made graph_of(const Json& c, const Cases& cases, Of wanted) {
  Made m;
  Builder b(m.graph);
  std::vector<Value> x;
  const std::vector<Tensor> given = cases.tensors(c["in"]);
  for (size_t i = 0; i < given.size(); ++i) {
    std::optional<View> view;
    if (i == 0 && wanted == Of::kView) view = view_of(given[i], c["view"]);
    m.inputs.push_back(view ? view->whole : given[i]);
    const Value in = b.input(format("x{}", i), {given[i].dtype(), m.inputs.back().shape()});
    x.push_back(view ? view->take(b, in) : in);
  }
  const Value y = make(b, c, x);
  const auto out = [&](Value v) { m.graph.outputs.push_back({format("y{}", m.count++), v}); };
  if (wanted != Of::kGradients) {
    out(y);
    return m;
  }
  m.inputs.push_back(cases.tensor(c["dy"]));
  const Value dy = b.input("dy", {m.inputs.back().dtype(), m.inputs.back().shape()});
  std::vector<Value> wrt;
  for (size_t i = 0; i < x.size(); ++i)
    if (!c["dx"][i].is_null()) wrt.push_back(x[i]);
  const passes::Seeded seeded{y, dy};
  for (const Value v : passes::gradients(b, std::span(&seeded, 1), wrt)) {
    m.flat.push_back(!v);
    if (v) out(v);
  }
  return m;
}

std::vector<Tensor> run(Made m, const backend::Backend& backend, int threads, bool passes) {
  // The gradient of an addition is what came: a program without a call.
  if (std::ranges::all_of(m.graph.outputs,
                          [](const graph::Output& o) { return o.value.node->role == graph::Role::kInput; })) {
    std::vector<Tensor> same;
    for (const graph::Output& o : m.graph.outputs)
      for (size_t i = 0; i < m.inputs.size(); ++i)
        if (m.graph.inputs()[i] == o.value.node) same.push_back(m.inputs[i]);
    return same;
  }
  runtime::Options options;
  options.backend = &backend;
  options.threads = threads;
  if (!passes) options.passes = passes::Options::none();
  std::vector<std::string> names;
  for (const graph::Node* n : m.graph.inputs()) names.push_back(n->name);
  runtime::Program program("numpy", std::move(m.graph), options);
  const backend::Memory arena = program.backend().take(program.arena_bytes() + 64_B, "test");
  program.bind(arena.address());
  Team team(threads);
  program.open();
  for (size_t i = 0; i < names.size(); ++i)
    if (m.inputs[i].bytes() > 0_B)
      std::memcpy(program.input(names[i]), m.inputs[i].data(), size_t(m.inputs[i].bytes().value));
  program.run(team);
  program.wait();
  std::vector<Tensor> results;
  for (int i = 0; i < m.count; ++i) {
    const std::string name = format("y{}", i);
    const graph::TensorType& t = program.output_type(name);
    results.emplace_back(t.dtype, t.shape);
    if (t.bytes() > 0_B) std::memcpy(results.back().data(), program.output(name), size_t(t.bytes().value));
  }
  return results;
}

double unit(DType t) {  // half the distance from 1 to the next
  return t == DType::kFloat64 ? 0x1p-53 : t == DType::kFloat32 ? 0x1p-24 : t == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
}

// "" or what differs first. near 0: the same bits; a NaN is a NaN.
std::string difference(const Tensor& got, const Tensor& want, double near, double size) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return format("{} {} instead of {} {}", to_string(got.dtype()), got.shape(), to_string(want.dtype()), want.shape());
  const int64_t n = size_of(got.dtype()).value;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(got.data() + i * n, want.data() + i * n, size_t(n)) == 0) continue;
    const double g = got.at(i), w = want.at(i);
    if (std::isnan(g) && std::isnan(w)) continue;
    if (g == w && (near > 0 || g == 0)) continue;  // of zeros of two signs NumPy's maximum takes either
    const double least = got.dtype() == DType::kFloat16   ? 0x1p-24
                         : got.dtype() == DType::kFloat64 ? 0x1p-1060
                                                          : 0x1p-130;
    if (near > 0 && is_floating(got.dtype()) &&
        std::abs(g - w) <= 2 * unit(got.dtype()) * near * std::max(std::abs(w), size) + least * near)
      continue;
    return format("element {}: {} instead of {}", i, g, w);
  }
  return {};
}

}  // namespace

TEST_CASE("numpy: every operator gives NumPy's values and JAX's gradients for every dtype it accepts") {
  const Cases cases;
  if (cases.all.empty()) {
    MESSAGE("no cases in " << cases.folder());
    return;
  }
  struct Place {
    const char* name;
    const backend::Backend& backend;
    int threads;
    bool passes;
  };
  const Place places[] = {{"reference", backend::reference_backend(), 1, false},
                          {"cpu", backend::cpu_backend(), 1, false},
                          {"cpu with passes", backend::cpu_backend(), 2, true}};
  std::map<std::string, int> seen, wrong;
  std::set<std::type_index> ran;  // operators of which a result was compared, directly or on the way to a gradient
  const auto note = [&](const graph::Graph& g) {
    std::vector<const graph::Node*> rest;
    for (const graph::Output& o : g.outputs) rest.push_back(o.value.node);
    std::set<const graph::Node*> known(rest.begin(), rest.end());
    while (!rest.empty()) {
      const graph::Node* n = rest.back();
      rest.pop_back();
      if (n->op) {
        const graph::Operator& op = *n->op;
        ran.insert(typeid(op));
      }
      for (const Value v : n->inputs)
        if (v && known.insert(v.node).second) rest.push_back(v.node);
    }
  };
  for (const Json& c : cases.all) {
    const std::vector<Tensor> out = cases.tensors(c["out"]);
    const double near = c["near"], size = c.value("sum", 0.0);
    const std::string key = format("{} {}", c["op"].get<std::string>(), c["in"][0]["dtype"].get<std::string>());
    ++seen[key];
    for (const Place& p : places) {
      const auto fail = [&](const std::string& what, const std::string& why) {
        if (why.empty() || ++wrong[key + p.name + what] > 2) return;  // two of a kind say it
        FAIL_CHECK(format("{} {} on {}: {} {}", c["op"].get<std::string>(), c["in"].dump(), p.name, what, why));
      };
      try {
        const auto compare = [&](const char* what, Made made) {
          note(made.graph);
          const std::vector<Tensor> got = run(std::move(made), p.backend, p.threads, p.passes);
          for (size_t i = 0; i < out.size(); ++i) fail(what, difference(got[i], out[i], near, size));
        };
        compare("", graph_of(c, cases, Of::kValue));
        if (c.contains("view") && &p.backend == &backend::cpu_backend()) compare("view", graph_of(c, cases, Of::kView));
        if (!c.contains("dy")) continue;
        Made made = graph_of(c, cases, Of::kGradients);
        note(made.graph);
        const std::vector<bool> flat = made.flat;
        if (made.count == 0) continue;
        const std::vector<Tensor> dx = run(std::move(made), p.backend, p.threads, p.passes);
        size_t k = 0, which = 0;
        // Half types round every operator's result: the more of them, the less is left.
        const bool half = is_half(cases.tensor(c["dy"]).dtype());
        for (const Json& j : c["dx"]) {
          if (j.is_null() || flat[which++]) continue;
          const Tensor want = cases.tensor(j);
          double largest = 0;
          for (int64_t i = 0; i < want.size(); ++i)
            if (std::isfinite(want.at(i))) largest = std::max(largest, std::abs(want.at(i)));
          // what is left where terms of about 1 cancel (1 - tanh(x)^2) is counted in units of these
          fail("gradient",
               difference(dx[k++], want, std::max(near, 16.0) * 4, std::max({1.0, largest, half ? 0.0 : size})));
        }
      } catch (const Error& e) {
        fail("", e.what());
      }
    }
  }
  // An operator without a case is found here; these have a reason to have none.
  const std::map<std::string, std::string> without = {
      {"assign", "gives a variable its value, which NumPy has no word for: tests/runtime"},
      {"step_size", "the numbers of an optimizer's step: tests/parity compares ten steps with Keras"},
      {"optimizer_step", "an optimizer's formula: tests/parity compares ten steps with Keras"},
      {"own", "runs what a user wrote: tests/nn/extend_test.cc"}};
#define MP_OPERATOR(Class, name)                                                    \
  CHECK_MESSAGE(ran.contains(typeid(ops::Class)) != without.contains(#name), #name, \
                " needs a case in tests/numpy/generate.py, or a reason for having none here (and not both)");
#define MP_FUSION(Class, name)  // made by passes; "cpu with passes" runs them
#include "ops/list.inc"
  std::set<std::string> ops;
  for (const Json& c : cases.all) ops.insert(c["op"].get<std::string>());
  MESSAGE(cases.all.size() << " cases, " << seen.size() << " pairs of operator and dtype, " << ops.size()
                           << " operators");
}

}  // namespace millpond::test
