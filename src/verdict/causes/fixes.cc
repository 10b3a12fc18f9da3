#include "verdict/causes/fixes.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

/// New text for a part of a statement.
struct Replacement {
  Span span;
  std::string text;
};

/// A statement without what stands before and after it on its lines, as a person would quote it; `text`: its lines, or
/// what they become.
std::string quoted(const Statement& s, const std::string& text) {
  const size_t begin = std::min(std::max(text.find_first_not_of(" \t"), s.indent), text.size());
  const size_t tail = s.end > begin ? s.text.size() - s.end : 0;
  return text.substr(begin, text.size() - tail - begin);
}

Change edit_of(const Statement& s, const Place& place, std::vector<Replacement> replacements,
               const std::string& added = "") {
  std::string after = s.text;
  if (!added.empty()) {
    // On lines of its own where the statement stands so; otherwise behind it, with a semicolon.
    const std::string indent = s.text.substr(0, s.indent);
    if (s.alone) {
      after += "\n" + indent;
      for (const char c : added) {
        after += c;
        if (c == '\n') after += indent;
      }
    } else {
      after.insert(s.end, "; " + added);
    }
  }
  std::ranges::sort(replacements, std::ranges::greater{}, [](const Replacement& r) { return r.span.begin; });
  for (const Replacement& r : replacements) after.replace(r.span.begin, r.span.end - r.span.begin, r.text);
  return {
      .file = s.file.empty() ? place.file : s.file, .digest = s.digest, .edits = {{s.line, s.text, std::move(after)}}};
}

/// How many items one round adds to a container: as many may stay.
double round_of(const Container& k) { return std::max(1.0, std::ceil(k.per_period / k.alike - 1e-6)); }

std::string per_round(const Case& c) { return format("what one {} adds", to_string(c.periods.unit)); }

/// A number in place of a thing with one element, what is left of an exception without the frames it came through, a
/// tensor without its graph.
struct Smaller {
  std::string text;
  bool enough = false;  // what is kept then weighs next to nothing
  std::string what;
};
std::optional<Smaller> smaller(const Kept& kept, const std::string& source, bool atom) {
  const std::string receiver = atom ? source : "(" + source + ")";
  if (kept.family == "torch" && kept.elements == 1)
    return Smaller{
        receiver + ".item()", true,
        kept.graph ? "a number is kept, not the tensor with the graph that made it" : "a number is kept, not a tensor"};
  if (kept.family == "numpy" && kept.elements == 1)
    return Smaller{receiver + ".item()", true, "a number is kept, not an array"};
  if (kept.family == "tensorflow" && kept.elements == 1)
    return Smaller{receiver + ".numpy().item()", true, "a number is kept, not a tensor"};
  if (kept.family == "jax" && kept.elements == 1)
    return Smaller{receiver + ".item()", true, "a number is kept, not an array"};
  if (kept.family == "exception" && kept.traceback)
    return Smaller{receiver + ".with_traceback(None)", true,
                   "the error is kept, not the frames it came through with all their variables"};
  if (kept.family == "torch" && kept.graph)
    return Smaller{receiver + ".detach()", false, "the tensor is kept without the graph that made it"};
  return {};
}

/// What makes items smaller where they are added; nothing where that cannot be said.
struct Lighter {
  std::vector<Replacement> replacements;
  bool enough = false;
  std::string what;
};
Lighter lighter(const Container& k, const Statement& s) {
  static const std::vector<std::string> takes_item = {"append", "appendleft", "add", "insert", "item"};
  Lighter all;
  if (!k.items || std::ranges::find(takes_item, s.how) == takes_item.end() || s.value.end == s.value.begin) return all;
  if (const std::optional<Smaller> one = smaller(*k.items, s.of(s.value), s.value.atom))
    return {{{s.value, one->text}}, one->enough, one->what};
  // A tuple, list or dictionary written out: each part that weighs.
  if (k.items->parts.size() != s.parts.size()) return all;
  all.enough = true;
  for (size_t i = 0; i < s.parts.size(); ++i) {
    const Kept& kept = k.items->parts[i];
    if (const std::optional<Smaller> one = smaller(kept, s.of(s.parts[i]), s.parts[i].atom)) {
      all.replacements.push_back({s.parts[i], one->text});
      all.enough = all.enough && one->enough;
      all.what = one->what;
    } else if (kept.family != "number") {
      all.enough = false;
    }
  }
  if (all.replacements.empty()) all.enough = false;
  return all;
}

