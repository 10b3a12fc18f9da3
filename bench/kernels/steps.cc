// Whole training steps of the works as the engine runs them, without the engine: forward products with their epilogues,
// loss, backward with Adam inside. Prints microseconds a step and each call's share.
#include "harness.h"
#include "ops/all.h"
#include "support/rules.h"

using namespace harness;
using namespace ops;

struct Work {
  const char* name;
  int64_t batch;
  std::vector<int64_t> sizes;  // input, layers
  bool dropout;
};

struct Network {
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::string> names;
  Stage stage;

  Call& add(const std::string& name, const graph::Operator& op, std::vector<TensorType> t, std::vector<Fill> f,
            int threads) {
    calls.push_back(std::make_unique<Call>(backend::cpu_backend(), op, t, f, threads));
    names.push_back(name);
    return *calls.back();
  }

  Network(const Work& w, int threads) {
    const Rule adam = millpond::test::adam_rule();
    const size_t layers = w.sizes.size() - 1;
    const int64_t classes = w.sizes.back();
    Call& size =
        add("step_size", StepSize(adam), {f32({}), {DType::kInt64, {}}}, {constant(1e-3), constant(1000)}, threads);
    std::vector<Call*> forward;
    for (size_t l = 0; l < layers; ++l) {
      const int64_t in = w.sizes[l], out = w.sizes[l + 1];
      Expression e{{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}}, {{2}}};
      std::vector<TensorType> t{f32({w.batch, in}), f32({in, out}), f32({out})};
      std::vector<Fill> f{uniform(l + 1, 0, 1), uniform(l + 10, -0.05, 0.05), constant(0)};
      if (l + 1 < layers) {
        e.code.push_back({Function::k_relu, 2});
        e.results = {{3}};
        if (w.dropout)
          e = {{Extent::kFull, Extent::kRow, Extent::kScalar},
               {{Function::k_add, 0, 1}, {Function::k_relu, 3}, {Function::k_dropout, 4, 2, -1, 0.5f, l + 1}},
               {{5}}},
          t.push_back({DType::kInt32, {}}), f.push_back(constant(7));
      }
      Call& c = add("forward " + std::to_string(l + 1), MatMul(false, false, e), t, f, threads);
      if (l) c.bind_in(0, forward.back()->out(0));
      forward.push_back(&c);
    }
    Call* dz;
    if (classes == 1) {
      Expression e;
      e.inputs = {Extent::kFull, Extent::kFull};
      e.code = {{Function::k_sigmoid_cross_entropy, 0, 1},
                {Function::k_sigmoid, 0},
                {Function::k_subtract, 3, 1},
                {Function::k_constant, -1, -1, -1, 1.f / float(w.batch)},
                {Function::k_multiply, 4, 5},
                {Function::k_constant, -1, -1, -1, 0.5f},
                {Function::k_greater, 3, 7},
                {Function::k_equal, 8, 1}};
      e.results = {{2, Collect::kSumAll, 1.f / float(w.batch)}, {6}, {9, Collect::kSumAll, 1.f / float(w.batch)}};
      dz = &add("loss", Fused(e, w.batch, 1, {f32({}), f32({w.batch, 1}), f32({})}),
                {f32({w.batch, 1}), f32({w.batch, 1})}, {constant(0), below(3, 2)}, threads);
      dz->bind_in(0, forward.back()->out(0));
    } else {
      Call& loss = add("loss", SoftmaxCrossEntropy(), {f32({w.batch, classes}), {DType::kInt32, {w.batch}}},
                       {constant(0), below(3, classes)}, threads);
      loss.bind_in(0, forward.back()->out(0));
      Call& best = add("argmax", ArgMax(), {f32({w.batch, classes})}, {constant(0)}, threads);
      best.bind_in(0, forward.back()->out(0));
      dz = &add("loss backward", SoftmaxCrossEntropyBackward(),
                {f32({w.batch, classes}), {DType::kInt32, {w.batch}}, f32({w.batch})},
                {constant(0), below(3, classes), constant(1.0 / double(w.batch))}, threads);
      dz->bind_in(0, forward.back()->out(0));
    }
    void* gradient = dz->out(classes == 1 ? 1 : 0);
    for (size_t l = layers; l-- > 0;) {
      const int64_t in = w.sizes[l], out = w.sizes[l + 1];
      std::vector<TensorType> t{f32({w.batch, in}), f32({w.batch, out}), f32({1}),   f32({in, out}), f32({in, out}),
                                f32({in, out}),     f32({out}),          f32({out}), f32({out})};
      std::vector<Fill> f(9, constant(0));
      for (int i : {3, 4, 5}) f[size_t(i)] = uniform(l + 20, 0.001, 0.01);
      std::unique_ptr<graph::Operator> op;
      if (l == 0) {
        op = std::make_unique<DenseUpdate>(adam, true);
      } else {
        Expression e{{Extent::kFull, Extent::kFull}, {{Function::k_gate, 0, 1}}, {{2}}};
        t.push_back(t[0]), f.push_back(constant(0));
        if (w.dropout)
          e = {{Extent::kFull, Extent::kFull, Extent::kScalar},
               {{Function::k_dropout, 0, 2, -1, 0.5f, l}, {Function::k_gate, 3, 1}},
               {{4}}},
          t.push_back({DType::kInt32, {}}), f.push_back(constant(7));
        op = std::make_unique<DenseBackward>(adam, true, e);
      }
      Call& c = add((l ? "backward " : "update ") + std::to_string(l + 1), *op, t, f, threads);
      if (l)
        c.bind_in(0, forward[l - 1]->out(0)), c.bind_in(9, forward[l - 1]->out(0));
      else
        c.bind_in(0, forward[0]->in(0));
      c.bind_in(1, gradient);
      c.bind_in(2, size.out(0));
      c.bind_in(3, forward[l]->in(1)), c.bind_out(0, forward[l]->in(1));
      c.bind_in(6, forward[l]->in(2)), c.bind_out(3, forward[l]->in(2));
      if (l) gradient = c.out(6);
    }
    for (auto& c : calls) stage.add(*c);
  }
};

