#include "plan/graphs.h"

#include <algorithm>

#include "millpond/error.h"

namespace millpond::plan::testing {
namespace {

constexpr int64_t kFloat = 4;

// A chain of layers with what each saves for backward. Weight gradients live until the update at the end, as they do
// with clipping by the global norm; `immediate` applies them at once instead.
struct Tape {
  struct Layer {
    std::string name;
    BufferId in;
    std::vector<BufferId> saved;
    int64_t in_bytes, weight_bytes, workspace;
  };
  Program p;
  std::vector<Layer> layers;
  std::vector<BufferId> gradients;
  bool immediate = false;

  BufferId forward(std::string name, BufferId in, int64_t out_bytes, int64_t weight_bytes, int64_t workspace,
                   std::vector<int64_t> saved = {}) {
    p.next();
    p.read(in);
    const BufferId out = p.make("activations/" + name, out_bytes);
    Layer layer{name, in, {}, p[in].size.value, weight_bytes, workspace};
    for (size_t i = 0; i < saved.size(); ++i)
      layer.saved.push_back(p.make("activations/" + name + "/saved" + std::to_string(i), saved[i]));
    if (workspace) p.workspace("workspace/" + name, workspace);
    layers.push_back(std::move(layer));
    return out;
  }
  // Gradient of the layer's input from the gradient of its output; two calls: by the weights, by the input.
  BufferId backward(const Layer& layer, BufferId dy) {
    if (layer.weight_bytes) {
      p.next();
      p.read(layer.in);
      p.read(dy);
      const BufferId dw = p.make("gradients/" + layer.name, layer.weight_bytes);
      if (layer.workspace) p.workspace("workspace/" + layer.name + "/dw", layer.workspace);
      if (immediate)
        p.next(), p.read(dw);
      else
        gradients.push_back(dw);
    }
    p.next();
    p.read(layer.in);
    p.read(dy);
    for (BufferId s : layer.saved) p.read(s);
    const BufferId dx = p.make("gradients/" + layer.name + "/input", layer.in_bytes);
    if (layer.workspace) p.workspace("workspace/" + layer.name + "/dx", layer.workspace);
    return dx;
  }
  BufferId add(BufferId a, BufferId b, const std::string& name) {
    p.next();
    p.read(a);
    p.read(b);
    return p.make(name, p[a].size.value);
  }
  Problem update() {
    for (BufferId g : gradients) p.next(), p.read(g);
    p.next();
    p[p.make("metrics/loss", 8)].escapes = true;
    p.next();
    return p.done();
  }
};

}  // namespace

Problem mlp(int depth, int64_t width, int64_t batch) {
  Tape t;
  BufferId x = t.p.make("data/x", batch * width * kFloat);
  for (int i = 0; i < depth; ++i) {
    const std::string name = "dense_" + std::to_string(i);
    x = t.forward(name, x, batch * width * kFloat, (width + 1) * width * kFloat, 0);
    x = t.forward(name + "/relu", x, batch * width * kFloat, 0, 0);
  }
  t.p.next();
  t.p.read(x);
  BufferId dy = t.p.make("gradients/loss", t.p[x].size.value);
  for (size_t i = t.layers.size(); i-- > 0;) dy = t.backward(t.layers[i], dy);
  return t.update();
}

Problem resnet(std::vector<int> blocks, int64_t image, int64_t batch) {
  Tape t;
  struct Residual {
    size_t first, last;  // layers of the branch
    bool projected;
  };
  std::vector<Residual> residuals;
  const auto bytes = [&](int64_t side, int64_t channels) { return batch * side * side * channels * kFloat; };
  BufferId x = t.p.make("data/x", bytes(image, 3));
  int64_t side = image / 2, channels = 64;
  x = t.forward("stem", x, bytes(side, 64), 7 * 7 * 3 * 64 * kFloat, 7 * 7 * 3 * 64 * side * kFloat);
  x = t.forward("stem_bn", x, bytes(side, 64), 2 * 64 * kFloat, 0, {2 * 64 * kFloat});
  side /= 2;
  x = t.forward("pool", x, bytes(side, 64), 0, 0, {bytes(side, 64) / 4});
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const int64_t mid = 64 << stage, out = 4 * mid;
    for (int b = 0; b < blocks[stage]; ++b) {
      if (b == 0 && stage > 0) side /= 2;
      const std::string name = "conv" + std::to_string(stage + 2) + "_block" + std::to_string(b + 1);
      const BufferId skip = x;
      const size_t first = t.layers.size();
      const int64_t in = channels;
      const auto conv_bn = [&](BufferId v, const std::string& n, int64_t from, int64_t to, int64_t kernel, bool relu) {
        v = t.forward(name + n, v, bytes(side, to), kernel * from * to * kFloat, kernel * to * side * 32 * kFloat);
        v = t.forward(name + n + "_bn", v, bytes(side, to), 2 * to * kFloat, 0, {2 * to * kFloat});
        return relu ? t.forward(name + n + "_relu", v, bytes(side, to), 0, 0) : v;
      };
      BufferId y = conv_bn(x, "_1", in, mid, 1, true);
      y = conv_bn(y, "_2", mid, mid, 9, true);
      y = conv_bn(y, "_3", mid, out, 1, false);
      residuals.push_back({first, t.layers.size() - 1, b == 0});
      const BufferId other = b == 0 ? conv_bn(skip, "_0", in, out, 1, false) : skip;
      x = t.add(y, other, "activations/" + name + "_add");
      channels = out;
    }
  }
  t.p.next();
  t.p.read(x);
  BufferId dy = t.p.make("gradients/loss", t.p[x].size.value);
  for (size_t r = residuals.size(), end = t.layers.size(); r-- > 0;) {
    BufferId skip = dy;
    if (residuals[r].projected)
      for (size_t i = end; i-- > residuals[r].last + 1;) skip = t.backward(t.layers[i], skip);
    for (size_t i = residuals[r].last + 1; i-- > residuals[r].first;) dy = t.backward(t.layers[i], dy);
    dy = t.add(dy, skip, "gradients/block" + std::to_string(r));
    end = residuals[r].first;
  }
  for (size_t i = residuals[0].first; i-- > 0;) dy = t.backward(t.layers[i], dy);
  return t.update();
}