/// A statement that holds a container to so many items, the newest; empty: there is none that is right for it.
std::string bound(const Container& k, const Statement& s, double most) {
  const std::string target = s.of(s.target);
  if (target.empty()) return "";
  const auto is = [](const std::string& one, std::initializer_list<std::string_view> others) {
    return std::ranges::find(others, std::string_view(one)) != others.end();
  };
  const std::string n = format("{:.0f}", most);
  const bool back = is(s.how, {"append", "extend", "aug", "set"}),
             front = is(s.how, {"appendleft", "extendleft", "insert"});
  if (is(k.of, {"builtins.list", "builtins.bytearray"})) {
    if (back) return format("del {}[:-{}]", target, n);
    if (front) return format("del {}[{}:]", target, n);
  }
  if (k.of == "collections.deque" && s.alone && (back || front))
    return format("while len({0}) > {1}:\n    {0}.{2}()", target, n, front ? "pop" : "popleft");
  if (is(k.of, {"builtins.dict", "collections.defaultdict", "collections.OrderedDict"}) && s.alone &&
      is(s.how, {"item", "setdefault", "update"}))
    return format("while len({0}) > {1}:\n    del {0}[next(iter({0}))]", target, n);
  if (is(k.of, {"builtins.str", "builtins.bytes"}) && is(s.how, {"aug", "set"}))
    return format("{0} = {0}[-{1}:]", target, n);
  if (k.of == "numpy.ndarray" && k.items && k.items->dimensions == 1 && s.how == "set")
    return format("{0} = {0}[-{1}:]", target, n);
  return "";
}

bool is_queue(const Container& k) {
  return k.held_in.starts_with("asyncio.queues.") || k.held_in.starts_with("queue.") ||
         k.held_in.starts_with("_queue.") || k.of.starts_with("_queue.");
}

/// Words alone, by what the container is.
std::string advise(const Case& c, const Container& k) {
  const std::string where = k.place.line ? format(" ({})", at(k.place)) : "";
  const std::string n = format("{:.0f}", round_of(k));
  if (k.type == "lru_cache")
    return format(
        "Bound the cache{}: `functools.lru_cache(maxsize={})` forgets what was used longest ago; {} results are {}.",
        where, n, n, per_round(c));
  if (k.held_in == "_queue.SimpleQueue" || k.of == "_queue.SimpleQueue")
    return format(
        "More is put into the queue than is taken out{}. Let more be taken out, or use a queue.Queue with a maxsize, "
        "whose `put` waits until there is room.",
        where);
  if (is_queue(k))
    return format(
        "More is put into the queue than is taken out{}. Let more be taken out, or make the queue with a maxsize, so "
        "that its `put` waits until there is room.",
        where);
  if (k.held_in == "logging.Logger" || k.held_in == "logging.RootLogger")
    return format(
        "The logger gets another handler every time{}: add the handler once, where the program begins, or take it off "
        "again with `removeHandler`.",
        where);
  if (k.of == "builtins.set")
    return format(
        "Every element stays in the set{}: take out what is no longer needed (`discard`), or empty it after each round "
        "(`clear`).",
        where);
  if (k.type == "chain of tensors")
    return format(
        "Every round adds to the graph behind this tensor{}: cut it with `.detach()` where the tensor goes on into the "
        "next round.",
        where);
  if (k.type == "chain")
    return format(
        "Every object keeps the one before it{}: let the oldest go by setting its reference to None, or keep them in a "
        "`collections.deque(maxlen={})`.",
        where, n);
  if (k.of == "_io.BytesIO" || k.of == "_io.StringIO")
    return format(
        "What is written stays in the buffer{}: write it to a file, or empty the buffer after each round (`seek(0)`, "
        "then `truncate()`).",
        where);
  if (k.is_buffer())
    return format("It grows with every round{}: keep only the newest part, or write it to disk.", where);
  if (k.of == "builtins.dict" || k.of == "collections.defaultdict" || k.of == "collections.OrderedDict" ||
      k.type == "dict")
    return format(
        "Every entry stays{}: delete entries that are no longer needed, keep a number of each, or write them to disk.",
        where);
  return format(
      "Do not keep every item{}: keep a number of each, write them to disk, or keep the newest only, in a "
      "`collections.deque(maxlen={})`.",
      where, n);
}

}  // namespace

