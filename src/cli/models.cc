#include "cli/models.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/format.h"
#include "base/random.h"
#include "cli/compile_config.h"
#include "io/npy.h"
#include "millpond/millpond.h"
#include "nn/layer.h"
#include "train/model.h"

namespace millpond::cli {
namespace {

constexpr int64_t kLongestJson = 256 << 20;  // a configuration of that size is no configuration

std::string known() {
  std::string names;
  for (const Builtin& b : builtins()) names += format("{}{}", names.empty() ? "" : ", ", b.name);
  return names;
}

std::string read_text(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT)
    throw Error(Code::kUsage, format("'{}' is neither a built-in model nor a file", path))
        .hint("built in are " + known() + "; a file is what Keras's model.to_json() gives");
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kLongestJson) {
    const std::string why = fd < 0                   ? std::strerror(errno)
                            : !S_ISREG(info.st_mode) ? "not a plain file"
                                                     : "too large to be a model's configuration";
    if (fd >= 0) close(fd);
    throw Error(Code::kFile, format("{}: {}", path, why));
  }
  std::string text(size_t(info.st_size), 0);
  size_t n = 0;
  for (ssize_t got; n < text.size() && (got = read(fd, text.data() + n, text.size() - n)) > 0;) n += size_t(got);
  close(fd);
  text.resize(n);
  return text;
}

// "mse", or by the outputs' names "size=mse,kind=mae".
LossList losses_named(const std::string& text) {
  if (text.find('=') == std::string::npos) return Loss(text);
  LossList all;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size()), sign = text.find('=', at);
    if (sign >= end)
      throw Error(Code::kUsage, format("--loss: \"{}\" says of no output what its loss is", text.substr(at, end - at)))
          .hint("write OUTPUT=LOSS,OUTPUT=LOSS");
    all.names.push_back(text.substr(at, sign - at));
    all.emplace_back(text.substr(sign + 1, end - sign - 1));
    at = end + 1;
  }
  return all;
}
std::string names_of(const LossList& losses) {
  std::string text;
  for (size_t i = 0; i < losses.size(); ++i)
    text += (i ? "," : "") + (losses.names.empty() ? "" : losses.names[i] + "=") + losses[i].name();
  return text;
}

// Integers stay below the rows of the table they are looked up in; without one they are 0 or 1. Asks for no weight's
// values: that would take memory for all of them.
int64_t index_limit(const Model& model) {
  for (const Layer& layer : model.layers())
    if (layer.type() == "Embedding" || layer.type() == "TokenAndPosition")
      for (const nn::Weight& w : layer.impl()->own_weights()) return w->variable.type().shape[0];
  return 2;
}

void fill_uniform(Tensor& t, Random& random) {
  const std::span<float> values = t.values<float>();
  size_t i = 0;
  for (; i + 1 < values.size(); i += 2) {
    const uint64_t bits = random.next();
    values[i] = float(bits >> 40) * 0x1p-24f;
    values[i + 1] = float(bits >> 8 & 0xffffff) * 0x1p-24f;
  }
  if (i < values.size()) values[i] = float(random.next() >> 40) * 0x1p-24f;
}
void fill_below(Tensor& t, Random& random, int64_t limit) {
  if (t.dtype() == DType::kInt32)
    for (int32_t& v : t.values<int32_t>()) v = int32_t(random.below(uint64_t(limit)));
  else
    for (float& v : t.values<float>()) v = float(random.below(uint64_t(limit)));
}

}  // namespace

std::string optimizer_help() {
  std::string known;
  for (const std::string& name : Optimizer::known()) known += (known.empty() ? "" : ", ") + name;
  return known + " (default: the built-in's or the file's, otherwise adam)";
}

OpenedModel open_model(const ModelChoice& choice, bool plan_only) {
  const Bytes memory_target = choice.memory_target.empty() ? Bytes{} : parse_bytes(choice.memory_target);
  if (const Builtin* b = find_builtin(choice.model)) {
    OpenedModel opened{b->make(), b, choice.loss.empty() ? std::string(b->loss) : choice.loss, ""};
    opened.model.compile({.optimizer = choice.optimizer.empty() ? b->make_optimizer() : Optimizer(choice.optimizer),
                          .loss = Loss(opened.loss),
                          .metrics = {"accuracy"},
                          .memory_target = memory_target});
    if (choice.learning_rate) opened.model.optimizer().set_learning_rate(*choice.learning_rate);
    return opened;
  }
  const std::string text = read_text(choice.model);
  OpenedModel opened{model_from_json(text), nullptr, choice.loss, ""};
  const size_t outputs = opened.model.outputs().size();
  const CompileConfig c =
      compile_config(text, choice.trains && choice.optimizer.empty(), choice.measures ? outputs : 0);
  LossList losses = choice.loss.empty() ? c.losses : losses_named(choice.loss);
  if (losses.empty()) {
    if (!plan_only)
      throw Error(Code::kUsage, format("{} says nothing about a loss", choice.model))
          .hint("give one, for example --loss sparse_categorical_crossentropy");
    losses = "mse";
    opened.note = "the file names no loss; planned with mse (--loss gives another)";
  }
  Optimizer optimizer =
      !choice.optimizer.empty() ? Optimizer(choice.optimizer) : c.optimizer.value_or(Optimizer("adam"));
  if (choice.learning_rate) optimizer.set_learning_rate(*choice.learning_rate);
  opened.loss = names_of(losses);
  const MetricList metrics = c.metrics.value_or(outputs == 1 ? MetricList("accuracy") : MetricList());
  opened.model.compile({.optimizer = optimizer,
                        .loss = std::move(losses),
                        .metrics = metrics,
                        .loss_weights = choice.loss.empty() ? c.loss_weights : LossWeights(),
                        .memory_target = memory_target});
  return opened;
}