int main(int argc, char** argv) {
  const Work works[] = {{"tiny", 8, {4, 8, 1}, false},
                        {"mlp_small", 32, {100, 64, 1}, false},
                        {"mlp_large", 64, {200, 512, 256, 1}, true},
                        {"mlp_784", 128, {784, 512, 512, 10}, false}};
  for (const Work& w : works) {
    if (argc > 1 && std::strcmp(argv[1], w.name)) continue;
    for (int threads : {1, 2}) {
      if (threads == 2 && w.batch < 32) continue;
      Network n(w, threads);
      Team team(threads);
      const double time = least([&] { n.stage.run(team); }, argc > 2 ? std::atof(argv[2]) : 1, threads == 1);
      std::printf("%-10s %d thread%s %10.3f us a step", w.name, threads, threads > 1 ? "s" : " ", time * 1e6);
      {
        double sum = 0;
        std::string text;
        for (size_t i = 0; i < n.calls.size(); ++i) {
          Stage alone;
          alone.add(*n.calls[i]);
          const double t = least([&] { alone.run(team); }, 0.2, threads == 1);
          char buffer[64];
          std::snprintf(buffer, sizeof buffer, ", %s %.3f", n.names[i].c_str(), t * 1e6);
          text += buffer;
          sum += t;
        }
        std::printf(" (calls alone %.3f%s)", sum * 1e6, text.c_str());
      }
      if (threads == 2 && argc > 3) {  // pairs of calls, to see what the one costs the other
        for (size_t i = 0; i < n.calls.size(); ++i)
          for (size_t j = i + 1; j < n.calls.size(); ++j) {
            Stage one, two, pair;
            one.add(*n.calls[i]), two.add(*n.calls[j]), pair.add(*n.calls[i]), pair.add(*n.calls[j]);
            const double a = least([&] { one.run(team); }, 0.1, false), b = least([&] { two.run(team); }, 0.1, false),
                         c = least([&] { pair.run(team); }, 0.1, false);
            if (c * 1e6 > 20)
              std::printf("\n  %s + %s: %.1f + %.1f, together %.1f", n.names[i].c_str(), n.names[j].c_str(), a * 1e6,
                          b * 1e6, c * 1e6);
          }
      }
      std::printf("\n");
    }
  }
}
