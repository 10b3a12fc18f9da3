// MODEL on the command line becomes a compiled model, and --data or --synthetic its arrays.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/builtin.h"
#include "millpond/model.h"

namespace millpond::cli {

struct ModelChoice {
  std::string model;      // a built-in's name or the path of a JSON file
  std::string optimizer;  // empty: the built-in's, the file's, or adam
  std::string loss;       // "mse", or "size=mse,kind=mae" by output; empty: the built-in's, the file's
  std::optional<double> learning_rate = {};  // instead of the optimizer's own
  bool measures = true;                      // false: metrics are of no account
  std::string memory_target = {};            // "300MiB": what training should take in all; empty: none
  bool trains = true;  // false: the optimizer is of no account, and one that is not here is no hindrance
};

inline constexpr const char* kMemoryTargetHelp =
    "What training should take in all, for example 300MiB: values are made again in backward until it does";

/// What --optimizer says of itself, with all that are known.
std::string optimizer_help();
inline constexpr const char* kLossHelp =
    "Loss by Keras's name, or OUTPUT=LOSS,OUTPUT=LOSS for several outputs (default: the built-in's or the file's)";

struct OpenedModel {
  Model model;
  const Builtin* builtin;  // null: from a file
  std::string loss;        // as it was asked for, or its names
  std::string note;        // something the user should be told; empty: nothing
};

/// Makes and compiles it. Throws Error(kUsage) for a name that is neither, with what is known. Without any loss: an
/// error, or with `plan_only` the mean squared error and a note that says so.
OpenedModel open_model(const ModelChoice& choice, bool plan_only = false);

struct ModelData {
  Arrays x, y;
  std::string account;
  std::optional<Dataset> dataset = {};  // instead of x and y: read as they are wanted
  int64_t rows = 0;
  int64_t samples() const { return dataset ? rows : x[0].shape()[0]; }
};

/// "224,224,3": the shape of a sample. Throws Error(kUsage).
Shape parse_shape(const std::string& text);
std::vector<Shape> parse_shapes(const std::vector<std::string>& texts);
/// What --shape is for, in its help.
inline constexpr const char* kShapeHelp =
    "Shape of a sample, such as 224,224,3, where the model leaves it to its data (None); once for each input";

/// Uniform [0, 1) or uniform labels, all from `seed`; charged to data/synthetic. `shapes`: of one sample of each input,
/// where the model leaves that open.
ModelData synthetic(const OpenedModel& opened, int64_t samples, uint64_t seed, const std::vector<Shape>& shapes);
/// For a plan: the shapes of the data's samples where the model leaves them open, otherwise none.
std::vector<Shape> open_shapes(const OpenedModel& opened, const ModelData& data);
/// Of all that is predicted for the data: samples in front.
std::vector<Shape> predicted_shapes(const OpenedModel& opened, const ModelData& data);
/// .npy files, mapped: as many for x as the model has inputs, then as many for y as it has outputs (none when `labels`
/// is false).
ModelData read_data(const OpenedModel& opened, const std::vector<std::string>& files, bool labels = true);

/// The same files as a dataset of batches within a byte budget ("64MiB"): rows are read into the batch, none is mapped.
struct StreamChoice {
  std::string budget;
  int64_t batch = 32;
  bool shuffle = false;
};
ModelData stream_data(const OpenedModel& opened, const std::vector<std::string>& files, const StreamChoice& choice,
                      bool labels = true);

}  // namespace millpond::cli
