#include "nn/describe.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "nn/activate.h"
#include "nn/field.h"
#include "nn/initialize.h"
#include "nn/options.h"

namespace millpond::nn {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;  // of any whole number in a configuration but a seed

bool read_whole(const Json& j, int64_t& to) {
  if (!j.is_number_integer() || j.get<double>() > double(kLargest) || j.get<double>() < -double(kLargest)) return false;
  to = j.get<int64_t>();
  return true;
}
bool read_wholes(const Json& j, std::vector<int64_t>& to) {
  if (!j.is_array()) return false;
  std::vector<int64_t> list(j.size());
  for (size_t i = 0; i < list.size(); ++i)
    if (!read_whole(j[i], list[i])) return false;
  to = std::move(list);
  return true;
}
bool read_one_or_list(const Json& j, std::vector<int64_t>& to) {
  if (j.is_array()) return read_wholes(j, to);
  to.resize(1);
  return read_whole(j, to[0]);
}
bool read_size(const Json& j, Size2D& to) {
  std::vector<int64_t> list;
  if (!read_one_or_list(j, list) || list.empty() || list.size() > 2) return false;
  to = Size2D(list.front(), list.back());
  return true;
}
bool read_number(const Json& j, double& to) {
  if (!j.is_number()) return false;
  to = j.get<double>();
  return true;
}
Written pair_of(const Size2D& s) { return Written::array({s.height, s.width}); }
template <class T>
Written or_null(const std::optional<T>& v) {
  return v ? Written(*v) : Written(nullptr);
}
// A seed may use all of 64 bits; Keras's whole numbers have a sign.
Written seed_json(const std::optional<uint64_t>& seed) { return seed ? Written(int64_t(*seed)) : Written(nullptr); }

}  // namespace

void Describer::tell(Field& f) {
  f.required = std::exchange(required_, false);
  visit(f);
}

void Describer::option(std::string_view name, bool& value) {
  Field f{.name = name, .kind = FieldKind::kBoolean};
  f.read = [&value](const Json& j, const std::string&) {
    if (!j.is_boolean()) return false;
    value = j.get<bool>();
    return true;
  };
  f.write = [&value] { return Written(value); };
  tell(f);
}

void Describer::option(std::string_view name, std::string& value) {
  Field f{.name = name, .kind = FieldKind::kText};
  f.read = [&value](const Json& j, const std::string&) {
    if (!j.is_string()) return false;
    value = j.get<std::string>();
    return true;
  };
  f.write = [&value] { return Written(value); };
  tell(f);
}

void Describer::option(std::string_view name, int& axis) {
  Field f{.name = name, .kind = FieldKind::kWhole};
  f.read = [&axis](const Json& j, const std::string&) {
    std::vector<int64_t> list;
    if (!read_one_or_list(j, list) || list.size() != 1 || std::abs(list[0]) >= kLargest) return false;
    axis = int(list[0]);
    return true;
  };
  f.write = [&axis] { return Written(axis); };
  tell(f);
}

void Describer::option(std::string_view name, int64_t& value, Allowed allowed) {
  Field f{.name = name, .kind = FieldKind::kWhole, .allowed = allowed};
  f.read = [&value](const Json& j, const std::string&) { return read_whole(j, value); };
  f.write = [&value] { return Written(value); };
  tell(f);
}

void Describer::option(std::string_view name, double& value, Allowed allowed) {
  Field f{.name = name, .kind = FieldKind::kNumber, .allowed = allowed};
  f.read = [&value](const Json& j, const std::string&) { return read_number(j, value); };
  f.write = [&value] { return Written(value); };
  tell(f);
}

void Describer::option(std::string_view name, std::optional<double>& value, Allowed allowed) {
  Field f{.name = name, .kind = FieldKind::kNumber, .allowed = allowed, .nullable = true};
  f.read = [&value](const Json& j, const std::string&) { return read_number(j, value.emplace()); };
  f.write = [&value] { return or_null(value); };
  tell(f);
}

void Describer::option(std::string_view name, std::optional<uint64_t>& seed) {
  Field f{.name = name, .kind = FieldKind::kSeed, .nullable = true};
  f.read = [&seed](const Json& j, const std::string&) {
    if (!j.is_number_integer()) return false;
    seed = uint64_t(j.get<int64_t>());
    return true;
  };
  f.write = [&seed] { return seed_json(seed); };
  tell(f);
}

