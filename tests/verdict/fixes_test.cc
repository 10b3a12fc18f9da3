// Fixes are decided by types and measurements, and a fix that is code can be carried out. tests/fixes tries them on
// running programs.
#include <doctest/doctest.h>

#include "millpond/error.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"
#include "verdict/change.h"
#include "verdict/run.h"

using namespace millpond::verdict;
using namespace millpond;
using nlohmann::json;

namespace {

Run leaking() {
  Run run;
  run.grow(600, 10, 24).live_from(300, 10);
  for (int at = 4; at <= 24; at *= 2) run.probe(at, 600 + 10 * (at - 1), 600 + 10 * (at - 1), 596 + 10 * (at - 1));
  return run;
}

/// "    self.saved.append(out)": the statement of a file that has nothing else, taken apart as the agent does it.
json statement(const std::string& text, const std::string& how, const std::string& target, const std::string& value,
               bool atom = true) {
  const size_t indent = text.find_first_not_of(' '), at = text.find(target, indent),
               given = text.find(value, at + target.size());
  return {{"line", 1},
          {"text", text},
          {"digest", digest(text + "\n")},
          {"how", how},
          {"target", {at, at + target.size()}},
          {"value", {given, given + value.size()}},
          {"atom", atom},
          {"alone", true},
          {"parts", json::array()},
          {"end", text.size()},
          {"indent", indent}};
}

Finding found(const json& container, const std::string& framework = "numpy") {
  json row = {{"type", "list"},
              {"of", "builtins.list"},
              {"length", 60},
              {"per_period", 3},
              {"item_type", "thing"},
              {"bytes_per_period", 10e6},
              {"exact", true},
              {"holder", "Net.saved"},
              {"chain", {"list of 60"}},
              {"file", "train.py"},
              {"line", 1},
              {"function", "Net.step"},
              {"text", "x"},
              {"bounded", nullptr}};
  row.update(container);
  Run run = leaking().framework(framework);
  if (framework == "torch")
    run.counter("torch.with_grad_fn", 10, container.value("/items/graph"_json_pointer, false) ? 9 : 0);
  run.note(json{{"note", "holders"}, {"containers", {row}}, {"types", json::array()}}.dump());
  const Verdict v = run.judged();
  REQUIRE_FALSE(v.findings.empty());
  return v.findings.front();
}

/// What the fix makes of the file; empty: it is words only.
std::string fixed(const Finding& f, const std::string& text) {
  return f.fix_change ? carried_out(*f.fix_change, text + "\n") : "";
}

std::string fixed(const json& container, const std::string& framework = "numpy") {
  return fixed(found(container, framework), container["statement"]["text"].get<std::string>());
}

json kept(const std::string& family, double elements, bool graph = false) {
  return {{"family", family}, {"elements", elements}, {"graph", graph}};
}

const json kAppend = statement("    self.saved.append(out)", "append", "self.saved", "out");

}  // namespace

TEST_CASE("a tensor of one element is kept as a number, a larger one is not asked for one: the newest stay") {
  CHECK(fixed({{"items", kept("torch", 1, true)}, {"statement", kAppend}}, "torch") ==
        "    self.saved.append(out.item())\n");
  CHECK(fixed({{"items", kept("torch", 1)}, {"statement", kAppend}}, "torch") == "    self.saved.append(out.item())\n");
  CHECK(fixed({{"items", kept("torch", 500000)}, {"statement", kAppend}}, "torch") ==
        "    self.saved.append(out)\n    del self.saved[:-3]\n");
  CHECK(fixed({{"items", kept("torch", 500000, true)}, {"statement", kAppend}}, "torch") ==
        "    self.saved.append(out.detach())\n    del self.saved[:-3]\n");
  CHECK(fixed({{"items", kept("tensorflow", 1)}, {"statement", kAppend}}) ==
        "    self.saved.append(out.numpy().item())\n");
  CHECK(fixed({{"items", kept("tensorflow", 64)}, {"statement", kAppend}}) ==
        "    self.saved.append(out)\n    del self.saved[:-3]\n");
  CHECK(fixed({{"items", kept("jax", 1)}, {"statement", kAppend}}) == "    self.saved.append(out.item())\n");
  const json sum = statement("history.append(a + b)", "append", "history", "a + b", false);
  CHECK(fixed({{"items", kept("torch", 1)}, {"statement", sum}}, "torch") == "history.append((a + b).item())\n");
}

