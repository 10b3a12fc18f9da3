// Weight files: which path of Keras's .weights.h5 each weight has (io/weights_h5.h tells the layout).
#include <map>

#include "base/format.h"
#include "io/weights_h5.h"
#include "train/model.h"

namespace millpond {
namespace {

struct Entry {
  std::string path;
  nn::Weight weight;
};

// The attribute in which Keras's layer keeps the layer inside it.
std::string attribute(const std::string& group) {
  if (group == "lstm_cell") return "cell";  // of a recurrent layer
  return group == "attention_output" ? "output_dense" : group + "_dense";
}

void collect(const nn::Network& net, const std::string& at, std::vector<Entry>& entries,
             std::vector<io::ObjectName>& names) {
  std::map<std::string, int> used;
  for (const auto& l : net.layers) {
    if (net.sequential && l->type == "InputLayer") continue;
    const std::string kind = nn::snake_case(l->type);
    const int n = used[kind]++;
    const std::string path = format("{}layers/{}{}", at, kind, n ? format("_{}", n) : "");
    names.push_back({path, l->name});
    if (const auto* inner = dynamic_cast<const nn::Network*>(l.get())) {
      collect(*inner, path + "/", entries, names);
      continue;
    }
    for (const auto& [part, name] : l->without_weights) names.push_back({path + "/" + part, name});
    std::map<std::string, int> count;
    for (const nn::Weight& w : l->weights()) {
      const std::string owner = w->group.empty() ? path : path + "/" + attribute(w->group);
      const int i = count[w->group]++;
      if (i == 0 && !w->group.empty()) names.push_back({owner, w->group});
      entries.push_back({format("{}/vars/{}", owner, i), w});
    }
  }
}

}  // namespace

void Model::save_weights(const std::string& path) const {
  std::vector<Entry> entries;
  std::vector<io::ObjectName> names{{"", impl_->name}};
  const train::Use use(*impl_, "save_weights", train::Use::How::kRead);
  collect(impl_->built(), "", entries, names);
  impl_->placed_weights();
  std::vector<io::WeightEntry> out;
  for (const Entry& e : entries) out.push_back({e.path, e.weight->variable.seen("data/weights")});
  io::write_weights(path, out, names);
}

void Model::load_weights(const std::string& path) {
  std::vector<Entry> entries;
  std::vector<io::ObjectName> names;
  const train::Use use(*impl_, "load_weights", train::Use::How::kChange);
  collect(impl_->built(), "", entries, names);
  const io::WeightsReader reader(path);
  for (const Entry& e : entries) {
    const auto it = reader.entries().find(e.path);
    const Shape& want = e.weight->variable.type().shape;
    if (it == reader.entries().end())
      throw Error(Code::kFormat, format("{} has no {}, where {} of the model \"{}\" should be", path, e.path,
                                        e.weight->variable.account(), impl_->name))
          .hint("the file belongs to another model");
    if (it->second.shape != want)
      throw Error(Code::kShape, format("{}: {} has the shape {}, but {} has {}", path, e.path, it->second.shape,
                                       e.weight->variable.account(), want))
          .hint("the file belongs to another model");
  }
  impl_->placed_weights();
  for (const Entry& e : entries) {
    runtime::Variable& to = e.weight->variable;
    if (reader.entries().at(e.path).dtype == to.type().dtype)
      to.overwrite([&](Tensor& values) { reader.read_into(e.path, values); });
    else
      to.write(reader.read(e.path, "data/weights").astype(to.type().dtype, "data/weights"));
  }
}

}  // namespace millpond