void Describer::option(std::string_view name, Size2D& value, Allowed each) {
  Field f{.name = name, .kind = FieldKind::kPair, .allowed = each};
  f.read = [&value](const Json& j, const std::string&) { return read_size(j, value); };
  f.write = [&value] { return pair_of(value); };
  tell(f);
}

void Describer::option(std::string_view name, Padding& value) {
  choice(name, {"valid", "same"}, [&value] { return size_t(value.same); }, [&value](size_t i) { value.same = i == 1; });
}

void Describer::option(std::string_view name, ActivationFunction& value) {
  Field f{.name = name, .kind = FieldKind::kChoice, .choices = activation_names()};
  f.read = [&value](const Json& j, const std::string&) {
    const Json* word = &j;
    if (j.is_object() && j.contains("config")) word = &j["config"];  // a function, as some versions write it
    const auto found = word->is_string() ? find_activation(word->get<std::string>()) : std::nullopt;
    if (found) value = *found;
    return found.has_value();
  };
  f.write = [&value] { return Written(value.name()); };
  tell(f);
}

void Describer::option(std::string_view name, Initializer& value) {
  Field f{.name = name, .kind = FieldKind::kObject, .choices = initializer_classes()};
  f.read = [&value](const Json& j, const std::string& who) {
    if (!j.is_string() && !(j.is_object() && j.contains("class_name") && j["class_name"].is_string())) return false;
    value = initializer_from_json(j, who);
    return true;
  };
  f.write = [&value] { return initializer_to_json(value); };
  tell(f);
}

void Describer::option(std::string_view name, DType& value) {
  std::vector<std::string> names;
  for (const DType t : kAllDTypes) names.emplace_back(to_string(t));
  choice(
      name, std::move(names), [&value] { return size_t(std::ranges::find(kAllDTypes, value) - kAllDTypes.begin()); },
      [&value](size_t i) { value = kAllDTypes[i]; });
}

void Describer::option(std::string_view name, std::vector<int64_t>& list, Allowed each) {
  Field f{.name = name, .kind = FieldKind::kList, .allowed = each};
  f.read = [&list](const Json& j, const std::string&) { return read_one_or_list(j, list); };
  f.write = [&list] { return Written(list); };
  tell(f);
}

void Describer::option(std::string_view name, std::array<int64_t, 4>& sides, Allowed each) {
  Field f{.name = name, .kind = FieldKind::kSides, .allowed = each};
  f.read = [&sides](const Json& j, const std::string&) {
    Size2D across = 0, along = 0;
    if (j.is_array() && j.size() == 2 && j[0].is_array() && j[1].is_array()) {
      if (j[0].size() != 2 || j[1].size() != 2 || !read_size(j[0], across) || !read_size(j[1], along)) return false;
    } else {
      Size2D both = 0;
      if (!read_size(j, both)) return false;
      across = both.height, along = both.width;
    }
    sides = {across.height, across.width, along.height, along.width};
    return true;
  };
  f.write = [&sides] { return Written::array({pair_of({sides[0], sides[1]}), pair_of({sides[2], sides[3]})}); };
  tell(f);
}

void Describer::axes(std::string_view name, std::vector<int>& value, bool& is_list) {
  Field f{.name = name, .kind = FieldKind::kList};
  f.read = [&value, &is_list](const Json& j, const std::string&) {
    std::vector<int64_t> list;
    if (!read_one_or_list(j, list) || std::ranges::any_of(list, [](int64_t a) { return std::abs(a) >= kLargest; }))
      return false;
    value.assign(list.begin(), list.end());
    is_list = j.is_array();
    return true;
  };
  f.write = [&value, &is_list] { return value.size() == 1 && !is_list ? Written(value[0]) : Written(value); };
  tell(f);
}

void Describer::list_of_one(std::string_view name, std::optional<int64_t>& value, Allowed allowed) {
  Field f{.name = name, .kind = FieldKind::kWhole, .allowed = allowed, .nullable = true};
  f.read = [&value](const Json& j, const std::string&) {
    std::vector<int64_t> list;
    if (!read_one_or_list(j, list) || list.size() != 1) return false;
    value = list[0];
    return true;
  };
  f.write = [&value] { return value ? Written::array({*value}) : Written(nullptr); };
  tell(f);
}

