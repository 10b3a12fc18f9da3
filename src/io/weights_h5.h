// weights_h5: Keras 3's weight files (`model.weights.h5`, alone or inside a .keras archive), readable by Keras's
// load_weights, and Keras's read here. A file is a tree of HDF5 groups; here it is a flat list of paths and tensors.
//
// The layout (Keras 3.15.1, saving_lib.py; every line tried):
//   <object>/vars/<i>      Variable i of an object; for a layer its trainable variables first, then the others, each in
//                          the order they were made. The root object is the model: "vars/<i>", only for a subclassed
//                          model with variables of its own.
//   <object>/vars          Also for objects without variables, with an attribute "name" (the object's name). Keras
//                          writes it and never reads it: objects are NOT found by that name.
//   layers/<class>[_<k>]   A layer of a Sequential or functional model: its class in snake case, and _1, _2, ... from
//                          the second of a class on, in the order of model.layers (an Input layer counts in a
//                          functional model, not in a Sequential one). For [Dense, BatchNormalization, Dense]:
//                            layers/dense/vars/0 kernel, /1 bias; layers/batch_normalization/vars/0 gamma, /1 beta,
//                            /2 moving_mean, /3 moving_variance; layers/dense_1/vars/0, /1.
//                          Names by naming.to_snake_case: Conv2D conv2d, LSTM lstm, MaxPooling2D max_pooling2d,
//                          ReLU re_lu, PReLU p_re_lu, Conv1DTranspose conv1d_transpose.
//   <layer>/<attribute>    A layer inside a layer is found by the attribute that holds it: multi_head_attention/
//                          query_dense, key_dense, value_dense, output_dense (kernel 0, bias 1); lstm/cell (kernel 0,
//                          recurrent 1, bias 2); bidirectional/forward_layer/cell, backward_layer/cell. A nested model:
//                          layers/sequential/layers/dense/... In a subclassed model: <attribute>/vars/<i>, and for
//                          lists and dicts <attribute>/<class>[_<k>]/vars/<i>. Attributes are visited in the order of
//                          their names, "layers" (all of them) among them, those that begin with "_" last; an object is
//                          written once, where it is first met.
//   optimizer/vars/<i>     0 iteration (int32; int64 from Keras on TensorFlow), 1 learning_rate, then the slots,
//                          variable by variable: Adam 2 momentum, 3 velocity of the first, 4, 5 of the second, ...
//                          (amsgrad: then one velocity_hat each; SGD with momentum: one each). A file without them
//                          loads with a warning.
//   Not in a file: the state of random generators (Dropout's seed), metrics and losses.
//   Keras 2.13 wrote _layer_checkpoint_dependencies/ for layers/: the reader gives it back as layers/.
// Datasets are contiguous, little endian; scalars have no dimension; bool is HDF5's enum of FALSE and TRUE as h5py
// makes it; bfloat16 is an opaque type of two bytes with an attribute dtype = "bfloat16".
//
// Memory: the reader costs its table of entries; read() the tensor it returns, read_into() nothing (a chunk, where a
// file is chunked), so a model is loaded without a second copy of it. Writing makes no copy, and the HDF5 library keeps
// no memory afterwards (its free lists are off). The library serves writing only, under one lock: it is not for several
// threads. A hostile file is refused with Error(kFormat) that names the object and the byte: only hard links, no group
// reached twice, no data outside the file, no filters but gzip and shuffle, and the tensors of a file may not take more
// than its bytes can hold (gzip: 1032 times). Read are the formats of all HDF5 libraries, but for chunks in the indexes
// of libver="v110" and newer, which Keras does not write.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>

#include "millpond/tensor.h"

namespace millpond::io {

struct WeightEntry {
  std::string path;  // "layers/dense/vars/0"
  Tensor tensor;
};

/// The attribute "name" of a group: {"layers/dense", "hidden"} is written at layers/dense/vars. "" is the model itself.
struct ObjectName {
  std::string path, name;
};

/// Writes the file whole or not at all. Throws Error(kValue) for a path that is empty, doubled, or goes through another
/// entry.
void write_weights(const std::string& file, std::span<const WeightEntry> entries,
                   std::span<const ObjectName> names = {});

/// One thread at a time; several readers may read at once.
class WeightsReader {
 public:
  struct Info {
    DType dtype = DType::kFloat32;
    Shape shape;
  };
  /// Opens and checks the file: all entries are known afterwards, no value has been read. Throws Error(kFile) or
  /// (kFormat).
  explicit WeightsReader(const std::string& file);
  ~WeightsReader();
  WeightsReader(WeightsReader&&) noexcept;
  WeightsReader& operator=(WeightsReader&&) noexcept;

  const std::map<std::string, Info>& entries() const;
  /// The attribute "name" of each object that has one, by the object's path.
  const std::map<std::string, std::string>& names() const;

  /// Throws Error(kValue) for a path that is not there, naming the nearest one that is.
  Tensor read(const std::string& path, std::string account) const;
  /// Into memory that is there already. Throws Error(kShape) or (kDType) when the tensor differs from the file.
  void read_into(const std::string& path, Tensor& to) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// All of a file at once.
std::map<std::string, Tensor> read_weights(const std::string& file, const std::string& account);

}  // namespace millpond::io
