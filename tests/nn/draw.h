// Legal options of any class, drawn from its description alone.
#pragma once
#include <random>

#include "nn/classes.h"
#include "nn/initialize.h"
#include "nn/options.h"

namespace millpond {

class Drawer final : public nn::Describer {
 public:
  explicit Drawer(std::mt19937_64& random) : random_(random) {}

  int64_t whole(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }
  bool chance(int one_in) { return whole(1, one_in) == 1; }

 private:
  void visit(const nn::Field& f) override {
    if (f.name == "name") return;                                               // a layer has its own
    if (f.name == "trainable" ? !chance(4) : !f.required && chance(4)) return;  // the default
    const nn::Json json = draw(f);
    if (!f.read(json, "a drawn option"))
      throw Error(Code::kUsage, std::string(f.name) + " does not take " + json.dump());
  }

  int64_t number(const nn::Field& f) {
    return whole(std::isinf(f.allowed.least) ? -3 : int64_t(f.allowed.least),
                 std::isinf(f.allowed.most) ? 9 : int64_t(f.allowed.most));
  }

  nn::Json draw(const nn::Field& f) {
    using Kind = nn::FieldKind;
    const auto positive = [&] { return std::max<int64_t>(1, number(f)); };
    switch (f.kind) {
      case Kind::kBoolean:
        return chance(2);
      case Kind::kText:
        return "drawn";
      case Kind::kWhole:
        return number(f);
      case Kind::kNumber: {
        const double least = std::isinf(f.allowed.least) ? -2 : f.allowed.least,
                     most = std::isinf(f.allowed.most) ? least + 3 : f.allowed.most;
        return std::uniform_real_distribution(least + 1e-6, most)(random_);
      }
      case Kind::kSeed:
        return whole(0, 1 << 30);
      case Kind::kChoice:
        return f.choices[size_t(whole(0, int64_t(f.choices.size()) - 1))];
      case Kind::kPair:
        return chance(2) ? nn::Json(number(f)) : nn::Json{number(f), number(f)};
      case Kind::kList: {
        nn::Json list = nn::Json::array();
        for (int64_t n = whole(1, 3); n > 0; --n) list.push_back(positive());
        if (chance(2)) list[0] = -1;
        return list;
      }
      case Kind::kSides:
        return chance(2) ? nn::Json(number(f)) : nn::Json{{number(f), number(f)}, {number(f), number(f)}};
      case Kind::kShape:
        return nn::Json{nullptr, chance(3) ? nn::Json(nullptr) : nn::Json(positive()), positive()};
      case Kind::kObject: {
        const std::string type = f.choices[size_t(whole(0, int64_t(f.choices.size()) - 1))];
        const auto object = nn::described_initializer(type);
        object->describe(*this);
        return nn::Json(nn::as_object("keras.initializers", type, nn::write_options(*object)));
      }
      case Kind::kFixed:
      case Kind::kWithoutEffect:
      case Kind::kOutdated:
        break;
    }
    return nn::Json(f.write());
  }

  std::mt19937_64& random_;
};

}  // namespace millpond