Problem gpt(int layers, int64_t width, int64_t heads, int64_t sequence, int64_t batch, int64_t vocabulary) {
  Tape t;
  const int64_t tokens = batch * sequence, act = tokens * width * kFloat;
  BufferId x = t.p.make("activations/embedding", act);
  const BufferId embedding = x;
  std::vector<std::pair<size_t, size_t>> branches;
  for (int l = 0; l < layers; ++l) {
    const std::string name = "block_" + std::to_string(l);
    size_t first = t.layers.size();
    BufferId y = t.forward(name + "/ln_1", x, act, 2 * width * kFloat, 0, {2 * tokens * kFloat});
    y = t.forward(name + "/qkv", y, 3 * act, 3 * width * width * kFloat, 0);
    y = t.forward(name + "/attention", y, act, 0, batch * sequence * 64 * heads * kFloat,
                  {batch * heads * sequence * kFloat});
    y = t.forward(name + "/proj", y, act, width * width * kFloat, 0);
    branches.emplace_back(first, t.layers.size());
    x = t.add(x, y, "activations/" + name + "/residual_1");
    first = t.layers.size();
    y = t.forward(name + "/ln_2", x, act, 2 * width * kFloat, 0, {2 * tokens * kFloat});
    y = t.forward(name + "/fc", y, 4 * act, 4 * width * width * kFloat, 0);
    y = t.forward(name + "/gelu", y, 4 * act, 0, 0);
    y = t.forward(name + "/fc_proj", y, act, 4 * width * width * kFloat, 0);
    branches.emplace_back(first, t.layers.size());
    x = t.add(x, y, "activations/" + name + "/residual_2");
  }
  const size_t head = t.layers.size();
  x = t.forward("ln_f", x, act, 2 * width * kFloat, 0, {2 * tokens * kFloat});
  x = t.forward("head", x, tokens * vocabulary * kFloat, vocabulary * width * kFloat, 0);
  t.p.next();
  t.p.read(x);
  BufferId dy = t.p.make("gradients/logits", tokens * vocabulary * kFloat);
  t.p[dy].inside = x;  // the loss writes its gradient over the logits
  dy = t.backward(t.layers[head + 1], dy);
  dy = t.backward(t.layers[head], dy);
  for (size_t b = branches.size(); b-- > 0;) {
    const BufferId skip = dy;
    for (size_t i = branches[b].second; i-- > branches[b].first;) dy = t.backward(t.layers[i], dy);
    dy = t.add(dy, skip, "gradients/residual_" + std::to_string(b));
  }
  t.p.next();
  t.p.read(dy);
  t.p.read(embedding);
  return t.update();
}