TEST_CASE("a bytearray is no array: nothing is asked of it that it has not") {
  const Finding f = found({{"item_type", "bytearray"}, {"items", {{"family", "object"}}}, {"statement", kAppend}});
  CHECK(fixed(f, "    self.saved.append(out)") == "    self.saved.append(out)\n    del self.saved[:-3]\n");
  CHECK(f.fix.find("mean") == std::string::npos);
  CHECK(f.fix ==
        "Add `del self.saved[:-3]` after `self.saved.append(out)`: the newest 3 stay, what one epoch adds; a number of "
        "each, or a file on disk, would do as well.");
}

TEST_CASE("of a tuple that is kept the parts that weigh become numbers") {
  json pair = statement("log.append((step, loss))", "append", "log", "(step, loss)");
  pair["parts"] = {{12, 16, true}, {18, 22, true}};
  const json items = {{"family", "object"}, {"parts", {{{"family", "number"}}, kept("torch", 1, true)}}};
  CHECK(fixed({{"items", items}, {"statement", pair}}, "torch") == "log.append((step, loss.item()))\n");
  json large = items;
  large["parts"][1]["elements"] = 4096;
  CHECK(fixed({{"items", large}, {"statement", pair}}, "torch") == "log.append((step, loss.detach()))\ndel log[:-3]\n");
}

TEST_CASE("each kind of container is bounded in its own way, and what cannot be is told in words") {
  const auto of = [](const char* type, const char* name, json row) {
    return row["of"] = type, row["type"] = name, row["items"] = {{"family", "object"}}, row;
  };
  const json entry = statement("known[key] = value", "item", "known", "value");
  CHECK(fixed(of("builtins.dict", "dict", {{"statement", entry}})) ==
        "known[key] = value\nwhile len(known) > 3:\n    del known[next(iter(known))]\n");
  const json left = statement("recent.appendleft(x)", "appendleft", "recent", "x");
  CHECK(fixed(of("collections.deque", "deque", {{"statement", left}})) ==
        "recent.appendleft(x)\nwhile len(recent) > 3:\n    recent.pop()\n");
  const json front = statement("recent.insert(0, x)", "insert", "recent", "x");
  CHECK(fixed(of("builtins.list", "list", {{"statement", front}})) == "recent.insert(0, x)\ndel recent[3:]\n");
  const Finding set = found(of("builtins.set", "set", {{"statement", statement("seen.add(x)", "add", "seen", "x")}}));
  CHECK_FALSE(set.fix_change);
  CHECK(set.fix.find("discard") != std::string::npos);
  CHECK(set.fix.find("deque") == std::string::npos);
  // A class of the user's that is called list may do anything when it is asked to delete.
  CHECK_FALSE(found(of("shop.list", "list", {{"statement", kAppend}})).fix_change);
}

TEST_CASE("a statement that shares its line is changed within it, and what follows stays") {
  json shared =
      statement("    def step(self, x): self.saved.append(x); return 1  # `all`", "append", "self.saved", "x");
  shared["alone"] = false, shared["end"] = 43, shared["indent"] = 23, shared["value"] = {41, 42};
  const Finding f = found({{"items", {{"family", "object"}}}, {"statement", shared}});
  CHECK(fixed(f, shared["text"]) ==
        "    def step(self, x): self.saved.append(x); del self.saved[:-3]; return 1  # `all`\n");
  CHECK(f.fix.find("Take out") == std::string::npos);
}

TEST_CASE("an exception is kept without the frames it came through") {
  json row = {{"item_type", "ValueError"},
              {"items", {{"family", "exception"}, {"traceback", true}}},
              {"statement", statement("bad.append(error)", "append", "bad", "error")}};
  CHECK(fixed(row) == "bad.append(error.with_traceback(None))\n");
}

TEST_CASE("a cache of functools is bounded by its maxsize, with the name that the file has for it") {
  json decorator = statement("@functools.cache", "decorator", "functools.cache", "");
  decorator["name"] = "functools.lru_cache";
  const Finding f = found({{"type", "lru_cache"},
                           {"of", "functools._lru_cache_wrapper"},
                           {"item_type", nullptr},
                           {"statement", decorator}});
  CHECK(fixed(f, "@functools.cache") == "@functools.lru_cache(maxsize=3)\n");
  CHECK(f.fix.find("deque") == std::string::npos);
  const Finding words = found({{"type", "lru_cache"}, {"of", "functools._lru_cache_wrapper"}, {"item_type", nullptr}});
  CHECK(words.fix.find("`functools.lru_cache(maxsize=3)`") != std::string::npos);
}