void Describer::batch_shape(std::string_view name, Shape& sample) {
  Field f{.name = name, .kind = FieldKind::kShape, .allowed = at_least(0)};
  f.read = [&sample](const Json& j, const std::string& who) {
    if (!j.is_array() || j.empty()) return false;
    std::vector<int64_t> dims;
    for (size_t i = 1; i < j.size(); ++i) {
      if (j[i].is_null())
        dims.push_back(None);
      else if (!read_whole(j[i], dims.emplace_back()) || dims.back() < 0)
        return false;
    }
    if (dims.size() >= size_t(Shape::kMaxRank))
      throw Error(Code::kUnsupported,
                  format("{}: {} dimensions, but at most {} are known", who, j.size(), Shape::kMaxRank));
    sample = Shape(dims);
    return true;
  };
  f.write = [&sample] {
    Written list = Written::array({nullptr});
    for (const int64_t d : sample) list.push_back(d == None ? Written(nullptr) : Written(d));
    return list;
  };
  tell(f);
}

void Describer::option_like(std::string_view name, OptionalSize2D& value, std::string_view other,
                            const Size2D& of_other, Allowed each) {
  Field f{.name = name, .kind = FieldKind::kPair, .allowed = each, .like = other};
  f.read = [&value](const Json& j, const std::string&) { return read_size(j, value.emplace(1)); };
  f.write = [&value, &of_other] { return pair_of(value.value_or(of_other)); };
  tell(f);
}

void Describer::option_like(std::string_view name, std::optional<int64_t>& value, std::string_view other,
                            const int64_t& of_other, Allowed allowed) {
  Field f{.name = name, .kind = FieldKind::kWhole, .allowed = allowed, .like = other};
  f.read = [&value](const Json& j, const std::string&) { return read_whole(j, value.emplace()); };
  f.write = [&value, &of_other] { return Written(value.value_or(of_other)); };
  tell(f);
}

void Describer::choice(std::string_view name, std::vector<std::string> words, std::function<size_t()> get,
                       std::function<void(size_t)> set) {
  Field f{.name = name, .kind = FieldKind::kChoice, .choices = words};
  f.read = [words, set = std::move(set)](const Json& j, const std::string&) {
    const auto it = j.is_string() ? std::ranges::find(words, j.get_ref<const std::string&>()) : words.end();
    if (it == words.end()) return false;
    set(size_t(it - words.begin()));
    return true;
  };
  f.write = [words, get = std::move(get)] { return Written(words[get()]); };
  tell(f);
}

void Describer::fixed(std::string_view name, std::string_view json) {
  const Json only = Json::parse(json);
  Field f{.name = name, .kind = FieldKind::kFixed};
  f.read = [only](const Json& j, const std::string&) { return j == only; };
  f.write = [only] { return Written(only); };
  tell(f);
}

void Describer::none(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) fixed(name, "null");
}

void Describer::without_effect(std::string_view name, std::string_view json) {
  Field f{.name = name, .kind = FieldKind::kWithoutEffect};
  f.read = [](const Json&, const std::string&) { return true; };
  f.write = [written = Written::parse(json)] { return written; };
  tell(f);
}

void Describer::outdated(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    Field f{.name = name, .kind = FieldKind::kOutdated};
    f.read = [](const Json&, const std::string&) { return true; };
    f.write = [] { return Written(nullptr); };
    tell(f);
  }
}

void Describer::dtype_policy(std::string_view name, DTypePolicy& value) {
  static const std::vector<std::string> kPolicies{"float32", "float64",        "bfloat16",
                                                  "float16", "mixed_bfloat16", "mixed_float16"};
  // Not drawn and not listed: it is an option of every layer.
  Field f{.name = name,
          .kind = FieldKind::kFixed,
          .choices = {"one of float32, float64, bfloat16, float16, mixed_bfloat16 and mixed_float16"}};
  f.read = [&value](const Json& j, const std::string&) {
    const Json* policy = &j;
    if (j.is_object() && j.contains("config") && j["config"].is_object() && j["config"].contains("name"))
      policy = &j["config"]["name"];
    if (!policy->is_string() || std::ranges::find(kPolicies, policy->get<std::string>()) == kPolicies.end())
      return false;
    value = DTypePolicy(policy->get<std::string>());
    return true;
  };
  f.write = [&value] { return policy_to_json(value); };
  tell(f);
}

}  // namespace millpond::nn
