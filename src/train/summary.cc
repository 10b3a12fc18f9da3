#include <algorithm>
#include <cstdio>
#include <map>

#include "base/format.h"
#include "train/model.h"

namespace millpond {
namespace {

std::string grouped(int64_t n) {  // 1,234,567
  std::string s = std::to_string(n);
  for (int i = int(s.size()) - 3; i > 0; i -= 3) s.insert(size_t(i), ",");
  return s;
}

std::string keras_shape(const Shape& one) {  // "(None, 10)"
  std::string s = "(None";
  for (const int64_t d : one.slice(1, one.rank())) s += ", " + (d == None ? std::string("None") : std::to_string(d));
  return s + ")";
}

struct Row {
  std::string layer, shape, parameters, connected;
};

}  // namespace

std::string Model::summary_text(const PlanOptions& options) const {
  const nn::Network& net = impl_->built();
  std::vector<Row> rows{{"Layer (type)", "Output Shape", "Param #", net.sequential ? "" : "Connected to"}};
  std::map<const nn::LayerImpl*, const nn::CallNode*> call_of;
  for (const auto& c : net.calls) call_of.emplace(c->layer.get(), c.get());
  for (const auto& l : net.layers) {
    if (net.sequential && l->type == "InputLayer") continue;
    Row r{format("{} ({})", l->name, l->type), keras_shape(call_of[l.get()]->types[0].shape),
          grouped(Layer(l).count_params()), ""};
    if (!net.sequential)
      for (const SymbolicTensor& in : call_of[l.get()]->inputs)
        r.connected += (r.connected.empty() ? "" : ", ") + in.node()->layer->name;
    rows.push_back(std::move(r));
  }
  size_t w[4] = {};
  for (const Row& r : rows)
    w[0] = std::max(w[0], r.layer.size()), w[1] = std::max(w[1], r.shape.size()),
    w[2] = std::max(w[2], r.parameters.size()), w[3] = std::max(w[3], r.connected.size());
  const size_t wide = w[0] + w[1] + w[2] + w[3] + (w[3] ? 6 : 4);
  std::string out = format("Model: \"{}\"\n", impl_->name);
  const std::string line(wide, '-');
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    std::string text =
        format("{:<{}}  {:<{}}  {:>{}}  {}", r.layer, w[0], r.shape, w[1], r.parameters, w[2], r.connected);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
    if (i == 0) out += line + "\n";
  }
  int64_t trainable = 0, fixed = 0;
  for (const nn::OwnedWeight& o : nn::owned_weights(net))
    (o.weight->trainable && o.layer->trainable ? trainable : fixed) += o.weight->variable.type().shape.size();
  out += line + "\n";
  out += format("Total params: {} ({})\n", grouped(trainable + fixed), Bytes{4 * (trainable + fixed)});
  out += format("Trainable params: {} ({})\n", grouped(trainable), Bytes{4 * trainable});
  out += format("Non-trainable params: {} ({})\n\n", grouped(fixed), Bytes{4 * fixed});
  if (net.open() && options.inputs.empty())
    return out +
           "The memory plan depends on the dimensions that are None: ask plan() with inputs, shapes of a sample.\n";
  return out + plan(options).table();
}

void Model::summary(const PlanOptions& options) const {
  const std::string text = summary_text(options);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace millpond