TEST_CASE("the queues of asyncio and of threads have a maxsize, not a maxlen; a logger has handlers") {
  for (const char* queue : {"asyncio.queues.Queue", "queue.Queue"}) {
    const Finding f = found({{"type", "deque"}, {"of", "collections.deque"}, {"held_in", queue}});
    CHECK(f.fix.find("maxsize") != std::string::npos);
    CHECK(f.fix.find("maxlen") == std::string::npos);
    CHECK_FALSE(f.fix_change);
  }
  CHECK(found({{"held_in", "logging.Logger"}}).fix.find("removeHandler") != std::string::npos);
}

TEST_CASE("the graph of a running total is cut where it goes on") {
  json sum = statement("total += loss", "aug", "total", "loss");
  const json row = {{"type", "chain of tensors"},
                    {"item_type", "Tensor with grad_fn"},
                    {"of", "torch.Tensor"},
                    {"chain", {"grad_fn"}},
                    {"statement", sum}};
  CHECK(fixed(row, "torch") == "total += loss\ntotal = total.detach()\n");
}

namespace {

/// A line that was counted often, with the statement that a fix would change.
Finding counted(Run run, const std::string& what, const json& why, const json& statement) {
  const json line = {{"what", what}, {"file", "train.py"}, {"line", 3},  {"function", "main"},
                     {"text", "x"},  {"count", 288},       {"why", why}, {"statement", statement}};
  run.note(json{{"note", "lines"}, {"calls", {line}}}.dump());
  const Verdict v = run.judged();
  REQUIRE_FALSE(v.findings.empty());
  return v.findings.front();
}

Run tracing() { return leaking().framework("tensorflow").counter("tf.traces", 12, 12); }

json reason(const char* why, int jit = 0) {
  json all = {{"new", 0}, {"object", 0}, {"literal", 0}, {"shape", 0}, {"jit", jit}, {"argument", "step"}};
  all[why] = 280;
  return all;
}

}  // namespace

TEST_CASE("a number that is given to a tf.function becomes a tensor, by the name that TensorFlow has in the file") {
  json argument = statement("loss = train(x, step + 1)", "argument", "train", "step + 1", false);
  argument["name"] = "tf2";
  const Finding f = counted(tracing(), "trace", reason("literal"), argument);
  CHECK(f.cause == "C1");
  CHECK(fixed(f, argument["text"]) == "loss = train(x, tf2.constant(step + 1))\n");
  const Finding words = counted(tracing(), "trace", reason("literal"), nullptr);
  CHECK(words.cause == "C1");
  CHECK_FALSE(words.fix_change);
}

TEST_CASE("a lambda that is given to a tf.function is made once, before the loop") {
  const std::string file = "    for i in range(9):\n        y = step(x, lambda p: p * 2)\n";
  json argument = statement("        y = step(x, lambda p: p * 2)", "argument", "step", "lambda p: p * 2", false);
  argument["line"] = 2, argument["digest"] = digest(file);
  argument["hoisted"] = {{"line", 1}, {"text", "    for i in range(9):"}, {"indent", 4}, {"name", "given"}};
  const Finding f = counted(tracing(), "trace", reason("object"), argument);
  CHECK(f.cause == "C2");
  REQUIRE(f.fix_change);
  CHECK(carried_out(*f.fix_change, file) ==
        "    given = lambda p: p * 2\n    for i in range(9):\n        y = step(x, given)\n");
}

TEST_CASE(
    "a tf.function that is traced for every shape is told not to tell them apart; one that XLA compiles anew is not "
    "compiled") {
  json decorator = statement("@tf.function", "tf.function", "tf.function", "");
  decorator["value"] = {1, 12}, decorator["file"] = "layers.py", decorator["given"] = 0;
  const Finding f = counted(tracing(), "trace", reason("shape"), decorator);
  CHECK(f.cause == "C3");
  CHECK(fixed(f, "@tf.function") == "@tf.function(reduce_retracing=True)\n");
  CHECK(f.fix_change->file == "layers.py");
  json options = statement("@tf.function(jit_compile=True)", "tf.function", "tf.function", "");
  options["value"] = {1, 30}, options["jit"] = {25, 29}, options["given"] = 1;
  CHECK(fixed(counted(tracing(), "trace", reason("shape"), options), options["text"]) ==
        "@tf.function(jit_compile=True, reduce_retracing=True)\n");
  const Finding xla = counted(tracing(), "trace", reason("new", 288), options);
  CHECK(xla.cause == "C6");
  CHECK(fixed(xla, options["text"]) == "@tf.function(jit_compile=False)\n");
}