void take(Match& m, Fix fix) {
  if (fix.text.empty()) return;
  m.fix = std::move(fix.text);
  m.change = std::move(fix.change);
}

Fix keep_less(const Case& c, const Container& k) {
  if (!k.statement || k.place.file.empty()) return {advise(c, k), {}};
  const Statement& s = *k.statement;
  const std::string old = quoted(s, s.text);
  if (s.how == "decorator" && k.type == "lru_cache") {
    const double most = round_of(k);
    const std::string now = format("{}(maxsize={:.0f})", s.name, most);
    return {format("Write {} instead of {}: the cache then forgets what was used longest ago; {:.0f} results are {}.",
                   code("@" + now), code("@" + s.of(s.target)), most, per_round(c)),
            edit_of(s, k.place, {{s.target, now}})};
  }
  if (k.type == "chain of tensors" && (s.how == "aug" || s.how == "set")) {
    const std::string cut = format("{0} = {0}.detach()", s.of(s.target));
    return {format("Add {} after {}: the value goes on, the graph that made it does not.", code(cut), code(old)),
            edit_of(s, k.place, {}, cut)};
  }
  const bool buffer = k.is_buffer();
  const Lighter less = buffer ? Lighter{} : lighter(k, s);
  const double size = buffer && k.items && k.items->elements > 0 ? k.items->elements : 1;
  const double most = std::max(1.0, std::ceil(round_of(k) / size - 1e-6));
  if (less.enough) {
    Change change = edit_of(s, k.place, less.replacements);
    const std::string now = quoted(s, change.edits.front().after);
    return {format("Write {} instead of {}: {}.", code(now), code(old), less.what), std::move(change)};
  }
  const std::string hold = bound(k, s, most);
  if (hold.empty()) return {advise(c, k), {}};
  std::string text;
  Change change = edit_of(s, k.place, less.replacements, hold);
  if (!less.replacements.empty()) {
    Change alone = edit_of(s, k.place, less.replacements);
    text = format("Write {} instead of {}: {}. Then add", code(quoted(s, alone.edits.front().after)), code(old),
                  less.what);
  } else {
    text = "Add";
  }
  std::string shown = hold;
  if (const size_t newline = shown.find("\n    "); newline != shown.npos) shown.replace(newline, 5, " ");
  text += format(" {} after {}: the newest {} stay, {}; a number of each, or a file on disk, would do as well.",
                 code(shown), less.replacements.empty() ? code(old) : "it",
                 buffer && size == 1 ? format("{:.0f} bytes", most) : format("{:.0f}", most), per_round(c));
  return {std::move(text), std::move(change)};
}

Fix close_figure(const CountedLine* line) {
  if (!line || !line->statement || line->statement->how != "close" || !line->statement->alone) return {};
  const Statement& s = *line->statement;
  return {format("Add {} after line {}, when the figure is done with.", code(s.name),
                 s.line + int(std::ranges::count(s.text, '\n'))),
          edit_of(s, line->place, {}, s.name)};
}

