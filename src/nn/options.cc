#include "nn/options.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/nearest.h"

namespace millpond::nn {
namespace {

constexpr size_t kLongestName = 60;  // of a stranger's option in a message
constexpr int kDeepest = 100;        // nesting of brackets; Keras's own files need about 15

template <class AnyJson>
std::string shortened(const AnyJson& j) {
  if (j.is_number_float() && !std::isfinite(j.template get<double>())) return format("{}", j.template get<double>());
  std::string s = j.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
  return s.size() > 60 ? s.substr(0, 57) + "..." : s;
}

Error out_of_range(const std::string& who, const Field& f) {
  return Error(Code::kUsage, format("{}: {} is {}, but must be {}", who, f.name, brief(f.write()), f.range()));
}

class Reader final : public Describer {
 public:
  Reader(const Json& config, std::string who) : config_(config), who_(std::move(who)) {}

  void expect_no_more() const {
    for (const auto& [key, value] : config_.items())
      if (!value.is_null() && std::ranges::find(known_, key) == known_.end())
        throw Error(Code::kUnsupported,
                    format("{}: {} = {} is not here yet", who_, key.substr(0, kLongestName), brief(value)))
            .hint(meant(key, settable_));
  }

 private:
  void visit(const Field& f) override {
    known_.emplace_back(f.name);
    if (f.kind != FieldKind::kFixed && f.kind != FieldKind::kWithoutEffect && f.kind != FieldKind::kOutdated)
      settable_.emplace_back(f.name);
    const auto it = config_.find(f.name);
    if (it == config_.end() || it->is_null()) {
      if (f.required)
        throw Error(Code::kFormat, format("{} has no \"{}\"", who_, f.name)).hint(format("give {}", f.wanted()));
      return;
    }
    if (!f.read(*it, who_)) refuse(f, *it);
    if (!f.allows(f.write())) throw out_of_range(who_, f);
  }
  [[noreturn]] void refuse(const Field& f, const Json& given) const {
    if (f.kind == FieldKind::kFixed)
      throw Error(Code::kUnsupported, format("{}: {} = {} is not here yet", who_, f.name, brief(given)))
          .hint(format("only {} is", f.choices.empty() ? brief(f.write()) : f.choices[0]));
    Error error(f.kind == FieldKind::kChoice && given.is_string() ? Code::kUnsupported : Code::kFormat,
                format("{}: {} is {}, but must be {}", who_, f.name, brief(given), f.wanted()));
    if (f.kind == FieldKind::kChoice && given.is_string())
      if (const auto word = nearest(given.get<std::string>(), f.choices)) error.hint(format("did you mean {}?", *word));
    throw error;
  }

  const Json& config_;
  const std::string who_;
  std::vector<std::string> known_, settable_;
};

class Writer final : public Describer {
 public:
  Written config = Written::object();

 private:
  void visit(const Field& f) override {
    if (f.kind != FieldKind::kOutdated) config[std::string(f.name)] = f.write();
  }
};

class Checker final : public Describer {
 public:
  explicit Checker(const std::string& who) : who_(who) {}

 private:
  void visit(const Field& f) override {
    if (!f.allows(f.write())) throw out_of_range(who_, f);
  }
  const std::string& who_;
};

class Lister final : public Describer {
 public:
  std::vector<OptionFact> facts;

