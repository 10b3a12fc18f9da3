// docs/layers.md is made of the declarations: of every layer, initializer and loss its options, and of every public
// header the words it opens with. MILLPOND_UPDATE=1 in the environment writes the page instead of comparing.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "millpond/millpond.h"
#include "nn/activate.h"
#include "nn/classes.h"
#include "nn/initialize.h"
#include "nn/loss.h"
#include "nn/metric.h"

using namespace millpond;

namespace {

std::string content(const std::string& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

/// What the header says before it begins, as one paragraph.
std::string opening(const std::string& header) {
  std::istringstream lines(content("include/millpond/" + header));
  std::string text;
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    if (line == "//") break;
    text += (text.empty() ? "" : " ") + line.substr(line.size() > 2 ? 3 : 2);
  }
  return text;
}

std::string table(const std::vector<nn::OptionFact>& options) {
  std::string text;
  for (const nn::OptionFact& o : options) {
    if (o.name == "name" || o.name == "trainable") continue;  // said once for all
    std::string allowed = o.allowed;
    if (o.name.ends_with("initializer"))
      allowed = "an [initializer](#initializers)";
    else if (o.name == "activation")
      allowed = "an [activation](#activations)";
    const bool code = !o.otherwise.empty() && !o.otherwise.starts_with("as ");
    text += format("| `{}` | {} | {} |\n", o.name, allowed, code ? "`" + o.otherwise + "`" : o.otherwise);
  }
  return text.empty() ? "No options of its own.\n" : "| option | allowed | default |\n|---|---|---|\n" + text;
}

std::string page() {
  std::string text = R"(# Layers, initializers, losses and their options

Names, defaults and order are those of Keras 3. In C++ what must be given is an argument and the rest a struct: `Conv2D(32, 3, {.strides = 2, .padding = "same"})`. Every
layer also has `name` and `trainable`, every loss `name`. An option without a default must be given.

A layer's `get_config()` gives the options as JSON, `Layer::from_config("Dense", json)` makes a layer of them; initializers, losses and metrics have the same. `model.to_json()` writes the
whole model as Keras does, and `model_from_json` opens it, as does `keras.models.model_from_json`. Options of Keras that are not in these tables may have Keras's default only; what
else is given is refused by name.

This page is made of the declarations in the sources: `MILLPOND_UPDATE=1 build/tests/nn_test -tc='layers page*'` writes it.

## Layers
)";
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [type, c] : nn::layer_classes()) files[std::string(c.file)].push_back(type);
  for (const auto& [file, types] : files) {
    if (file == "input") continue;
    text += format("\n<!-- include/millpond/layers/{}.h -->\n{}\n", file, opening("layers/" + file + ".h"));
    for (const std::string& type : types)
      text += format("\n### {}\n{}", type, table(nn::list_options(*nn::layer_classes().at(type).make())));
  }
  text += "\n## Activations\n" + opening("activations.h") + "\n\n";
  for (const std::string& name : nn::activation_names())
    text += (text.ends_with("\n") ? "" : ", ") + format("`{}`", name);
  text += "\n\n## Initializers\n" + opening("initializers.h") + "\n";
  for (const std::string& type : nn::initializer_classes())
    text += format("\n### {}\n{}", type, table(nn::list_options(*nn::described_initializer(type))));
  text += "\n## Losses\n" + opening("losses.h") + "\n";
  for (const nn::LossClass& c : nn::loss_classes()) {
    std::string names;
    for (const std::string& n : c.names) names += (names.empty() ? "" : ", ") + format("`{}`", n);
    text += format("\n### {}\nAlso by name: {}.\n\n{}", c.type, names, table(nn::list_options(*c.make())));
  }
  text += "\n## Metrics\n" + opening("metrics.h") + "\n";
  for (const nn::MetricFile* file : nn::metric_table())
    for (const nn::MetricKind& kind : file->metrics) {
      if (!kind.make) continue;
      const std::shared_ptr<nn::MetricImpl> metric = kind.make();
      std::string names;
      for (const std::string_view name : kind.names)
        if (!name.empty()) names += (names.empty() ? "" : ", ") + format("`{}`", name);
      if (metric->type().empty())
        text += format("\n### {}\nBy name alone.\n", names);
      else
        text += format("\n### {}\nAlso by name: {}.\n\n{}", metric->type(), names, table(nn::list_options(*metric)));
    }
  return text;
}

}  // namespace

TEST_CASE("layers page: docs/layers.md says of every layer, initializer, loss and metric what it declares") {
  const std::string path = "docs/layers.md", wanted = page();
  if (const char* update = std::getenv("MILLPOND_UPDATE"); update && *update == '1') std::ofstream(path) << wanted;
  const bool same = content(path) == wanted;  // not both pages in the message
  CHECK_MESSAGE(same,
                "docs/layers.md is not what the declarations say; MILLPOND_UPDATE=1 build/tests/nn_test -tc='layers "
                "page*' writes it");
}
