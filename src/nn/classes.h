// classes: all layers by Keras's class names. The line of a file in include/millpond/layers.h puts its layers here: the
// build makes nn/layer_files.inc of it, and src/nn/<file>.cc declares its classes:
//
//   void declare_dense(LayerClasses& all) { all.add<DenseImpl>("Dense"); }
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn/layer.h"

namespace millpond::nn {

struct LayerClass {
  std::string_view file;                             // include/millpond/layers/<file>.h
  std::function<std::shared_ptr<LayerImpl>()> make;  // with the defaults of all options, before settle()
};

class LayerClasses {
 public:
  /// An Impl made of these arguments, its other members as they are in a new one.
  template <class Impl, class... Arguments>
  void add(const std::string& type, Arguments... arguments) {
    all_[type] = {file_, [=] {
                    auto impl = std::make_shared<Impl>(arguments...);
                    impl->type = type;
                    return impl;
                  }};
  }
  void begin(std::string_view file) { file_ = file; }
  const std::map<std::string, LayerClass, std::less<>>& all() const { return all_; }

 private:
  std::string_view file_;
  std::map<std::string, LayerClass, std::less<>> all_;
};

#define MP_LAYER_FILE(file) void declare_##file(LayerClasses& all);
#include "nn/layer_files.inc"
#undef MP_LAYER_FILE

const std::map<std::string, LayerClass, std::less<>>& layer_classes();
/// In the order of the alphabet, without InputLayer.
std::vector<std::string> layer_types();

}  // namespace millpond::nn
