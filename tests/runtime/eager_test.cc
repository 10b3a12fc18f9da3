// Operators run by themselves, and programs whose operands belong to the caller.
#include "runtime/eager.h"

#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "base/segment.h"
#include "base/team.h"
#include "far/far.h"
#include "ops/all.h"
#include "runtime/program.h"
#include "support/operators.h"

using namespace millpond;
using namespace millpond::test;
using graph::TensorType;
using ops::Function;

namespace {

using OperatorRef = std::shared_ptr<const graph::Operator>;

// Values in the memory of a backend.
backend::Memory put(const backend::Backend& backend, const Tensor& t) {
  backend::Memory m = backend.take(std::max(t.bytes(), 1_B), "test").part(0_B, t.bytes());
  m.write(t.data());
  return m;
}

std::vector<Tensor> run(runtime::Eager& eager, const backend::Backend& backend, const OperatorRef& op,
                        const std::vector<Tensor>& inputs, Team& team) {
  std::vector<TensorType> types;
  std::vector<backend::Memory> memory;
  std::vector<std::byte*> at;
  for (const Tensor& t : inputs) {
    types.push_back({t.dtype(), t.shape()});
    memory.push_back(put(backend, t));
  }
  const std::vector<TensorType> made = eager.outputs(op, types);
  for (const TensorType& t : made) memory.push_back(put(backend, Tensor(t.dtype, t.shape)));
  for (const backend::Memory& m : memory) at.push_back(m.address());
  eager.run(op, types, at, team);
  std::vector<Tensor> results;
  for (size_t i = 0; i < made.size(); ++i) {
    results.emplace_back(made[i].dtype, made[i].shape);
    memory[inputs.size() + i].read(results.back().data());
  }
  return results;
}

std::vector<OperatorRef> samples() {
  const auto make = []<class T>(T op) -> OperatorRef { return std::make_shared<T>(std::move(op)); };
  const ops::Expression relu{{ops::Extent::kFull}, {{Function::k_relu, 0}}, {{1}}};
  return {make(ops::Unary(Function::k_exp)),
          make(ops::Unary(Function::k_relu)),
          make(ops::Binary(Function::k_add)),
          make(ops::Binary(Function::k_multiply)),
          make(ops::Cast(DType::kBool)),
          make(ops::Cast(DType::kFloat64)),
          make(ops::MatMul()),
          make(ops::MatMul(true, false)),
          make(ops::MatMul(false, true)),
          make(ops::MatMul(false, false, relu)),
          make(ops::Reduce(ops::Reduce::Kind::kSum, {0}, false)),
          make(ops::Reduce(ops::Reduce::Kind::kSum, {0}, true)),
          make(ops::Reduce(ops::Reduce::Kind::kSum, {0, 1}, false)),
          make(ops::Reduce(ops::Reduce::Kind::kMax, {0}, false)),
          make(ops::Transpose({0, 1})),
          make(ops::Transpose({1, 0})),
          make(ops::BroadcastTo({2, 3})),
          make(ops::BroadcastTo({3, 2})),
          make(ops::Reshape({6})),
          make(ops::Reshape({6, 1})),
          make(ops::Slice({0, 1}, {2, 2})),
          make(ops::Slice({1, 0}, {2, 2})),
          make(ops::Concatenate(0)),
          make(ops::Concatenate(1)),
          make(ops::OneHot(3, DType::kFloat32)),
          make(ops::OneHot(3, DType::kInt32)),
          make(ops::Softmax()),
          make(ops::Select()),
          make(ops::Pad({1}, {0}, 0.5)),
          make(ops::Pad({1}, {0}, 0.25))};
}

}  // namespace

TEST_CASE("keys of operators are equal exactly where name and attributes are") {
  const std::vector<OperatorRef> one = samples(), two = samples();
  for (size_t i = 0; i < one.size(); ++i)
    for (size_t j = 0; j < two.size(); ++j) {
      graph::Key a, b;
      one[i]->identify(a), two[j]->identify(b);
      CAPTURE(one[i]->name());
      CAPTURE(two[j]->attributes());
      CHECK((a == b) == (one[i]->name() == two[j]->name() && one[i]->attributes() == two[j]->attributes()));
      if (a == b) CHECK(graph::Key::Hash()(a) == graph::Key::Hash()(b));
    }
}

TEST_CASE("a key that is longer than its place is compared to its end") {
  graph::Key a, b, c;
  for (uint64_t i = 0; i < 100; ++i) a.add(i), b.add(i), c.add(i == 99 ? 0 : i);
  CHECK(a == b);
  CHECK_FALSE(a == c);
}

