#include "verdict/notes.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "verdict/note_values.h"

namespace millpond::verdict {
namespace {

using json = nlohmann::json;

constexpr size_t kMostKept = 1000;  // containers, lines, ... of all notes; the agent itself tells of a few at a time
constexpr size_t kMostWalks = 256;
constexpr int kDeepest = 32;
constexpr size_t kMostStatement = 4000;
constexpr size_t kMostParts = 16;
constexpr int kPartsDeep = 2;

/// Two numbers that lie within a text; anything else is an empty span.
Span span_of(const json& j, size_t size) {
  if (!j.is_array() || j.size() < 2 || !j[0].is_number_unsigned() || !j[1].is_number_unsigned()) return {};
  Span s{j[0].get<size_t>(), j[1].get<size_t>(), j.size() > 2 && j[2].is_boolean() && j[2].get<bool>()};
  return s.begin <= s.end && s.end <= size ? s : Span{};
}

std::optional<Statement> statement_of(const json& owner) {
  const auto it = owner.find("statement");
  if (it == owner.end() || !it->is_object()) return {};
  const json& j = *it;
  Statement s;
  s.text = text_of(j, "text");
  if (s.text.empty() || s.text.size() > kMostStatement) return {};
  s.digest = text_of(j, "digest");
  s.file = text_of(j, "file");
  s.how = text_of(j, "how");
  s.name = text_of(j, "name");
  s.line = int(std::clamp(number_of(j, "line"), 0.0, 1e9));
  s.given = int(std::clamp(number_of(j, "given"), 0.0, 100.0));
  const auto bounded = [&](const char* key, size_t most) {
    return size_t(std::clamp(number_of(j, key), 0.0, double(most)));
  };
  s.end = bounded("end", s.text.size());
  s.indent = bounded("indent", s.text.size());
  const auto span = [&](const char* key) {
    const auto at = j.find(key);
    return at == j.end() ? Span{} : span_of(*at, s.text.size());
  };
  s.target = span("target");
  s.value = span("value");
  s.value.atom = flag_of(j, "atom");
  s.alone = flag_of(j, "alone");
  if (const Span jit = span("jit"); jit.end > jit.begin) s.jit = jit;
  size_t from = s.value.begin;
  for (const json& part : list_of(j, "parts")) {
    const Span inner = span_of(part, s.text.size());
    if (inner.begin < from || inner.end > s.value.end || inner.end == inner.begin || s.parts.size() == kMostParts)
      return {};
    s.parts.push_back(inner);
    from = inner.end;
  }
  if (const auto loop = j.find("hoisted"); loop != j.end() && loop->is_object()) {
    s.before_loop = text_of(*loop, "text").substr(0, kMostStatement);
    s.name = text_of(*loop, "name");
    s.loop_line = int(std::clamp(number_of(*loop, "line"), 0.0, 1e9));
    s.loop_indent = size_t(std::clamp(number_of(*loop, "indent"), 0.0, double(s.before_loop.size())));
  }
  return s;
}

std::optional<Kept> kept_of(const json& owner, const char* key, int deep = 0) {
  const auto it = owner.find(key);
  if (it == owner.end() || !it->is_object()) return {};
  Kept k{text_of(*it, "family"), number_of(*it, "elements"), number_of(*it, "dimensions"), flag_of(*it, "graph"),
         flag_of(*it, "traceback")};
  for (const json& part : list_of(*it, "parts")) {
    if (deep + 1 >= kPartsDeep || k.parts.size() == kMostParts) break;
    if (std::optional<Kept> inner = kept_of(json{{"part", part}}, "part", deep + 1))
      k.parts.push_back(std::move(*inner));
  }
  return k;
}

/// Where things that have been told of before stand in a list.
class Known {
 public:
  /// Of a thing with these words at this place; `otherwise` for one that is new.
  size_t at(const std::string& one, const std::string& two, const Place& place, size_t otherwise) {
    return places_.try_emplace({one, two, place.file, place.line}, otherwise).first->second;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string, int>, size_t> places_;
};
struct AllKnown {
  Known containers, lines, stages;
};

Container container_of(const json& j) {
  Container c;
  c.type = text_of(j, "type");
  c.item_type = text_of(j, "item_type");
  c.holder = text_of(j, "holder");
  c.of = text_of(j, "of");
  c.held_in = text_of(j, "held_in");
  c.alike = std::clamp(maybe_number(j, "alike").value_or(1), 1.0, 1e9);
  c.items = kept_of(j, "items");
  c.statement = statement_of(j);
  for (const json& part : list_of(j, "chain"))
    if (part.is_string()) c.chain.push_back(part);
  c.length = number_of(j, "length");
  c.per_period = number_of(j, "per_period");
  c.bytes_per_period = number_of(j, "bytes_per_period");
  c.step = number_of(j, "step");
  c.bounded = maybe_number(j, "bounded");
  c.place = place_of(j);
  c.exact = flag_of(j, "exact");
  c.rising = flag_of(j, "still", true);
  c.full = flag_of(j, "full");
  c.hook = flag_of(j, "hook") ||
           contains(c.holder, " hook of ");  // the agent's own words: it was reached through such a table
  const bool given = c.place.file == "<string>" || c.place.file == "<stdin>";  // a program without a file
  c.is_user = (given || user_file(c.place.file)) && !flag_of(j, "library");
  return c;
}

void read_holders(const json& note, Notes& notes, Known& known) {
  for (Container& c : notes.containers) c.still = false;
  for (const json& j : list_of(note, "containers")) {
    if (!j.is_object()) continue;
    Container c = container_of(j);
    c.rounds = text_of(note, "kind");
    const size_t at = known.at(c.holder, c.type, c.place, notes.containers.size());
    if (at < notes.containers.size()) {
      c.looks = notes.containers[at].looks + 1;
      notes.containers[at] = std::move(c);
    } else if (at < kMostKept) {
      notes.containers.push_back(std::move(c));
    }
  }
  notes.types.clear();
  for (const json& j : list_of(note, "types"))
    if (j.is_object() && notes.types.size() < kMostKept)
      notes.types.push_back({text_of(j, "type"), number_of(j, "count"), number_of(j, "per_period")});
}

/// What a walk and the rounds after it knew of a container: it has reached its end, or is one of the items of something
/// that has a limit.
void take_end(const std::vector<Holder>& holders, Container& c) {
  const auto itself = std::ranges::find_if(holders, [&](const Holder& h) { return is_same(c, h); });
  if (itself != holders.end()) {
    if (!c.bounded && itself->bounded) c.bounded = itself->bounded;
    if (itself->ends()) c.still = c.rising = false;
    return;
  }
  for (const Holder& h : holders)
    if (!c.bounded && h.bounded && step_of(c, h) > 0) c.bounded = h.bounded;
}

void read_lines(const json& note, Notes& notes, Known& known) {
  std::vector<CountedLine> fresh;  // one line may call twice: it has two entries in a note
  Known in_note;
  for (const json& j : list_of(note, "calls")) {
    if (!j.is_object()) continue;
    CountedLine line{text_of(j, "what"), place_of(j), number_of(j, "count")};
    if (const auto loop = j.find("loop"); loop != j.end() && loop->is_object()) line.loop = place_of(*loop);
    if (const auto why = j.find("why"); why != j.end() && why->is_object())
      line.why = {number_of(*why, "new"), number_of(*why, "object"), number_of(*why, "literal"),
                  number_of(*why, "shape"), number_of(*why, "jit")};
    line.statement = statement_of(j);
    const size_t at = in_note.at(line.what, "", line.place, fresh.size());
    if (at < fresh.size())
      fresh[at].count += line.count;
    else
      fresh.push_back(std::move(line));
  }
  for (CountedLine& line : fresh) {
    const size_t at = known.at(line.what, "", line.place, notes.lines.size());
    if (at < notes.lines.size())
      notes.lines[at] = std::move(line);  // counts run on: the last is the whole
    else if (at < kMostKept)
      notes.lines.push_back(std::move(line));
  }
}

void read_data(const json& note, Notes& notes) {
  if (text_of(note, "what") != "fit" || notes.data.size() >= kMostKept) return;  // others copy no more than a batch
  FitData data;
  data.place = place_of(note);
  for (const json& j : list_of(note, "arrays"))
    if (j.is_object()) data.arrays.push_back({text_of(j, "dtype"), text_of(j, "type"), number_of(j, "bytes")});

  notes.data.push_back(std::move(data));
}

void read_stage(const json& note, Notes& notes, Known& known) {
  Stage stage{text_of(note, "op"), maybe_number(note, "buffer"), place_of(note)};
  const size_t at = known.at(stage.op, "", stage.place, notes.stages.size());
  if (at < notes.stages.size())
    ++notes.stages[at].count;
  else if (at < kMostKept)
    notes.stages.push_back(std::move(stage));
}

}  // namespace

std::string lower(std::string text) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool user_file(std::string_view file) {
  if (file.empty() || file[0] == '<') return file.starts_with("<ipython-input-");
  for (std::string_view part :
       {"site-packages", "dist-packages", "/lib/python", "/millpond/inject/", "/python/millpond/"})
    if (contains(file, part)) return false;
  return true;
}

size_t step_of(const Container& container, const Holder& holder) {
  const std::string name = holder.name();
  for (size_t i = 1; i < container.chain.size(); ++i)
    if (name == container.chain[i] || (name.starts_with(container.chain[i]) &&
                                       std::string_view(name).substr(container.chain[i].size()).starts_with(" of ")))
      return i;
  return 0;
}

bool is_same(const Container& container, const Holder& holder) {
  if (container.chain.size() < 2) return false;
  const bool is_part =
      container.chain[1].starts_with("chain ") || (container.alike > 1 && container.chain[1].starts_with("item "));
  return step_of(container, holder) == (is_part ? 2 : 1);
}

const std::vector<Holder>& Notes::holders() const {
  static const std::vector<Holder> none;
  return walk ? walk->holders : none;
}

const CountedLine* Notes::line(std::string_view what) const {
  const auto found = std::ranges::find(lines, what, &CountedLine::what);
  return found == lines.end() ? nullptr : &*found;
}

double Notes::count(std::string_view what) const {
  double sum = 0;
  for (const CountedLine& l : lines)
    if (l.what == what) sum += l.count;
  return sum;
}

const Stage* Notes::stage(std::string_view op) const {
  const auto found = std::ranges::find(stages, op, &Stage::op);
  return found == stages.end() ? nullptr : &*found;
}

std::optional<json> parse_note(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > kDeepest) return {};
  }
  json note = json::parse(text, nullptr, false);
  if (!note.is_object()) return {};
  return note;
}

