// Every operator for every dtype it accepts against NumPy (generate.py): values on the reference and the cpu backend,
// by itself and inside a graph that the passes have changed; gradients against JAX's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

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
  if (op == "layer_norm") return ops::layer_norm(b, x[0], x[1], x[2], 1e-3)[0];
  const ops::Function f = ops::parse_function(op);
  return ops::arity(f) == 1 ? ops::unary(b, f, x[0]) : ops::binary(b, f, x[0], x[1]);
}

Tensor turned(const Tensor& x) {
  const int64_t rows = x.shape()[0], cols = x.shape()[1], n = size_of(x.dtype()).value;
  Tensor y(x.dtype(), {cols, rows});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      std::memcpy(y.data() + (j * rows + i) * n, x.data() + (i * cols + j) * n, size_t(n));
  return y;
}

struct Made {
  graph::Graph graph;
  std::vector<Tensor> inputs;
  int count = 0;                // of outputs
  std::vector<bool> flat = {};  // gradients that do not exist: 0
};
// y, and with `dy` the gradients of the floating inputs that NumPy gave.
Made graph_of(const Json& c, const Cases& cases, bool gradients) {
  Made m;
  Builder b(m.graph);
  std::vector<Value> x;
  const std::vector<Tensor> given = cases.tensors(c["in"]);
  for (size_t i = 0; i < given.size(); ++i) {
    const bool turn = i == 0 && c.contains("turned") && !gradients;
    m.inputs.push_back(turn ? turned(given[i]) : given[i]);
    const Value in = b.input(format("x{}", i), {given[i].dtype(), m.inputs.back().shape()});
    x.push_back(turn ? ops::transpose(b, in, {1, 0}) : in);
  }
  const Value y = make(b, c, x);
  const auto out = [&](Value v) { m.graph.outputs.push_back({format("y{}", m.count++), v}); };
  if (!gradients) {
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
        const std::vector<Tensor> got = run(graph_of(c, cases, false), p.backend, p.threads, p.passes);
        for (size_t i = 0; i < out.size(); ++i) fail("", difference(got[i], out[i], near, size));
        if (!c.contains("dy")) continue;
        Made made = graph_of(c, cases, true);
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
  std::set<std::string> ops;
  for (const Json& c : cases.all) ops.insert(c["op"].get<std::string>());
  MESSAGE(cases.all.size() << " cases, " << seen.size() << " pairs of operator and dtype, " << ops.size()
                           << " operators");
}

}  // namespace millpond::test
