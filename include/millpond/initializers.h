// Initializers: the first value of a weight, by Keras's name ("glorot_uniform") or as an object (GlorotUniform(seed)).
// Memory: none; values are written straight into the weight when a model first needs it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millpond {

class Initializer {
 public:
  enum class Kind : uint8_t { kConstant, kUniform, kNormal, kTruncatedNormal, kVarianceScaling, kOrthogonal };
  enum class Fan : uint8_t { kIn, kOut, kAverage };

  /// "zeros", "ones", "glorot_uniform", "he_normal", ... Throws Error(kUsage) naming the known ones.
  Initializer(std::string_view name);
  Initializer(const char* name) : Initializer(std::string_view(name)) {}
  Initializer(const std::string& name) : Initializer(std::string_view(name)) {}

  /// Keras's class name: "GlorotUniform".
  std::string_view type() const { return type_; }
  /// The options as Keras's get_config() gives them, as JSON; and an initializer of them. Throws Error(kUnsupported)
  /// naming a class or option that is not here, Error(kFormat) or Error(kUsage) for a value that is not allowed.
  std::string get_config() const;
  static Initializer from_config(std::string_view type, std::string_view config);

  Kind kind = Kind::kConstant;
  double a = 0, b = 0;  // constant: value; uniform: least, most; normal: mean, deviation; scaling: scale;
                        // orthogonal: gain
  Fan fan = Fan::kIn;   // scaling only
  Kind distribution = Kind::kUniform;  // scaling only: uniform, normal or truncated normal
  std::optional<uint64_t> own_seed;    // its own; otherwise drawn from set_random_seed's stream

 protected:
  Initializer(const char* type, Kind k, double x, double y, std::optional<uint64_t> s = {})
      : kind(k), a(x), b(y), own_seed(s), type_(type) {}

 private:
  const char* type_ = "Constant";  // lives as long as the program
};

struct Zeros : Initializer {
  Zeros() : Initializer("Zeros", Kind::kConstant, 0, 0) {}
};
struct Ones : Initializer {
  Ones() : Initializer("Ones", Kind::kConstant, 1, 0) {}
};
struct Constant : Initializer {
  explicit Constant(double value = 0) : Initializer("Constant", Kind::kConstant, value, 0) {}
};
struct RandomUniform : Initializer {
  explicit RandomUniform(double minval = -0.05, double maxval = 0.05, std::optional<uint64_t> seed = {})
      : Initializer("RandomUniform", Kind::kUniform, minval, maxval, seed) {}
};
struct RandomNormal : Initializer {
  explicit RandomNormal(double mean = 0, double stddev = 0.05, std::optional<uint64_t> seed = {})
      : Initializer("RandomNormal", Kind::kNormal, mean, stddev, seed) {}
};
/// Values more than two deviations from the mean are drawn again.
struct TruncatedNormal : Initializer {
  explicit TruncatedNormal(double mean = 0, double stddev = 0.05, std::optional<uint64_t> seed = {})
      : Initializer("TruncatedNormal", Kind::kTruncatedNormal, mean, stddev, seed) {}
};
/// Variance scale / fan, where fan counts the inputs or outputs of one unit.
struct VarianceScaling : Initializer {
  explicit VarianceScaling(double scale = 1, Fan mode = Fan::kIn, Kind drawn_from = Kind::kTruncatedNormal,
                           std::optional<uint64_t> seed = {})
      : VarianceScaling("VarianceScaling", scale, mode, drawn_from, seed) {}

 protected:
  VarianceScaling(const char* type, double scale, Fan mode, Kind drawn_from, std::optional<uint64_t> seed)
      : Initializer(type, Kind::kVarianceScaling, scale, 0, seed) {
    fan = mode, distribution = drawn_from;
  }
};
/// Rows, or columns where there are fewer, that stand at right angles and have the length `gain`.
struct Orthogonal : Initializer {
  explicit Orthogonal(double gain = 1, std::optional<uint64_t> seed = {})
      : Initializer("Orthogonal", Kind::kOrthogonal, gain, 0, seed) {}
};
struct GlorotUniform : VarianceScaling {
  explicit GlorotUniform(std::optional<uint64_t> seed = {})
      : VarianceScaling("GlorotUniform", 1, Fan::kAverage, Kind::kUniform, seed) {}
};
struct GlorotNormal : VarianceScaling {
  explicit GlorotNormal(std::optional<uint64_t> seed = {})
      : VarianceScaling("GlorotNormal", 1, Fan::kAverage, Kind::kTruncatedNormal, seed) {}
};
struct HeUniform : VarianceScaling {
  explicit HeUniform(std::optional<uint64_t> seed = {})
      : VarianceScaling("HeUniform", 2, Fan::kIn, Kind::kUniform, seed) {}
};
struct HeNormal : VarianceScaling {
  explicit HeNormal(std::optional<uint64_t> seed = {})
      : VarianceScaling("HeNormal", 2, Fan::kIn, Kind::kTruncatedNormal, seed) {}
};
struct LecunUniform : VarianceScaling {
  explicit LecunUniform(std::optional<uint64_t> seed = {})
      : VarianceScaling("LecunUniform", 1, Fan::kIn, Kind::kUniform, seed) {}
};
struct LecunNormal : VarianceScaling {
  explicit LecunNormal(std::optional<uint64_t> seed = {})
      : VarianceScaling("LecunNormal", 1, Fan::kIn, Kind::kTruncatedNormal, seed) {}
};

}  // namespace millpond