Shape parse_shape(const std::string& text) {
  std::vector<int64_t> dims;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    const auto [stop, bad] = std::from_chars(at, end, dims.emplace_back());
    if (bad != std::errc() || dims.back() < 1 || (stop < end && (*stop != ',' || stop + 1 == end)))
      throw Error(Code::kUsage, format("\"{}\" is not the shape of a sample", text))
          .hint("write numbers, such as 224,224,3");
    at = stop == end ? end : stop + 1;
  }
  return Shape(dims);
}
std::vector<Shape> parse_shapes(const std::vector<std::string>& texts) {
  std::vector<Shape> shapes;
  for (const std::string& text : texts) shapes.push_back(parse_shape(text));
  return shapes;
}

std::vector<Shape> open_shapes(const OpenedModel& opened, const ModelData& data) {
  std::vector<Shape> shapes;
  if (!opened.model.impl()->built().open()) return shapes;
  const ElementSpec spec = data.dataset ? data.dataset->element_spec() : ElementSpec();
  for (size_t i = 0; i < opened.model.inputs().size(); ++i)
    if (data.dataset)
      shapes.emplace_back(std::span(spec[i].shape).subspan(1));
    else
      shapes.push_back(data.x[i].shape().without(0));
  return shapes;
}

std::vector<Shape> predicted_shapes(const OpenedModel& opened, const ModelData& data) {
  const nn::Network& net = opened.model.impl()->built();
  std::vector<Shape> shapes;
  for (const graph::TensorType& output :
       nn::output_types(net, train::samples_to_plan(net, nullptr, open_shapes(opened, data)).x))
    shapes.push_back(output.shape.with(0, data.samples()));
  return shapes;
}

ModelData synthetic(const OpenedModel& opened, int64_t samples, uint64_t seed, const std::vector<Shape>& shapes) {
  Random random(seed);
  ModelData data{.x = {}, .y = {}, .account = "data/synthetic"};
  const nn::Network& net = opened.model.impl()->built();
  const std::vector<Shape> inputs = train::samples_to_plan(net, nullptr, shapes).x;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool floating = is_floating(net.inputs[i].dtype());
    Tensor& t =
        data.x.emplace_back(floating ? DType::kFloat32 : DType::kInt32, inputs[i].with_front(samples), data.account);
    if (floating)
      fill_uniform(t, random);
    else
      fill_below(t, random, index_limit(opened.model));
  }
  const std::vector<graph::TensorType> outputs = nn::output_types(net, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape shape = outputs[i].shape.without(0);
    const std::string_view loss = opened.model.impl()->compiled->losses[i].type();
    if (loss == "SparseCategoricalCrossentropy") {
      Tensor& t = data.y.emplace_back(DType::kInt32, shape.without(-1).with_front(samples), data.account);
      fill_below(t, random, shape.back());
    } else {
      Tensor& t = data.y.emplace_back(DType::kFloat32, shape.with_front(samples), data.account);
      if (loss == "BinaryCrossentropy") {
        fill_below(t, random, 2);
      } else if (loss == "CategoricalCrossentropy") {
        const int64_t width = shape.back();
        for (int64_t row = 0; row < t.size() / width; ++row)
          t.values<float>()[size_t(row * width + int64_t(random.below(uint64_t(width))))] = 1;
      } else {
        fill_uniform(t, random);
      }
    }
  }
  return data;
}

namespace {
// How many of the files are x.
size_t check_files(const OpenedModel& opened, const std::vector<std::string>& files, bool labels) {
  const size_t inputs = opened.model.inputs().size(), outputs = labels ? opened.model.outputs().size() : 0;
  if (files.size() != inputs + outputs) {
    const std::string want = labels ? format("{} for x and {} for y", inputs, outputs) : format("{} for x", inputs);
    throw Error(Code::kUsage, format("--data has {} files, but this model takes {}", files.size(), want))
        .hint("name the .npy files in that order");
  }
  return inputs;
}
}  // namespace

ModelData stream_data(const OpenedModel& opened, const std::vector<std::string>& files, const StreamChoice& choice,
                      bool labels) {
  check_files(opened, files, labels);
  Dataset rows = Dataset::from_npy(files);
  ModelData data{.x = {}, .y = {}, .account = "data/files", .dataset = {}, .rows = rows.cardinality()};
  if (choice.shuffle) rows = rows.shuffle();
  data.dataset = rows.batch(choice.batch).prefetch(AUTOTUNE).with_options({.budget = parse_bytes(choice.budget)});
  return data;
}

ModelData read_data(const OpenedModel& opened, const std::vector<std::string>& files, bool labels) {
  const size_t inputs = check_files(opened, files, labels);
  ModelData data{.x = {}, .y = {}, .account = "data/files"};
  for (size_t i = 0; i < files.size(); ++i) (i < inputs ? data.x : data.y).push_back(io::map_npy(files[i]));
  return data;
}

}  // namespace millpond::cli