Notes read_notes(const Evidence& evidence) {
  Notes notes;
  AllKnown known;
  for (const std::string& text : evidence.notes) {
    const std::optional<json> parsed = parse_note(text);
    if (!parsed) continue;
    const json& note = *parsed;
    const std::string what = text_of(note, "note");
    if (what == "scan") {  // the collector's, not the agent's
      notes.no_scan = text_of(note, "refused");
      if (notes.no_scan.empty()) notes.scan = scan_of(note);
      continue;
    }
    notes.agent = true;
    if (notes.folder.empty()) notes.folder = text_of(note, "cwd");
    if (what == "holders" || what == "probe") notes.lead = text_of(note, "kind");
    if (what == "framework") {
      notes.frameworks.insert(text_of(note, "name"));
      if (text_of(note, "name") == "keras") notes.keras_backend = text_of(note, "backend");
    } else if (what == "variant") {
      notes.variants.insert(text_of(note, "name"));
    } else if (what == "holders") {
      read_holders(note, notes, known.containers);
    } else if (what == "walk") {
      const std::string space = text_of(note, "space");
      if ((space.empty() ? "host" : space) != evidence.space) continue;
      std::optional<HeapWalk> walk = walk_of(note, notes.walk ? &*notes.walk : nullptr);
      if (walk && notes.walk && notes.earlier.size() < kMostWalks) notes.earlier.push_back(*notes.walk);
      if (walk) notes.walk = std::move(walk);
    } else if (what == "courses") {
      if (notes.walk && evidence.space == "host") take_courses(note, *notes.walk);
    } else if (what == "puts") {
      if (notes.walk) take_puts(note, *notes.walk);
    } else if (what == "lines") {
      read_lines(note, notes, known.lines);
    } else if (what == "data") {
      read_data(note, notes);
    } else if (what == "dataset") {
      read_stage(note, notes, known.stages);
    } else if (what == "advice") {
      if (notes.advice.size() < kMostKept)
        notes.advice.push_back({text_of(note, "what"), place_of(note), number_of(note, "count")});
    } else if (what == "probe") {
      const auto types = note.find("gc_types");
      if (types != note.end() && types->is_object())
        for (const auto& [type, count] : types->items())
          if (count.is_number()) notes.gc_types[type] += number_of(*types, type.c_str());
    }
  }
  for (Container& c : notes.containers) take_end(notes.holders(), c);
  std::ranges::stable_sort(notes.containers, [](const Container& a, const Container& b) {
    return std::tuple(a.still, a.bytes_per_period) > std::tuple(b.still, b.bytes_per_period);
  });
  std::ranges::stable_sort(notes.lines, std::ranges::greater{}, &CountedLine::count);
  return notes;
}

}  // namespace millpond::verdict
