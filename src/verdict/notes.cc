#include "verdict/notes.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace millpond::verdict {
namespace {

using json = nlohmann::json;

std::string text_of(const json& j, const char* key) {
  const auto it = j.find(key);
  return it != j.end() && it->is_string() ? it->get<std::string>() : "";
}

double number_of(const json& j, const char* key) {
  const auto it = j.find(key);
  return it != j.end() && it->is_number() ? it->get<double>() : 0;
}

std::optional<double> maybe_number(const json& j, const char* key) {
  const auto it = j.find(key);
  if (it == j.end() || !it->is_number()) return {};
  return it->get<double>();
}

const json& list_of(const json& j, const char* key) {
  static const json none = json::array();
  const auto it = j.find(key);
  return it != j.end() && it->is_array() ? *it : none;
}

Place place_of(const json& j) {
  return {text_of(j, "file"), text_of(j, "function"), text_of(j, "text"), int(number_of(j, "line"))};
}

bool alike(const CountedLine& a, const CountedLine& b) {
  return a.what == b.what && a.place.file == b.place.file && a.place.line == b.place.line;
}

Container container_of(const json& j) {
  Container c;
  c.type = text_of(j, "type");
  c.item_type = text_of(j, "item_type");
  c.holder = text_of(j, "holder");
  c.found_by = text_of(j, "found_by");
  for (const json& part : list_of(j, "chain"))
    if (part.is_string()) c.chain.push_back(part);
  c.length = number_of(j, "length");
  c.per_period = number_of(j, "per_period");
  c.bytes_per_period = number_of(j, "bytes_per_period");
  c.bounded = maybe_number(j, "bounded");
  c.place = place_of(j);
  const auto flag = [&](const char* key, bool otherwise) {
    const auto it = j.find(key);
    return it != j.end() && it->is_boolean() ? it->get<bool>() : otherwise;
  };
  c.exact = flag("exact", false);
  c.rising = flag("still", true);
  c.full = flag("full", false);
  c.is_user = user_file(c.place.file) && !flag("library", false);
  return c;
}

void read_holders(const json& note, Notes& notes) {
  ++notes.looks;
  for (Container& c : notes.containers) c.still = false;
  for (const json& j : list_of(note, "containers")) {
    if (!j.is_object()) continue;
    Container c = container_of(j);
    c.rounds = text_of(note, "kind");
    const auto same = std::ranges::find_if(notes.containers, [&](const Container& o) {
      return o.holder == c.holder && o.type == c.type && o.place.file == c.place.file && o.place.line == c.place.line;
    });
    if (same == notes.containers.end()) {
      notes.containers.push_back(std::move(c));
    } else {
      c.looks = same->looks + 1;
      *same = std::move(c);
    }
  }
  notes.types.clear();
  for (const json& j : list_of(note, "types"))
    if (j.is_object())
      notes.types.push_back(
          {text_of(j, "type"), number_of(j, "count"), number_of(j, "per_period"), number_of(j, "bytes")});
}

void read_lines(const json& note, Notes& notes) {
  std::vector<CountedLine> fresh;  // one line may call twice: it has two entries in a note
  for (const json& j : list_of(note, "calls")) {
    if (!j.is_object()) continue;
    CountedLine line{text_of(j, "what"), place_of(j), number_of(j, "count")};
    if (const auto loop = j.find("loop"); loop != j.end() && loop->is_object()) line.loop = place_of(*loop);
    if (const auto why = j.find("why"); why != j.end() && why->is_object())
      line.why = {number_of(*why, "new"),   number_of(*why, "object"), number_of(*why, "literal"),
                  number_of(*why, "shape"), number_of(*why, "jit"),    text_of(*why, "argument")};
    const auto same = std::ranges::find_if(fresh, [&](const CountedLine& o) { return alike(o, line); });
    if (same == fresh.end())
      fresh.push_back(std::move(line));
    else
      same->count += line.count;
  }
  for (CountedLine& line : fresh) {
    const auto same = std::ranges::find_if(notes.lines, [&](const CountedLine& o) { return alike(o, line); });
    if (same == notes.lines.end())
      notes.lines.push_back(std::move(line));
    else
      *same = std::move(line);  // counts run on: the last is the whole
  }
}

void read_data(const json& note, Notes& notes) {
  if (text_of(note, "what") != "fit") return;  // others copy no more than a batch
  FitData data;
  data.place = place_of(note);
  for (const json& j : list_of(note, "arrays")) {
    if (!j.is_object()) continue;
    const auto shape = j.find("shape");
    data.arrays.push_back(
        {text_of(j, "dtype"), text_of(j, "type"), shape == j.end() ? "" : shape->dump(), number_of(j, "bytes")});
  }
  notes.data.push_back(std::move(data));
}

void read_stage(const json& note, Notes& notes) {
  Stage stage{text_of(note, "op"), maybe_number(note, "buffer"), place_of(note)};
  const auto same = std::ranges::find_if(notes.stages, [&](const Stage& o) {
    return o.op == stage.op && o.place.file == stage.place.file && o.place.line == stage.place.line;
  });
  if (same == notes.stages.end())
    notes.stages.push_back(std::move(stage));
  else
    ++same->count;
}

}  // namespace

std::string lower(std::string text) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool user_file(std::string_view file) {
  if (file.empty() || file[0] == '<') return false;
  for (std::string_view part : {"site-packages", "dist-packages", "/lib/python", "/millpond/agent", "python/agent/"})
    if (contains(file, part)) return false;
  return true;
}

std::string Container::words() const {
  std::string all = type + " " + item_type + " " + holder;
  for (const std::string& c : chain) all += " " + c;
  return lower(std::move(all));
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

Notes read_notes(const Evidence& evidence) {
  Notes notes;
  for (const std::string& text : evidence.notes) {
    const json note = json::parse(text, nullptr, false);
    if (!note.is_object()) continue;
    const std::string what = text_of(note, "note");
    notes.agent = true;
    if (notes.folder.empty()) notes.folder = text_of(note, "cwd");
    if (what == "holders" || what == "probe") notes.lead = text_of(note, "kind");
    if (what == "framework") {
      notes.frameworks.insert(text_of(note, "name"));
      if (text_of(note, "name") == "keras") notes.keras_backend = text_of(note, "backend");
    } else if (what == "variant") {
      notes.variants.insert(text_of(note, "name"));
    } else if (what == "holders") {
      read_holders(note, notes);
    } else if (what == "lines") {
      read_lines(note, notes);
    } else if (what == "data") {
      read_data(note, notes);
    } else if (what == "dataset") {
      read_stage(note, notes);
    } else if (what == "advice") {
      notes.advice.push_back({text_of(note, "what"), place_of(note), number_of(note, "count")});
    } else if (what == "probe") {
      const auto types = note.find("gc_types");
      if (types != note.end() && types->is_object())
        for (const auto& [type, count] : types->items())
          if (count.is_number()) notes.gc_types[type] += count.get<double>();
    } else if (what == "end") {
      const auto exception = note.find("exception");
      if (exception != note.end() && !exception->is_null())
        notes.exception = exception->is_string() ? exception->get<std::string>() : exception->dump();
    }
  }
  std::ranges::stable_sort(notes.containers, [](const Container& a, const Container& b) {
    return std::tuple(a.still, a.bytes_per_period) > std::tuple(b.still, b.bytes_per_period);
  });
  std::ranges::stable_sort(notes.lines, std::ranges::greater{}, &CountedLine::count);
  return notes;
}

}  // namespace millpond::verdict