TEST_CASE("an operator run by itself gives what its kernel gives, on operands of the caller") {
  for (const backend::Backend* backend : {&backend::cpu_backend(), &far_backend()})
    for (const int threads : {1, 2}) {
      CAPTURE(backend->name());
      runtime::Eager eager(*backend, threads, 16_MiB);
      Team team(threads);
      const Tensor x = random({37, 64}, 1), y = random({37, 64}, 2), w = random({64, 65}, 3), row = random({64}, 4);
      const auto check = [&](const OperatorRef& op, const std::vector<Tensor>& inputs) {
        const auto wanted = run_operator(backend::cpu_backend(), *op, inputs, {.threads = threads}),
                   got = run(eager, *backend, op, inputs, team);
        REQUIRE(got.size() == wanted.size());
        for (size_t i = 0; i < got.size(); ++i)
          CHECK(std::memcmp(got[i].data(), wanted[i].data(), size_t(got[i].bytes().value)) == 0);
      };
      for (int round = 0; round < 3; ++round) {
        check(std::make_shared<ops::Binary>(Function::k_add), {x, y});
        check(std::make_shared<ops::Binary>(Function::k_add), {x, row});
        check(std::make_shared<ops::Unary>(Function::k_tanh), {x});
        check(std::make_shared<ops::MatMul>(), {x, w});
        check(std::make_shared<ops::Softmax>(), {x});
      }
      CHECK(eager.made() == 5);
      CHECK(eager.kept() == 5);
    }
}

TEST_CASE("kernels of operators run by themselves stay within their bytes, and those used longest ago go first") {
  Team team(1);
  const backend::Backend& cpu = backend::cpu_backend();
  runtime::Eager eager(cpu, 1, 256_KiB);
  const auto product = [&](int64_t n) {
    (void)run(eager, cpu, std::make_shared<ops::MatMul>(), {random({n, 64}, 1), random({64, n}, 2)}, team);
  };
  const auto held = [] {
    int64_t sum = 0;
    each_holding([&](const std::string& account, Bytes b) {
      sum += account == "process/jit" || account == "eager/scratch" ? b.value : 0;
    });
    return sum;
  };
  const int64_t before = held();
  // Until several had to go; how many fit depends on whether kernels have machine code of their own.
  const auto gone = [&] { return eager.made() - int64_t(eager.kept()); };
  int64_t made = 0;
  for (int64_t n = 33; n < 2033 && gone() < 20; ++n, ++made) {
    product(33);  // always used again, never made again
    product(n);
    CHECK(eager.bytes() <= 256_KiB);
    CHECK(held() - before <= (256_KiB).value);
  }
  CHECK(eager.made() == made);
  CHECK(gone() >= 20);
  CHECK(eager.kept() > 3);
}

TEST_CASE("what an operator refuses is refused, and nothing is kept of it") {
  runtime::Eager eager(backend::cpu_backend(), 1, 1_MiB);
  const std::vector<TensorType> odd{type({2, 3}), type({4, 5})};
  CHECK_THROWS_AS((void)eager.outputs(std::make_shared<ops::MatMul>(), odd), Error);
  CHECK(eager.kept() == 0);
}

TEST_CASE("a program may have its inputs and outputs where the caller has them, another place for each run") {
  for (const backend::Backend* backend : {&backend::cpu_backend(), &far_backend()}) {
    CAPTURE(backend->name());
    graph::Graph g;
    graph::Builder b(g);
    const graph::Value x = b.input("x", type({16, 32})), y = b.input("y", type({16, 32}));
    const graph::Value sum = ops::add(b, ops::multiply(b, x, y), 1.0),
                       wide = ops::matmul(b, sum, ops::transpose(b, x, {1, 0}));
    // a value, a view of an input, the same value again, and one that others read
    g.outputs = {{"wide", wide}, {"flat", ops::reshape(b, x, {512})}, {"again", wide}, {"sum", sum}};
    runtime::Options own, callers;
    own.backend = callers.backend = backend;
    callers.caller_operands = true;
    runtime::Program copied("copied", g.clone(), own), handed("handed", g.clone(), callers);
    CHECK(handed.arena_bytes() < copied.arena_bytes());
    CHECK(handed.lowered().callers == std::vector<std::string>{"x", "y", "wide", "flat", "again", "sum"});
    const backend::Memory one = backend->take(copied.arena_bytes() + 64_B, "test"),
                          two = backend->take(handed.arena_bytes() + 64_B, "test");
    copied.bind(one.address());
    handed.bind(two.address());
    Team team(1);
    for (uint64_t round = 0; round < 3; ++round) {
      const Tensor a = random({16, 32}, 2 * round), c = random({16, 32}, 2 * round + 1);
      copied.open();
      std::memcpy(copied.input("x"), a.data(), size_t(a.bytes().value));
      std::memcpy(copied.input("y"), c.data(), size_t(c.bytes().value));
      copied.run(team);
      copied.wait();
      std::vector<backend::Memory> memory{put(*backend, a), put(*backend, c)};
      for (const char* name : {"wide", "flat", "again", "sum"}) {
        const TensorType& t = handed.output_type(name);
        memory.push_back(put(*backend, Tensor(t.dtype, t.shape)));
      }
      std::vector<std::byte*> at;
      for (const backend::Memory& m : memory) at.push_back(m.address());
      handed.hand_over(at);
      handed.run(team);
      handed.wait();
      size_t i = 2;
      for (const char* name : {"wide", "flat", "again", "sum"}) {
        CAPTURE(std::string(name));
        const TensorType& t = handed.output_type(name);
        Tensor got(t.dtype, t.shape);
        memory[i++].read(got.data());
        CHECK(std::memcmp(got.data(), copied.output(name), size_t(got.bytes().value)) == 0);
      }
      Tensor after(DType::kFloat32, {16, 32});
      memory[0].read(after.data());
      CHECK(std::memcmp(after.data(), a.data(), size_t(a.bytes().value)) == 0);
    }
  }
}
