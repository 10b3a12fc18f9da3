// describe: a class says once what its options are. Reading and writing of Keras's JSON, refusals, and the tables of
// docs/layers.md follow from it. A layer writes
//
//   struct DenseImpl final : LayerImpl {
//     int64_t units = 0;
//     DenseOptions o;
//     void options(Describer& d) override {
//       d.required("units", units, at_least(1));
//       d.option("activation", o.activation);
//       d.option("use_bias", o.use_bias);
//       d.none({"kernel_regularizer", "bias_regularizer"});
//     }
//
// The default of an option is what the member holds in a new object, so that it stands in the public struct of options
// alone; what is allowed stands here alone, and a constructor checks itself by it. Names are Keras's.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millpond/activations.h"
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"

namespace millpond::nn {

struct Field;

/// The numbers that an option may have; of several numbers, each.
struct Allowed {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool least_too = true;  // the least itself is allowed
};
constexpr Allowed at_least(double least) { return {.least = least}; }
constexpr Allowed above(double least) { return {.least = least, .least_too = false}; }
constexpr Allowed between(double least, double most) { return {.least = least, .most = most}; }

/// Is told every option of an object, one after the other, with the member that holds it. Who reads fills the member,
/// who writes looks at it.
class Describer {
 public:
  virtual ~Describer() = default;

  void option(std::string_view name, bool& value);
  void option(std::string_view name, std::string& value);
  void option(std::string_view name, int& axis);  // also as a list of one, as older versions write an axis
  void option(std::string_view name, int64_t& value, Allowed allowed = {});
  void option(std::string_view name, double& value, Allowed allowed = {});
  void option(std::string_view name, std::optional<double>& value, Allowed allowed = {});
  void option(std::string_view name, std::optional<uint64_t>& seed);
  void option(std::string_view name, Size2D& value, Allowed each = {});
  void option(std::string_view name, Padding& value);
  void option(std::string_view name, ActivationFunction& value);
  void option(std::string_view name, Initializer& value);
  void option(std::string_view name, DType& value);
  void option(std::string_view name, std::vector<int64_t>& list, Allowed each = {});
  /// Rows of padding above and below, columns left and right: one number, two, or two pairs.
  void option(std::string_view name, std::array<int64_t, 4>& sides, Allowed each = {});
  /// One axis or several. Keras writes one as it was given, alone or in a list.
  void axes(std::string_view name, std::vector<int>& value, bool& is_list);
  /// null, or a list of one number.
  void list_of_one(std::string_view name, std::optional<int64_t>& value, Allowed allowed = {});
  /// The shape of a sample, in which None is null, behind a batch that Keras writes as null.
  void batch_shape(std::string_view name, Shape& sample);
  /// An option that takes the value of another one when it is not given, and is written with that value.
  void option_like(std::string_view name, OptionalSize2D& value, std::string_view other, const Size2D& of_other,
                   Allowed each = {});
  void option_like(std::string_view name, std::optional<int64_t>& value, std::string_view other,
                   const int64_t& of_other, Allowed allowed = {});
  /// One of these words.
  template <class Enum>
  void choice(std::string_view name, Enum& value, std::vector<std::pair<std::string_view, Enum>> words) {
    std::vector<std::string> names;
    for (const auto& w : words) names.emplace_back(w.first);
    choice(
        name, std::move(names),
        [&value, words] {
          size_t i = 0;
          while (i + 1 < words.size() && words[i].second != value) ++i;
          return i;
        },
        [&value, words](size_t i) { value = words[i].second; });
  }

  /// An option that has no default.
  template <class T, class... Rest>
  void required(std::string_view name, T& value, Rest... rest) {
    required_ = true;
    option(name, value, rest...);
  }

  /// Options of Keras that may have this value only, given as JSON: what else they could mean is not here.
  void fixed(std::string_view name, std::string_view json);
  /// The same, all with null.
  void none(std::initializer_list<std::string_view> names);
  /// An option of Keras that changes nothing here. It is written as this JSON, and may be read as anything.
  void without_effect(std::string_view name, std::string_view json);
  /// What older versions of Keras write, and nobody needs.
  void outdated(std::initializer_list<std::string_view> names);
  /// By Keras's names of policies.
  void dtype_policy(std::string_view name, DTypePolicy& policy);

 protected:
  virtual void visit(const Field& field) = 0;

 private:
  void choice(std::string_view name, std::vector<std::string> words, std::function<size_t()> get,
              std::function<void(size_t)> set);
  void tell(Field& field);
  bool required_ = false;
};

/// What has options: a layer, a loss, an initializer.
struct Described {
  virtual ~Described() = default;
  /// Tells all of them, in Keras's order.
  virtual void describe(Describer&) {}
  /// Called once when the options are set: refuses what depends on several of them, draws what is drawn.
  virtual void settle() {}
};

}  // namespace millpond::nn