TEST_CASE("a figure is closed at the end of its block") {
  json last = statement("    fig.savefig(path)", "close", "fig", "path");
  last["name"] = "plt.close(fig)";
  const Finding f = counted(leaking().counter("pyplot.figures", 1, 1), "figure", nullptr, last);
  CHECK(f.cause == "C16");
  CHECK(fixed(f, last["text"]) == "    fig.savefig(path)\n    plt.close(fig)\n");
}

TEST_CASE("what an agent cannot have written is no statement: its places lie outside, or come in another order") {
  for (const json& spans : {json{5, 900}, json{9, 4}, json{-3, 4}, json{"a", 4}, json::array(), json(7)}) {
    json odd = kAppend;
    odd["value"] = spans, odd["target"] = spans;
    const Finding f = found({{"items", kept("torch", 1)}, {"statement", odd}}, "torch");
    CAPTURE(spans.dump());
    CHECK_FALSE(f.fix.empty());
    if (f.fix_change) CHECK(f.fix_change->edits.size() == 1);
  }
  json crossed = kAppend;
  crossed["parts"] = {{20, 22, true}, {18, 21, true}};
  CHECK_FALSE(found({{"items", {{"family", "object"}}}, {"statement", crossed}}).fix_change);
}

TEST_CASE("a backtick in the source does not end the code it stands in") {
  CHECK(code("x") == "`x`");
  CHECK(code("f(\"`a`\")") == "``f(\"`a`\")``");
  CHECK(code("`a`") == "`` `a` ``");
  CHECK(code("first(\n    second)") == "`first( second)`");
}

TEST_CASE("a program without a file is named by how it was given; a holder without a line has nothing to blame") {
  CHECK(at(Place{"<string>", "<module>", "", 5}) == "the program given with -c, line 5");
  CHECK(at(Place{"<stdin>", "<module>", "", 7}) == "the program read from standard input, line 7");
  const Finding f = found({{"file", nullptr}, {"line", nullptr}, {"function", nullptr}, {"text", nullptr}});
  CHECK_FALSE(f.blame);
}

TEST_CASE("a change is made only in the file that it was made for") {
  const std::string text = "a = []\nfor i in range(9):\n    a.append(i)\n    print(i)\n";
  const Change change{.file = "t.py",
                      .digest = digest(text),
                      .edits = {{1, "a = []", "a = {}"}, {3, "    a.append(i)", "    a.append(i)\n    del a[:-3]"}}};
  CHECK(carried_out(change, text) == "a = {}\nfor i in range(9):\n    a.append(i)\n    del a[:-3]\n    print(i)\n");
  CHECK(unified_diff(change, text, "t.py") ==
        "--- t.py\n+++ t.py\n@@ -1,4 +1,5 @@\n-a = []\n+a = {}\n for i in range(9):\n     a.append(i)\n+    del "
        "a[:-3]\n     print(i)\n");
  CHECK_THROWS_AS(carried_out(change, text + "\n"), Error);
  CHECK_THROWS_AS(carried_out(change, "b" + text.substr(1)), Error);
  Change beyond = change;
  beyond.edits[1].line = 40;
  CHECK_THROWS_AS(carried_out(beyond, text), Error);
  Change crossing = change;
  crossing.edits[1] = crossing.edits[0];
  CHECK_THROWS_AS(carried_out(crossing, text), Error);
  CHECK_THROWS_AS(carried_out(Change{.file = {}, .digest = digest(text)}, text), Error);
  CHECK(digest("123456789") == "9:cbf43926");
}

TEST_CASE("no fix of the catalogue has a placeholder in its code, or a backtick that is not closed") {
  for (const Cause* cause : causes()) {
    CAPTURE(cause->id);
    CHECK(std::ranges::count(cause->fix, '`') % 2 == 0);
    CHECK(cause->fix.find("...") == std::string::npos);
  }
}