Fix give_tensor(const CountedLine& line) {
  if (!line.statement || line.statement->how != "argument") return {};
  const Statement& s = *line.statement;
  const std::string given = format("{}.constant({})", s.name, s.of(s.value));
  return {format("Pass {} instead of the Python number {}: a tensor's value may change without a new trace.",
                 code(given), code(s.of(s.value))),
          edit_of(s, line.place, {{s.value, given}})};
}

Fix make_once(const CountedLine& line) {
  if (!line.statement || line.statement->how != "argument" || line.statement->loop_line <= 0 ||
      line.statement->loop_line >= line.statement->line)
    return {};
  const Statement& s = *line.statement;
  const std::string once = format("{} = {}", s.name, s.of(s.value));
  Change change = edit_of(s, line.place, {{s.value, s.name}});
  change.edits.insert(
      change.edits.begin(),
      {s.loop_line, s.before_loop, format("{}{}\n{}", s.before_loop.substr(0, s.loop_indent), once, s.before_loop)});
  return {format("Make the function once, before the loop: add {} before line {}, and pass {} instead of {}.",
                 code(once), s.loop_line, code(s.name), code(s.of(s.value))),
          std::move(change)};
}

Fix relax_shapes(const CountedLine& line) {
  if (!line.statement || line.statement->how != "tf.function") return {};
  const Statement& s = *line.statement;
  const std::string old = s.of(s.value);
  std::string now = s.of(s.target) + "(reduce_retracing=True)";
  if (s.given > 0 && old.ends_with(")")) now = old.substr(0, old.size() - 1) + ", reduce_retracing=True)";
  return {format("Write {} instead of {}: dimensions that change are then traced once as unknown ones. A ragged last "
                 "batch goes with drop_remainder=True.",
                 code("@" + now), code("@" + old)),
          edit_of(s, line.place, {{s.value, now}})};
}

Fix without_xla(const CountedLine& line) {
  if (!line.statement || line.statement->how != "tf.function" || !line.statement->jit) return {};
  const Statement& s = *line.statement;
  Change change = edit_of(s, line.place, {{*s.jit, "False"}});
  const std::string old = quoted(s, s.text);
  const std::string now = quoted(s, change.edits.front().after);
  return {format("Write {} instead of {}: without XLA nothing is compiled that could stay. Or make the function once, "
                 "outside the loop, and give it what changes as tensors.",
                 code(now), code(old)),
          std::move(change)};
}

Fix give_back(const Case& c, const std::optional<Place>& place) {
  constexpr double kSmallest = 16 << 10,
                   kUsual = 128 << 10;  // a map for less costs more than it gives; the default, which only grows
  if (!place) return {};
  // The size of the block that a byte lies in: beside each array there are small objects, which are many and weigh
  // nothing.
  double bytes = 0, weighed = 0;
  for (const Site& site : c.evidence.sites)
    if (const Frame* f = user_frame(site); f && same_line(*place, *f) && site.total_blocks > 0) {
      const double total = double(site.total.value);
      bytes += total;
      weighed += total * total / site.total_blocks;
    }
  const double block = bytes > 0 ? weighed / bytes : 0;
  if (block < kSmallest) return {};
  const std::string threshold = format("{:.0f}", std::min(kUsual, std::exp2(std::floor(std::log2(block)))));
  return set_variable(format("Not a leak. Blocks of about {} are freed and stay with the allocator: with "
                             "MALLOC_MMAP_THRESHOLD_={} in the environment each goes back to the system when it "
                             "is freed, which takes some time. One large array instead of many blocks does the same.",
                             amount(block), threshold),
                      "MALLOC_MMAP_THRESHOLD_", threshold);
}

Fix set_variable(std::string text, std::string variable, std::string value) {
  return {std::move(text),
          Change{.file = {}, .digest = {}, .edits = {}, .variable = std::move(variable), .value = std::move(value)}};
}

}  // namespace millpond::verdict