 private:
  void visit(const Field& f) override {
    if (f.kind == FieldKind::kFixed || f.kind == FieldKind::kWithoutEffect || f.kind == FieldKind::kOutdated) return;
    OptionFact fact{std::string(f.name), f.wanted(), ""};
    if (!f.like.empty())
      fact.otherwise = format("as {}", f.like);
    else if (f.kind == FieldKind::kObject && !f.required)
      fact.otherwise = f.write()["class_name"].get<std::string>();
    else if (!f.required)
      fact.otherwise = brief(f.write());
    facts.push_back(std::move(fact));
  }
};

// A description is told with the members themselves, which only a reader fills.
void describe_only(const Described& object, Describer& d) { const_cast<Described&>(object).describe(d); }

}  // namespace

std::string brief(const Json& json) { return shortened(json); }
std::string brief(const Written& json) { return shortened(json); }

std::string Field::range() const {
  if (std::isinf(allowed.least) && std::isinf(allowed.most)) return "";
  if (std::isinf(allowed.most)) return format("{} {}", allowed.least_too ? "at least" : "above", allowed.least);
  if (std::isinf(allowed.least)) return format("at most {}", allowed.most);
  return format("between {} and {}", allowed.least, allowed.most);
}

std::string Field::wanted() const {
  const std::string limit = range(), one = limit.empty() ? "" : (limit.starts_with("at ") ? " of " : " ") + limit,
                    each = limit.empty() ? "" : ", each " + limit;
  std::string text;
  switch (kind) {
    case FieldKind::kBoolean:
      text = "true or false";
      break;
    case FieldKind::kText:
      text = "a text";
      break;
    case FieldKind::kWhole:
      text = "a whole number" + one;
      break;
    case FieldKind::kNumber:
      text = "a number" + one;
      break;
    case FieldKind::kSeed:
      text = "a whole number";
      break;
    case FieldKind::kChoice:
      text = format("one of {}", fmt::join(choices, ", "));
      break;
    case FieldKind::kPair:
      text = "a whole number or two" + each;
      break;
    case FieldKind::kList:
      text = "whole numbers" + each;
      break;
    case FieldKind::kSides:
      text = "a whole number, two, or two pairs" + each;
      break;
    case FieldKind::kShape:
      text = "a batch and the whole numbers of a sample's shape, or null for one that data will say";
      break;
    case FieldKind::kObject:
      text = format("one of {}", fmt::join(choices, ", "));
      break;
    case FieldKind::kFixed:
      text = brief(write());
      break;
    case FieldKind::kWithoutEffect:
    case FieldKind::kOutdated:
      text = "anything";
      break;
  }
  return nullable ? text + ", or null" : text;
}

bool Field::allows(const Written& value) const {
  if (value.is_array()) return std::ranges::all_of(value, [&](const Written& v) { return allows(v); });
  if (!value.is_number() || kind == FieldKind::kSeed) return true;
  const double v = value.get<double>();
  return std::isfinite(v) && v <= allowed.most && (allowed.least_too ? v >= allowed.least : v > allowed.least);
}

void read_options(Described& object, const Json& config, const std::string& who) {
  if (!config.is_object())
    throw Error(Code::kFormat, format("{}: its config is {}, not an object", who, brief(config)));
  Reader reader(config, who);
  object.describe(reader);
  reader.expect_no_more();
}

Written write_options(const Described& object) {
  Writer writer;
  describe_only(object, writer);
  return std::move(writer.config);
}

void check_options(const Described& object, const std::string& who) {
  Checker checker(who);
  describe_only(object, checker);
}

std::vector<OptionFact> list_options(const Described& fresh) {
  Lister lister;
  describe_only(fresh, lister);
  return std::move(lister.facts);
}

std::string meant(std::string_view given, const std::vector<std::string>& known, bool all) {
  const auto word = nearest(given, known);
  const std::string guess = word ? format("did you mean {}?", *word) : "";
  if (word && !all) return guess;
  return format("{}{}known are {}", guess, word ? " " : "", fmt::join(known, ", "));
}

Written as_object(std::string_view module, std::string_view type, Written config) {
  return {{"module", module}, {"class_name", type}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

Written policy_to_json(const DTypePolicy& policy) {
  return as_object("keras", "DTypePolicy", {{"name", policy.name()}});
}

std::string to_text(const Written& json, int indent) {
  try {
    return json.dump(indent);
  } catch (const nlohmann::json::exception&) {
    throw Error(Code::kUsage, "a name in the model is not UTF-8, which JSON cannot hold")
        .hint("give the layer another name");
  }
}

Json from_text(std::string_view text, std::string_view what) {
  const auto malformed = [&](const std::string& why) {
    throw Error(Code::kFormat, format("this is not the JSON of {}: {}", what, why));
  };
  // Brackets outside of strings. The parser itself keeps its place on the heap, but what reads its result recurses.
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"')
      quoted = true;
    else if (c == '[' || c == '{') {
      if (++depth > kDeepest) malformed(format("its brackets nest more than {} deep", kDeepest));
    } else if (c == ']' || c == '}')
      --depth;
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) malformed("it cannot be parsed");
  if (!json.is_object()) malformed(brief(json));
  return json;
}

}  // namespace millpond::nn