Problem unet(int depth, int64_t image, int64_t batch, int64_t channels) {
  Tape t;
  const auto bytes = [&](int level, int64_t c) { return batch * (image >> level) * (image >> level) * c * kFloat; };
  BufferId x = t.p.make("data/x", bytes(0, 3));
  std::vector<BufferId> skips;
  struct Join {
    size_t layer;
    int64_t up_bytes, skip_bytes;
  };
  std::vector<Join> joins;  // backward splits the gradient there
  std::vector<size_t> made_by;
  int64_t c = 3;
  const auto pair = [&](const std::string& name, int level, int64_t to) {
    for (const char* n : {"_a", "_b"}) {
      x = t.forward(name + n, x, bytes(level, to), 9 * c * to * kFloat, 9 * c * (image >> level) * kFloat);
      x = t.forward(name + n + "_relu", x, bytes(level, to), 0, 0);
      c = to;
    }
  };
  for (int level = 0; level < depth; ++level) {
    pair("down" + std::to_string(level), level, channels << level);
    skips.push_back(x);
    made_by.push_back(t.layers.size() - 1);
    x = t.forward("pool" + std::to_string(level), x, bytes(level + 1, c), 0, 0);
  }
  pair("bottom", depth, channels << depth);
  for (int level = depth; level-- > 0;) {
    const std::string name = "up" + std::to_string(level);
    x = t.forward(name, x, bytes(level, c / 2), 4 * c * c / 2 * kFloat, 0);
    c /= 2;
    t.p.next();
    t.p.read(x);
    t.p.read(skips[level]);
    const BufferId joined = t.p.make("activations/" + name + "_concat", bytes(level, 2 * c));
    joins.push_back({t.layers.size(), bytes(level, c), bytes(level, c)});
    x = joined;
    c *= 2;
    pair(name + "_conv", level, channels << level);
  }
  t.p.next();
  t.p.read(x);
  BufferId dy = t.p.make("gradients/loss", t.p[x].size.value);
  std::vector<BufferId> skip_gradients(size_t(depth), BufferId{});
  for (size_t i = t.layers.size(); i-- > 0;) {
    for (size_t level = 0; level < made_by.size(); ++level)
      if (made_by[level] == i) dy = t.add(dy, skip_gradients[level], "gradients/skip_sum" + std::to_string(level));
    dy = t.backward(t.layers[i], dy);
    for (size_t j = 0; j < joins.size(); ++j) {
      if (joins[j].layer != i) continue;
      t.p.next();
      t.p.read(dy);
      skip_gradients[size_t(depth) - 1 - j] = t.p.make("gradients/skip", joins[j].skip_bytes);
      dy = t.p.make("gradients/up", joins[j].up_bytes);
    }
  }
  return t.update();
}

Problem random_graph(int buffers, uint32_t seed) {
  std::mt19937 random(seed);
  Program p;
  std::vector<BufferId> made;
  for (int i = 0; i < buffers; ++i) {
    for (int k = 0; k < 3 && !made.empty(); ++k) {
      const unsigned reach =
          random() % 8 ? 12 : 120;  // a statement for each number: the order of operands is not fixed
      const size_t back = std::min<size_t>(made.size(), 1 + random() % reach);
      p.read(made[made.size() - back]);
    }
    const int64_t lines = 1 + random() % 1000, shift = 6 + random() % 8;
    made.push_back(p.make("v" + std::to_string(i), lines << shift));
    p.next();
  }
  return p.done();
}

Problem random_problem(int buffers, int calls, const Features& f, std::mt19937& random) {
  Problem p;
  p.calls = calls;
  const auto dice = [&](int n) { return int(random() % unsigned(n)); };
  std::vector<int64_t> shift;
  for (int i = 0; i < buffers; ++i) {
    Buffer b;
    shift.push_back(0);
    b.name = "b" + std::to_string(i);
    b.size = Bytes{f.zero && dice(10) == 0 ? 0 : 1 + dice(2000)};
    b.first = dice(calls);
    const int span = std::max(1, calls / (1 + dice(4)));
    b.last = std::min(calls - 1, b.first + dice(span));
    b.alignment = Bytes{f.alignment ? int64_t{1} << dice(9) : 64};
    b.escapes = f.escapes && dice(12) == 0;
    if (f.alias && i > 0 && dice(4) == 0) {
      const int outer = dice(i);
      b.inside = BufferId{outer};
      const int64_t room = p.buffers[outer].size.value;
      b.inside_offset = Bytes{room ? dice(int(room)) / b.alignment.value * b.alignment.value : 0};
      shift.back() = shift[outer] + b.inside_offset.value;
      if (shift.back()) b.alignment = std::min(b.alignment, Bytes{shift.back() & -shift.back()});
      b.size = Bytes{std::min(b.size.value, room - b.inside_offset.value)};
    }
    p.buffers.push_back(b);
  }
  if (!f.fixed) return p;
  for (int i = 0; i < buffers; ++i) {
    if (dice(6)) continue;
    Buffer& b = p.buffers[i];
    b.offset = Bytes{dice(40) * 512};
    try {
      (void)lower_bound(p);
    } catch (const Error&) {
      b.offset.reset();
    }
  }
  return p;
}

}  // namespace millpond::plan::testing
