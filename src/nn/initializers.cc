#include "millpond/initializers.h"

#include <algorithm>

#include "base/format.h"
#include "nn/initialize.h"

namespace millpond {
namespace nn {
namespace {

using Kind = Initializer::Kind;
using Fan = Initializer::Fan;

struct InitializerClass {
  std::string_view type;
  std::vector<std::string> names;  // the first is the one for people
  Initializer (*make)();
  void (*options)(Describer& d, Initializer& i);
};

template <class Made>
Initializer made_initializer() {
  return Made();
}
void no_options(Describer&, Initializer&) {}
void seed_option(Describer& d, Initializer& i) { d.option("seed", i.own_seed); }
void seeded(Describer& d, Initializer& i) {
  seed_option(d, i);
  d.none({"input_axes", "output_axes"});
}
void mean_and_deviation(Describer& d, Initializer& i) {
  seed_option(d, i);
  d.option("mean", i.a);
  d.option("stddev", i.b, at_least(0));
}

// A new initializer is a struct in the public header and a row here.
const std::vector<InitializerClass>& all_initializers() {
  static const std::vector<InitializerClass> all{
      {"Zeros", {"zeros", "zero"}, made_initializer<Zeros>, no_options},
      {"Ones", {"ones", "one"}, made_initializer<Ones>, no_options},
      {"Constant",
       {"constant"},
       made_initializer<Constant>,
       [](Describer& d, Initializer& i) { d.option("value", i.a); }},
      {"RandomUniform",
       {"random_uniform", "uniform"},
       made_initializer<RandomUniform>,
       [](Describer& d, Initializer& i) {
         seed_option(d, i);
         d.option("minval", i.a);
         d.option("maxval", i.b);
       }},
      {"RandomNormal", {"random_normal", "normal"}, made_initializer<RandomNormal>, mean_and_deviation},
      {"TruncatedNormal", {"truncated_normal"}, made_initializer<TruncatedNormal>, mean_and_deviation},
      {"VarianceScaling",
       {"variance_scaling"},
       made_initializer<VarianceScaling>,
       [](Describer& d, Initializer& i) {
         seed_option(d, i);
         d.option("scale", i.a, above(0));
         d.choice<Fan>("mode", i.fan, {{"fan_in", Fan::kIn}, {"fan_out", Fan::kOut}, {"fan_avg", Fan::kAverage}});
         d.choice<Kind>("distribution", i.distribution,
                        {{"truncated_normal", Kind::kTruncatedNormal},
                         {"untruncated_normal", Kind::kNormal},
                         {"uniform", Kind::kUniform}});
         d.none({"input_axes", "output_axes"});
       }},
      {"Orthogonal",
       {"orthogonal"},
       made_initializer<Orthogonal>,
       [](Describer& d, Initializer& i) {
         seed_option(d, i);
         d.option("gain", i.a);
       }},
      {"GlorotUniform", {"glorot_uniform"}, made_initializer<GlorotUniform>, seeded},
      {"GlorotNormal", {"glorot_normal"}, made_initializer<GlorotNormal>, seeded},
      {"HeUniform", {"he_uniform"}, made_initializer<HeUniform>, seeded},
      {"HeNormal", {"he_normal"}, made_initializer<HeNormal>, seeded},
      {"LecunUniform", {"lecun_uniform"}, made_initializer<LecunUniform>, seeded},
      {"LecunNormal", {"lecun_normal"}, made_initializer<LecunNormal>, seeded},
  };
  return all;
}

const InitializerClass* class_named(std::string_view name) {
  for (const InitializerClass& c : all_initializers())
    if (c.type == name || std::ranges::find(c.names, name) != c.names.end()) return &c;
  return nullptr;
}

struct DescribedInitializer final : Described {
  const InitializerClass& of;
  Initializer value;
  DescribedInitializer(const InitializerClass& c, Initializer v) : of(c), value(v) {}
  void describe(Describer& d) override { of.options(d, value); }
};

bool same(const Initializer& a, const Initializer& b) {
  return a.kind == b.kind && a.a == b.a && a.b == b.b && a.own_seed == b.own_seed &&
         (a.kind != Kind::kVarianceScaling || (a.fan == b.fan && a.distribution == b.distribution));
}

// The class that an initializer was made as. Its members are public: where they were changed to what that class cannot
// say (Zeros with another constant), the general class of its kind.
const InitializerClass& class_of(const Initializer& init) {
  const InitializerClass& as_made = *class_named(init.type());
  DescribedInitializer again(as_made, as_made.make());
  read_options(again, Json(write_options(DescribedInitializer(as_made, init))), std::string(as_made.type));
  if (same(again.value, init)) return as_made;
  switch (init.kind) {
    case Kind::kConstant:
      return *class_named("Constant");
    case Kind::kUniform:
      return *class_named("RandomUniform");
    case Kind::kNormal:
      return *class_named("RandomNormal");
    case Kind::kTruncatedNormal:
      return *class_named("TruncatedNormal");
    case Kind::kOrthogonal:
      return *class_named("Orthogonal");
    case Kind::kVarianceScaling:
      break;
  }
  return *class_named("VarianceScaling");
}

Written config_of(const Initializer& init) { return write_options(DescribedInitializer(class_of(init), init)); }

Initializer from_options(std::string_view type, const Json* config, const std::string& who) {
  const InitializerClass* c = class_named(type);
  if (!c)
    throw Error(Code::kUnsupported, format("{}: initializer {} is not here yet", who, type))
        .hint(meant(type, initializer_classes()));
  DescribedInitializer made(*c, c->make());
  if (config && !config->is_null()) read_options(made, *config, format("{}: {}", who, c->type));
  return made.value;
}

}  // namespace

std::vector<std::string> initializer_classes() {
  std::vector<std::string> types;
  for (const InitializerClass& c : all_initializers()) types.emplace_back(c.type);
  return types;
}

std::unique_ptr<Described> described_initializer(const std::string& type) {
  const InitializerClass& c = *class_named(type);
  return std::make_unique<DescribedInitializer>(c, c.make());
}

Initializer initializer_from_json(const Json& json, const std::string& who) {
  if (json.is_string()) return from_options(json.get<std::string>(), nullptr, who);
  const auto config = json.find("config");
  return from_options(json["class_name"].get<std::string>(), config == json.end() ? nullptr : &*config, who);
}

Written initializer_to_json(const Initializer& init) {
  return as_object("keras.initializers", class_of(init).type, config_of(init));
}

}  // namespace nn

Initializer::Initializer(std::string_view name) {
  const nn::InitializerClass* c = nn::class_named(name);
  if (!c) {
    std::vector<std::string> known;
    for (const nn::InitializerClass& k : nn::all_initializers()) known.push_back(k.names[0]);
    throw Error(Code::kUsage, format("initializer \"{}\" is not known", name)).hint(nn::meant(name, known));
  }
  *this = c->make();
}

std::string Initializer::get_config() const { return nn::to_text(nn::config_of(*this)); }

Initializer Initializer::from_config(std::string_view type, std::string_view config) {
  const nn::Json json = nn::from_text(config, "an initializer");
  return nn::from_options(type, &json, "Initializer");
}

}  // namespace millpond
