// Every cause has evidence that shows it, and a near twin that must not be called by its name.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include "verdict/causes/cause.h"
#include "verdict/notes.h"
#include "verdict/run.h"

using namespace millpond::verdict;
using namespace millpond;

namespace {

/// 24 epochs that grow by 10 MB each, in use by allocators, not given back.
Run leaking(double by = 10, int n = 24) {
  Run run;
  run.grow(600, by, n).live_from(300, by);
  for (int at = 4; at <= n; at *= 2) run.probe(at, 600 + by * (at - 1), 600 + by * (at - 1), 600 + by * (at - 1) - 4);
  return run;
}

Run flat(int n = 24) {
  Run run;
  run.grow(600, 0.02, n).live_from(300, 0.01);
  for (int at = 4; at <= n; at *= 2) run.probe(at, 600, 600, 596);
  return run;
}

void check(Run& run, const std::string& cause, int line, Kind kind = Kind::kLeak) {
  const Verdict v = run.judged();
  CAPTURE(v.sentence);
  CHECK(v.kind == kind);
  CHECK(first_cause(v) == cause);
  CHECK(first_line(v) == line);
  CHECK_FALSE(v.findings.empty());
  if (!v.findings.empty()) {
    CHECK_FALSE(v.findings.front().fix.empty());
    CHECK_FALSE(v.findings.front().evidence.empty());
  }
}

}  // namespace

TEST_CASE("the list of causes has every number of the catalogue that can be told once, with words for all") {
  std::set<std::string> ids;
  for (const Cause* cause : causes()) {
    CAPTURE(cause->id);
    CHECK(ids.insert(cause->id).second);
    CHECK_FALSE(cause->title.empty());
    CHECK_FALSE(cause->fix.empty());
    // Those that are recognised alike have one detector, which says which of them it is.
    const std::set<std::string> by_another = {"C20", "C21", "C22", "C26", "C36", "C38"};
    CHECK((cause->detect != nullptr) != by_another.contains(cause->id));
  }
  // What a device's workspaces, pinned memory, contexts and graphs take is not told apart by its counters, and two
  // copies of a state are no growth.
  const std::set<int> untold = {30, 32, 33, 34, 45};
  for (int i = 1; i <= 45; ++i) CHECK(ids.contains("C" + std::to_string(i)) != untold.contains(i));
}

TEST_CASE("no cause is named for a flat run, whatever recurs in it") {
  Run run = flat();
  run.framework("tensorflow").framework("keras", "tensorflow").framework("torch").framework("jax");
  for (const char* what : {"fit", "predict", "evaluate", "compile", "model", "trace", "jax_compile", "figure",
                           "load_model", "clear_session", "dataset", "backward"})
    run.line(what, "train.py", 10, "main", "x = f(y, step)", 48);
  run.counter("tf.traces", 3, 1)
      .counter("jax.compiles", 3, 1)
      .counter("keras.models", 1, 1)
      .counter("pyplot.figures", 0, 1)
      .counter("torch.with_grad_fn", 0, 5);
  run.unit(Unit::kModel, 1).unit(Unit::kCompile, 1);
  run.holder("list", "float", 0.00001, "self.losses", "train.py", 12, "main", "self.losses.append(loss)");
  const Verdict v = run.judged();
  CHECK(v.kind == Kind::kFlat);
  CHECK(v.sentence.starts_with("Memory is flat: "));
}

TEST_CASE("C1: a Python number as argument of a tf.function") {
  Run run = leaking().framework("tensorflow").counter("tf.traces", 12, 12).traced("warmup.py", 49, "literal", 288);
  check(run, "C1", 49);
  CHECK(run.judged().findings.front().fix.find("as a tensor") != std::string::npos);
}

TEST_CASE("C2: a tf.function made in the loop; its near twin passes a number") {
  Run run = leaking().framework("tensorflow").counter("tf.traces", 1, 1).traced("a.py", 8, "new", 24);
  check(run, "C2", 8);
}

TEST_CASE("C3: new shapes, as the agent saw or where it saw no reason") {
  Run run = leaking()
                .framework("tensorflow")
                .counter("tf.traces", 4, 4)
                .line("trace", "a.py", 30, "main", "model.train_on_batch(x, y)", 96);
  check(run, "C3", 30);
}

TEST_CASE(
    "C5: models kept in a list blame the line that adds; models that are dropped blame the line of the loop that makes "
    "them") {
  Run kept = leaking(40, 12)
                 .framework("tensorflow")
                 .unit(Unit::kModel, 1)
                 .line("model", "k.py", 9, "build_model", "model = Sequential([", 12);
  kept.line("compile", "k.py", 17, "build_model", "model.compile(", 12)
      .counter("tf.traces", 2, 2)
      .counter("keras.models", 1, 1);
  kept.holder("list", "Sequential", 2, "local models of main", "k.py", 36, "main", "models.append(model)");
  check(kept, "C5", 36);
  CHECK(kept.judged().findings.front().unit == Unit::kModel);

  Run dropped = leaking(40, 12)
                    .framework("tensorflow")
                    .unit(Unit::kModel, 1)
                    .line("model", "k.py", 9, "build_model", "model = Sequential([", 12);
  dropped.line("compile", "k.py", 17, "build_model", "model.compile(", 12)
      .counter("tf.gradient_registry", 10, 6)
      .counter("tf.traces", 2, 2);
  dropped.site({library("keras/src/layer.py"), user("k.py", 9, "build_model"), user("k.py", 36, "main"),
                user("k.py", 50, "<module>")},
               8, Life::kLeak);
  dropped.site({library("keras/src/trainer.py"), user("k.py", 37, "main"), user("k.py", 50, "<module>")}, 30,
               Life::kLeak);
  check(dropped, "C5", 36);
  CHECK(dropped.judged().findings.front().holder == "TensorFlow's global gradient registry");
}

TEST_CASE("C6: growth of the XLA compiler with every new model") {
  Run run = leaking()
                .framework("tensorflow")
                .unit(Unit::kModel, 1)
                .line("model", "x.py", 5, "main", "model = Sequential([", 24);
  run.site({native("libtensorflow_cc.so", "llvm::orc::allocate"), user("x.py", 7, "main")}, 9, Life::kLeak);
  run.site({library("keras/src/layer.py"), user("x.py", 5, "main")}, 1, Life::kLeak);
  check(run, "C6", 5);
}

TEST_CASE("C7: load_model in the loop") {
  Run run = leaking()
                .framework("tensorflow")
                .line("load_model", "l.py", 12, "main", "model = load_model(path)", 24)
                .unit(Unit::kModel, 1);
  check(run, "C7", 12);
}

TEST_CASE("C8: compile in the loop; with new models it is C5") {
  Run run = leaking()
                .framework("tensorflow")
                .unit(Unit::kCompile, 1)
                .line("compile", "s.py", 23, "main", "model.compile(", 24);
  run.counter("tf.traces", 1, 1)
      .counter("tf.gradient_registry", 8, 8)
      .line("trace", "s.py", 26, "main", "result = model.fit(x, y)", 24);
  check(run, "C8", 23);
  Run models = leaking()
                   .framework("tensorflow")
                   .unit(Unit::kCompile, 1)
                   .unit(Unit::kModel, 1)
                   .line("compile", "s.py", 23, "main", "model.compile(", 24);
  models.line("model", "s.py", 20, "main", "model = Model(a, b)", 24);
  check(models, "C5", 20);
}

TEST_CASE("C9: predict in a loop is advice unless the growth lies under it") {
  const char* advice =
      R"x({"note": "advice", "what": "predict_in_loop", "file": "g.py", "line": 33, "function": "choose", "text": "values = model.predict(state[None], verbose=0)", "count": 504})x";
  Run calm =
      flat().line("predict", "g.py", 33, "choose", "values = model.predict(state[None], verbose=0)", 504).note(advice);
  const Verdict v = calm.judged();
  CHECK(v.kind == Kind::kFlat);
  REQUIRE(v.advice.size() == 1);
  CHECK(v.advice[0].what == "predict_in_loop");
  Run grows = leaking().line("predict", "g.py", 33, "choose", "values = model.predict(state[None], verbose=0)", 504);
  grows.site({library("keras/src/trainer.py"), user("g.py", 33, "choose"), user("g.py", 60, "main")}, 10, Life::kLeak,
             1);
  check(grows, "C9", 33);
}

TEST_CASE("C10: a sawtooth that gc cuts is not a leak") {
  Run run;
  std::vector<double> rss, live;
  int since = 0;
  for (int i = 1; i <= 24; ++i) {
    ++since;
    rss.push_back(600 + 12 * since);
    live.push_back(300 + 12 * since);
    if (i == 4 || i == 8 || i == 16) since = 0;
  }
  run.rss(rss)
      .live(live)
      .probe(4, rss[3], 610, 600, 9000)
      .probe(8, rss[7], 610, 600, 9000)
      .probe(16, rss[15], 610, 600, 18000);
  run.note(R"({"note": "probe", "period": 4, "gc_types": {"dict": 4000, "Node": 3000}})");
  const Verdict v = run.judged();
  CAPTURE(v.sentence);
  CHECK(v.kind == Kind::kRetention);
  CHECK(first_cause(v) == "C10");
  // With the collector turned off nothing frees it: probes count it and leave it.
  Run off = leaking(12).counter("gc.enabled", 0, 0).site({user("g.py", 26, "search")}, 12, Life::kLeak);
  off.evidence.probes.push_back({.t = off.evidence.marks.back().t,
                                 .period = 30,
                                 .rss = {},
                                 .after_gc = {},
                                 .after_trim = {},
                                 .collected = 0,
                                 .garbage = 9000,
                                 .garbage_bytes = Bytes{250'000'000}});
  check(off, "C10", 26);
  CHECK(off.judged().findings.front().bytes_per_unit == doctest::Approx(12e6).epsilon(0.02));
  // What its objects hold is allocated at other lines, and is the same circle.
  Run circle = leaking(12).counter("gc.enabled", 0, 0);
  circle.site({user("g.py", 26, "search")}, 8, Life::kLeak).site({user("g.py", 31, "Node.__init__")}, 4, Life::kLeak);
  circle.evidence.probes = off.evidence.probes;
  const Verdict one = circle.judged();
  CHECK(std::ranges::count_if(one.findings, [](const Finding& f) { return f.kind == Kind::kLeak; }) == 1);
  CHECK(first_cause(one) == "C10");
}

TEST_CASE("C11: large blocks made while tracing; the array of from_tensor_slices") {
  Run run = leaking()
                .framework("tensorflow")
                .counter("tf.traces", 1, 1)
                .line("trace", "b.py", 14, "main", "out = score(batch)", 24);
  run.site({library("tensorflow/constant_op.py"), user("b.py", 6, "score"), user("b.py", 14, "main")}, 10, Life::kLeak,
           10000);
  check(run, "C11", 14);
  Run once = flat().framework("tensorflow").stage("from_tensor_slices", 9, "ds = Dataset.from_tensor_slices(x)");
  once.site({library("tensorflow/dataset_ops.py"), user("data.py", 9, "main")}, 200, Life::kOnce, 100000);
  check(once, "C11", 9, Kind::kReserve);
}

TEST_CASE("C12: a float64 array is copied; a small one is not worth a word") {
  const auto with = [](double bytes) {
    Run run = flat().baseline(400).framework("keras", "tensorflow");
    run.note(
        R"({"note": "data", "what": "fit", "file": "t.py", "line": 16, "arrays": [{"shape": [1], "dtype": "float64", "type": "ndarray", "bytes": )" +
        std::to_string(bytes) + "}]}");
    return run;
  };
  Run large = with(400e6);
  check(large, "C12", 16, Kind::kReserve);
  CHECK(with(2e6).judged().kind == Kind::kReserve);  // the jump itself stays
  CHECK(first_cause(with(2e6).judged()) == "");
}

TEST_CASE("C14: a list that nothing empties, by the line that adds to it; a bounded deque is a cache") {
  Run run = leaking().framework("keras", "tensorflow");
  run.holder("list", "ndarray", 10.2, "ValidationPredictions.saved", "topic.py", 39,
             "ValidationPredictions.on_epoch_end", "self.saved.append(preds)");
  check(run, "C14", 39);
  CHECK(run.judged().findings.front().fix.find("Do not keep every item (topic.py:39)") != std::string::npos);
  Run registry =
      leaking().holder("list", "bytes", 10, "_REGISTRY", "r.py", 27, "keep_track", "_REGISTRY.append(value)");
  check(registry, "C14", 27);  // the user's own, not TensorFlow's
  Run bounded = leaking().holder("deque", "ndarray", 10, "Agent.memory", "a.py", 20, "Agent.remember",
                                 "self.memory.append(item)", 50);
  bounded.evidence.probes.clear();
  const Verdict v = bounded.judged();
  CAPTURE(v.sentence);
  CHECK(v.kind == Kind::kCache);
  CHECK(first_cause(v) == "K1");
}

TEST_CASE("C14: calls of a line that fills the lists of a dict are its blocks, not the keys") {
  Run run("timer", 1);
  run.grow(80, 24, 12).live_from(40, 24).site({user("r.py", 38, "train_epoch")}, 24, Life::kLeak, 8000);
  run.holder("defaultdict", "list", 24, "by_step", "r.py", 38, "train_epoch", "by_step[key].append(scores.tobytes())",
             nullptr, 1.2);
  const Finding f = run.judged().findings.front();
  CHECK(f.cause == "C14");
  CHECK(f.unit == Unit::kCall);
  CHECK(f.bytes_per_unit == doctest::Approx(8000 * 1024).epsilon(0.05));
}

TEST_CASE("C14 wins over what merely recurs when it explains the growth") {
  Run run =
      leaking().framework("tensorflow").counter("tf.traces", 4, 1).line("trace", "a.py", 50, "main", "f(x, step)", 26);
  run.holder("dict", "ndarray", 9.5, "cache of main", "a.py", 12, "main", "cache[step] = out");
  check(run, "C14", 12);
}

TEST_CASE("growth below the bar is listed with its line and rate, and does not set the verdict") {
  Run held = leaking(0.1).holder("list", "ndarray", 0.1, "Log.rows", "a.py", 9, "Log.add", "self.rows.append(row)");
  const Verdict v = held.judged();
  CHECK(v.kind == Kind::kFlat);
  REQUIRE(!v.findings.empty());
  CHECK(v.findings.front().cause == "C14");
  CHECK(!v.findings.front().sets_verdict);
  CHECK(v.findings.front().blame->line == 9);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(1e5).epsilon(0.05));
  CHECK(v.sentence.find("grows a little") != std::string::npos);
  Run enough = leaking(0.5).holder("list", "ndarray", 0.5, "Log.rows", "a.py", 9, "Log.add", "self.rows.append(row)");
  check(enough, "C14", 9);
}

TEST_CASE("C15: TensorBoard's writers") {
  Run run = leaking().site({native("libtensorflow_cc.so", "write"),
                            library("/x/site-packages/keras/src/callbacks/tensorboard.py"), user("a.py", 40, "main")},
                           10, Life::kLeak, 4);
  check(run, "C15", 40);
}

TEST_CASE("C16: open figures; closed ones do not count") {
  Run run =
      leaking()
          .counter("pyplot.figures", 1, 1)
          .line("figure", "e.py", 21, "Plots.on_epoch_end", "fig, axes = plt.subplots(2, 6, figsize=(12, 4))", 24);
  check(run, "C16", 21);
  CHECK(run.judged().findings.front().fix.find("`close`") != std::string::npos);
  Run closed = leaking()
                   .counter("pyplot.figures", 1, 0)
                   .line("figure", "e.py", 21, "Plots.on_epoch_end", "fig, axes = plt.subplots(2, 6)", 24);
  CHECK(first_cause(closed.judged()) != "C16");
}

TEST_CASE("C17: futures of Keras's callback queue") {
  Run run = leaking().framework("keras", "jax").type("Future", 2400, 100);
  CHECK(first_cause(run.judged()) == "C17");
}

TEST_CASE("C18 and C24: children that multiply, children that copy") {
  Run more;
  std::vector<double> tree;
  for (int i = 0; i < 20; ++i) tree.push_back(700 + 30 * i);
  more.grow(600, 0, 20).tree(tree, 2);
  for (int i = 0; i < 20; ++i) more.evidence.marks[size_t(i)].processes = 2 + i;
  more.line("fit", "w.py", 8, "main", "model.fit(seq)", 1);
  check(more, "C18", 8);
  Run copies;
  copies.grow(600, 0, 20).tree(tree, 5).line("dataloader", "w.py", 30, "main", "for batch in loader:", 20);
  check(copies, "C24", 30);
  std::vector<double> stops;
  for (int i = 0; i < 20; ++i) stops.push_back(700 + 200 * (1 - std::exp(-i / 2.0)));
  Run plateau;
  plateau.grow(600, 0, 20).tree(stops, 5).line("dataloader", "w.py", 30, "main", "for batch in loader:", 20);
  CHECK(plateau.judged().kind != Kind::kLeak);
}

TEST_CASE("C19: a cache that fills; the same stage over a small set is flat") {
  Run full = flat()
                 .baseline(300)
                 .stage("cache", 32, ".cache()")
                 .site({native("libtensorflow_framework.so", "MemoryCache::emplace_back")}, 290, Life::kOnce, 64);
  check(full, "C19", 32, Kind::kCache);
  // A first epoch that decodes can be most of a short run: the blocks are then of many ages, but none is younger than
  // that epoch.
  const auto slow = [&](std::array<int, 8> percent) {
    Run run = full;
    std::vector<Mark>& marks = run.evidence.marks;
    const double last = marks.back().t, epoch = 0.4 * last / double(marks.size());
    for (size_t i = 0; i < marks.size(); ++i) {
      marks[i].t = last - epoch * double(marks.size() - 1 - i);
      for (SiteState& s : marks[i].sites)
        for (size_t part = 0; part < percent.size(); ++part) s.age[part] = Bytes{s.bytes.value * percent[part] / 100};
    }
    Mark begun;
    begun.kind = "step", begun.name = "fit", begun.period = true;
    marks.insert(marks.begin(), begun);
    return run;
  };
  Run half = slow({10, 35, 40, 15, 0, 0, 0, 0}), most = slow({0, 20, 20, 20, 35, 5, 0, 0});
  check(half, "C19", 32, Kind::kCache);
  check(most, "C19", 32, Kind::kCache);
  CHECK(slow({0, 20, 20, 20, 20, 0, 5, 15}).judged().kind ==
        Kind::kReserve);  // no cache has elements of the last epochs
  Run small = flat()
                  .baseline(590)
                  .stage("cache", 32, ".cache()")
                  .site({native("libtensorflow_framework.so", "MemoryCache::emplace_back")}, 3, Life::kOnce, 64);
  CHECK(small.judged().kind == Kind::kFlat);
}

TEST_CASE("C20, C21: a shuffle buffer, held or freed and kept by the allocator") {
  Run held = flat()
                 .baseline(300)
                 .stage("shuffle", 31, ".shuffle(BUFFER)", 5000)
                 .site({native("libtensorflow_framework.so", "ShuffleDataset::FillBuffer")}, 250, Life::kOnce, 48);
  check(held, "C20", 31, Kind::kCache);
  Run freed;
  freed.grow(900, 0, 12)
      .live_from(200, 0)
      .baseline(500)
      .probe(4, 900, 900, 500)
      .probe(8, 900, 900, 510)
      .stage("shuffle", 31, ".shuffle(BUFFER)", 5000);
  check(freed, "C21", 31, Kind::kRetention);
}

TEST_CASE("C22: AUTOTUNE fills and stops") {
  Run run;
  std::vector<double> v;
  for (int i = 0; i < 24; ++i) v.push_back(500 + 150 * (1 - std::exp(-i / 2.0)));
  run.rss(v).baseline(450).stage("prefetch", 12, ".prefetch(AUTOTUNE)", -1);
  check(run, "C22", 12, Kind::kCache);
}

TEST_CASE("C23: what a Python function in a pipeline closes over was allocated elsewhere") {
  Run run = leaking().framework("tensorflow").line("dataset", "d.py", 22, "dataset_for", "return ds.map(load)", 24);
  run.stage("py_function", 29, "model.fit(dataset_for(epoch))")
      .site({user("d.py", 11, "dataset_for")}, 10, Life::kLeak);
  check(run, "C23", 22);
  Run kept = run;  // a list that keeps it is told before
  kept.holder("list", "ndarray", 10, "parts", "d.py", 40, "main", "parts.append(x)");
  check(kept, "C14", 40);
}

TEST_CASE("C23: a pipeline with a generator made in every round") {
  Run run = leaking()
                .framework("tensorflow")
                .line("dataset", "d.py", 18, "main", "ds = Dataset.from_generator(gen, ...)", 24);
  run.stage("from_generator", 18, "ds = Dataset.from_generator(gen, ...)");
  check(run, "C23", 18);
}

TEST_CASE("C25, C26: freed and kept") {
  Run run;
  run.grow(272, 0, 16)
      .baseline(40)
      .live_from(30, 0)
      .probe(4, 272, 272, 54)
      .probe(8, 272, 272, 54)
      .probe(16, 272, 272, 54);
  check(run, "C25", 0, Kind::kRetention);
  Run predict;
  predict.grow(272, 0, 16)
      .baseline(40)
      .live_from(30, 0)
      .probe(4, 272, 272, 54)
      .line("predict", "p.py", 7, "main", "model.predict(x)", 16);
  check(predict, "C26", 7, Kind::kRetention);
}

TEST_CASE("C25: kept since the start, returned by the first probe and not asked for again") {
  Run run;
  run.rss({272, 272, 272, 272, 54, 54, 54, 54, 54, 54, 54, 54, 54, 54, 54, 54})
      .baseline(40)
      .live_from(30, 0)
      .probe(4, 272, 272, 54)
      .probe(8, 54, 54, 54);
  check(run, "C25", 0, Kind::kRetention);
}

TEST_CASE("F2: free in the allocator, and trim cannot return it") {
  const auto run = [](double returned) {
    Run r;
    r.grow(110, 0, 16).baseline(96).live_from(25, 0).probe(6, 110, 110, 110 - returned).probe(8, 110, 110, 110);
    for (Mark& m : r.evidence.marks) m.heap_free = mb(77);
    return r;
  };
  Run pinned = run(0.1);
  check(pinned, "F2", 0, Kind::kFragmentation);
  CHECK(first_cause(run(60).judged()) != "F2");
}

TEST_CASE("C25: resident memory that rises between probes while nothing more is in use") {
  Run run;
  std::vector<double> rss;
  int since = 0;
  for (int i = 1; i <= 16; ++i) {
    rss.push_back(400 + 24 * ++since);
    if (i == 4 || i == 8 || i == 16) since = 0;
  }
  run.rss(rss)
      .baseline(200)
      .live_from(250, 0.1)
      .probe(4, rss[3], rss[3], 400)
      .probe(8, rss[7], rss[7], 402)
      .probe(16, rss[15], rss[15], 401);
  const Verdict v = run.judged();
  CAPTURE(v.sentence);
  CHECK(v.kind == Kind::kRetention);
}

TEST_CASE("C31: oneDNN's cache") {
  Run run = leaking().framework("torch").site(
      {native("libtorch_cpu.so", "dnnl::impl::primitive_cache"), user("o.py", 22, "main")}, 10, Life::kLeak);
  check(run, "C31", 22);
}

TEST_CASE("C35: state of the optimizer in large blocks; a graph's small blocks are not it") {
  Run run = flat().baseline(450).framework("torch").line("optimizer_step", "o.py", 35, "main", "optimizer.step()", 100);
  run.site({library("torch/optim/adamw.py"), user("o.py", 35, "main")}, 86, Life::kOnce, 4000);
  check(run, "C35", 35, Kind::kReserve);
  Run small =
      flat().baseline(560).framework("torch").line("optimizer_step", "o.py", 35, "main", "optimizer.step()", 100);
  small.site({library("torch/optim/adamw.py"), user("o.py", 35, "main")}, 30, Life::kOnce, 2);
  CHECK(small.judged().kind == Kind::kFlat);
}

TEST_CASE("C36: tensors kept with their graph; detached ones are C14") {
  Run run = leaking().framework("torch").counter("torch.with_grad_fn", 10, 9);
  run.holder("list", "Tensor", 0.00001, "local history of main", "v.py", 55, "main", "history.append(val_loss)");
  check(run, "C36", 55);
  CHECK(run.judged().findings.front().fix.find("`.item()`, of a tensor with one element") != std::string::npos);
  Run detached = leaking().framework("torch").counter("torch.with_grad_fn", 10, 0).counter("torch.tensors", 20, 1);
  detached.holder("list", "Tensor", 10, "local outputs of main", "v.py", 55, "main", "outputs.append(y.detach())");
  check(detached, "C14", 55);
  Run chain = leaking().framework("torch").holder("chain of tensors", "Tensor with grad_fn", 0, "Meter.total", "v.py",
                                                  12, "Meter.update", "self.total += loss");
  check(chain, "C36", 12);
}

TEST_CASE("C37: gradients that hang on one another are no list of the user's") {
  Run run =
      leaking()
          .framework("torch")
          .counter("torch.with_grad_fn", 10, 9)
          .line("backward_create_graph", "g.py", 18, "main", "loss.backward(create_graph=True)", 24)
          .holder("chain of tensors", "Tensor with grad_fn", 9, "penalty", "g.py", 19, "main", "penalty = sum(...)");
  check(run, "C37", 18);
  run.holder("list", "Tensor with grad_fn", 10, "history", "g.py", 22, "main", "history.append(penalty)");
  CHECK(first_cause(run.judged()) == "C36");
}

TEST_CASE("C40: a list of exceptions is told as what it keeps, not as a list") {
  Run run = leaking().type("traceback", 96, 6);
  run.holder("list", "FloatingPointError", 10, "failures", "e.py", 36, "main", "failures.append(error)", nullptr, 1,
             {{"family", "exception"}, {"traceback", true}});
  check(run, "C40", 36);
}

TEST_CASE("why a function is traced, as the agent saw it") {
  const auto traced = [](const char* why) {
    Run run = leaking().framework("tensorflow").counter("tf.traces", 2, 1);
    run.note(
        std::string(
            R"({"note": "lines", "calls": [{"what": "trace", "count": 24, "file": "t.py", "line": 34, "function": "main",)") +
        R"J("text": "loss = step(x, rate)", "why": )J" + why + "}]}");
    return run;
  };
  CHECK(first_cause(traced(R"({"new": 1, "literal": 23, "argument": "rate"})").judged()) == "C1");
  CHECK(first_cause(traced(R"({"new": 24})").judged()) == "C2");
  CHECK(first_cause(traced(R"({"new": 1, "object": 23})").judged()) == "C2");
  CHECK(first_cause(traced(R"({"new": 1, "shape": 23})").judged()) == "C3");
  CHECK(first_cause(traced(R"({"new": 24, "jit": 24})").judged()) == "C6");
  // Each brings a table with it.
  Run baked = traced(R"({"new": 24})");
  baked.site({native("libtensorflow.so", "f"), user("t.py", 34, "main")}, 10, Life::kLeak, 1280);
  CHECK(first_cause(baked.judged()) == "C11");
}

TEST_CASE("C37: create_graph; plain backward is not it") {
  Run run = leaking()
                .framework("torch")
                .counter("torch.with_grad_fn", 10, 9)
                .line("backward_create_graph", "g.py", 18, "main", "loss.backward(create_graph=True)", 24);
  check(run, "C37", 18);
  Run plain = leaking()
                  .framework("torch")
                  .counter("torch.with_grad_fn", 10, 9)
                  .line("backward", "g.py", 18, "main", "loss.backward()", 24);
  CHECK(first_cause(plain.judged()) != "C37");
}

TEST_CASE("C38: what a hook keeps, by its chain or because its line is of a function in a module's table of hooks") {
  Run run = leaking().framework("torch").holder("list", "Tensor", 10, "forward hook of Conv2d: Recorder.maps", "f.py",
                                                28, "Recorder.record", "self.maps.append(output.detach())");
  check(run, "C38", 28);
  Run list = leaking().framework("torch").holder("list", "Tensor", 10, "Recorder.maps", "f.py", 28, "Recorder.record",
                                                 "self.maps.append(output.detach())");
  // A module calls the function that fills the list: that says nothing, for models call all kinds of functions.
  list.site({user("f.py", 28, "Recorder.record"), library("/x/site-packages/torch/nn/modules/module.py"),
             user("f.py", 46, "main")},
            0.1, Life::kLeak);
  check(list, "C14", 28);
  Run table = leaking().framework("torch");
  table.note(
      R"x({"note": "holders", "kind": "epoch", "containers": [{"type": "list", "length": 20, "per_period": 1, "item_type": "Tensor", "bytes_per_period": 10000000, "exact": true,
                 "holder": "Recorder.maps", "chain": ["list of 20", "attribute maps of Recorder"], "file": "f.py", "line": 28, "function": "Recorder.record",
                 "text": "self.maps.append(output.detach())", "hook": true, "bounded": null}], "types": []})x");
  check(table, "C38", 28);
}

TEST_CASE("C39, C40: nodes of a custom Function, frames of stored exceptions") {
  Run function = leaking()
                     .framework("torch")
                     .type("MyActivationBackward", 240, 10)
                     .site({user("c.py", 11, "forward"), user("c.py", 30, "main")}, 10, Life::kLeak);
  check(function, "C39", 11);
  Run frames = leaking()
                   .type("traceback", 48, 2)
                   .holder("list", "ValueError", 0.01, "errors of main", "c.py", 9, "main", "errors.append(e)", nullptr,
                           1, {{"family", "exception"}, {"traceback", true}});
  check(frames, "C40", 9);
}

TEST_CASE("C41: torch.compile in the loop") {
  Run run = leaking().framework("torch").site(
      {library("/x/site-packages/torch/_dynamo/convert_frame.py"), user("t.py", 14, "main")}, 10, Life::kLeak, 2);
  check(run, "C41", 14);
}

TEST_CASE("C42, C43: JAX compiles for shapes, or functions that are new each time; few compiles are none") {
  Run shapes = leaking()
                   .framework("jax")
                   .counter("jax.compiles", 20, 4)
                   .line("jax_compile", "j.py", 53, "main", "params, loss = update(params, tokens, labels)", 96);
  check(shapes, "C42", 53);
  Run fresh = leaking()
                  .framework("jax")
                  .counter("jax.compiles", 20, 1)
                  .line("jax_compile", "j.py", 17, "main", "y = jax.jit(lambda v: v * k)(x)", 24)
                  .line("jax_jit", "j.py", 17, "main", "y = jax.jit(lambda v: v * k)(x)", 24);
  check(fresh, "C43", 17);
  Run few =
      leaking().framework("jax").counter("jax.compiles", 20, 0).line("jax_compile", "j.py", 53, "main", "update(p)", 2);
  CHECK(first_cause(few.judged()) != "C42");
}

TEST_CASE("C44: native residue of JAX") {
  Run run = leaking()
                .framework("jax")
                .counter("jax.compiles", 20, 0)
                .site({native("jaxlib/xla_extension.so", "xla::thing"), user("j.py", 5, "main")}, 10, Life::kLeak);
  CHECK(first_cause(run.judged()) == "C44");
}

TEST_CASE("P1 and N1: growth without a holder, in Python and in a native program") {
  Run python =
      leaking()
          .note(R"({"note": "start"})")
          .site({library("numpy/core.py"), user("p.py", 44, "step"), user("p.py", 60, "main")}, 10, Life::kLeak);
  check(python, "P1", 44);
  Run program("timer", 1);
  program.grow(50, 4, 30).live_from(40, 4).site({{"leak.cc", "Cache::put", 12, true, true}, native("a.out", "main")}, 4,
                                                Life::kLeak);
  check(program, "N1", 12);
  CHECK(program.judged().findings.front().unit == Unit::kSecond);
}

TEST_CASE("N1: a scan for pointers tells what is lost from what a variable, a stack or another block keeps") {
  const auto judged = [](const std::string& group) {
    Run program("timer", 1);
    program.grow(50, 4, 30).live_from(40, 4).site({{"leak.cc", "Cache::put", 12, true, true}, native("a.out", "main")},
                                                  4, Life::kLeak);
    program.site({{"index.cc", "Index::grow", 31, true, true}, native("a.out", "main")}, 0.01, Life::kLeak);
    program.evidence.sites[0].row = 7, program.evidence.sites[1].row = 8;
    if (!group.empty())
      program.note(R"({"note": "scan", "alive": 100e6, "groups": [{"site": 7, "bytes": 100e6, )" + group + "}]}");
    const Finding f = program.judged().findings.front();
    CHECK(f.cause == "N1");
    CHECK(f.blame->line == 12);
    return f;
  };
  const auto says = [](const Finding& f, const char* words) {
    return std::ranges::any_of(f.evidence, [&](const std::string& line) { return contains(line, words); });
  };
  const Finding lost = judged(R"("lost": 97e6, "stack": 3e6)");
  CHECK(contains(lost.title, "no pointer to it any more"));
  CHECK(says(lost, "nothing can free them any more"));
  CHECK(lost.holder.empty());
  const Finding kept = judged(
      R"("static": 99e6, "lost": 1e6, "variables": [{"name": "cache", "module": "/x/libx.so", "bytes": 99e6}], "blocks": [{"site": 8, "bytes": 99e6}])");
  CHECK(kept.holder == "the variable `cache` of libx.so");
  CHECK(says(kept, "through a block that `Index::grow` (index.cc:31) allocated"));
  CHECK(contains(judged(R"("stack": 90e6, "lost": 10e6)").holder, "on the stack"));
  CHECK(judged(R"("block": 90e6, "blocks": [{"site": 8, "bytes": 90e6}])").holder ==
        "a block that `Index::grow` (index.cc:31) allocated");
  CHECK(says(judged(R"("other": 60e6, "lost": 40e6)"), "to 38.1 MiB no pointer was found"));
  CHECK(says(judged(""), "nobody looked for pointers"));
}

TEST_CASE("N1: without debug information the function is named, and a library's line does not take its place") {
  Run program("timer", 1);
  program.grow(50, 4, 30).live_from(40, 4).site(
      {{"/x/src/segment.cc", "millpond::Segment::Segment(int)", 91, true, false},
       {"/x/a.out", "Cache::put(int)", 0, true, true}},
      4, Life::kLeak);
  const Verdict v = program.judged();
  CHECK(v.findings.front().blame->function == "Cache::put(int)");
  CHECK(contains(v.sentence, "at `Cache::put(int)` (a.out):"));
}

TEST_CASE("N1: what a module in C takes under a line of Python and no object has is native") {
  Run run = leaking();
  run.note(R"({"note": "start"})")
      .note(R"({"note": "walk", "period": 12, "alive": 100e6, "reached": 1e6, "holders": []})");
  run.site({native("/x/native_records.so", "+0x6f7a"), user("n.py", 37, "observe"), user("n.py", 58, "main")}, 20,
           Life::kLeak, 8000);
  run.evidence.sites[0].row = 3;
  CHECK(first_cause(run.judged()) == "P1");
  run.note(R"({"note": "scan", "alive": 300e6, "groups": [{"site": 3, "bytes": 300e6, "lost": 299e6}]})");
  check(run, "N1", 37);
}

TEST_CASE(
    "a holder that gains no items any more is no leak, however its survivors are spread: its lengths until the end "
    "decide") {
  const auto judged = [](const std::string& lengths, const std::string& inner = "") {
    Run run = leaking();
    run.note(R"({"note": "start"})").site({user("p.py", 44, "step"), user("p.py", 60, "main")}, 10, Life::kLeak);
    run.note(
        R"({"note": "walk", "period": 12, "alive": 90e6, "reached": 80e6, "holders": [{"bytes": 80e6, "samples": 40, "items": 40, "how": "reached", "type": "list",
      "chain": ["global kept of p", "module p"], "length": 40, "born": [{"file": "p.py", "line": 44, "bytes": 80e6}], "births": [5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5]}]})");
    run.note(
        R"({"note": "courses", "kind": "epoch", "holders": [{"type": "list", "chain": ["global kept of p", "module p"], "lengths": )" +
        lengths + inner + "}]}");
    return run.judged().kind;
  };
  CHECK(judged("[[4, 16], [6, 24], [8, 32], [10, 40], [12, 48], [14, 56]]") == Kind::kLeak);
  CHECK(judged("[[2, 20], [4, 40], [6, 40], [8, 40], [10, 40], [12, 40]]") != Kind::kLeak);  // full
  CHECK(judged("[[4, 40], [24, 40]]") != Kind::kLeak);  // new ones take the place of old ones
  CHECK(judged("[[100, 10], [150, 11], [200, 12], [205, 12]]") ==
        Kind::kLeak);  // one comes every fifty rounds: five without are no end
  CHECK(judged("[[4, 12], [6, 19], [8, 21], [10, 24], [12, 27], [14, 31], [16, 31], [18, 32], [20, 32], [24, 32], [26, "
               "33], [30, 33], [34, 33]]") != Kind::kLeak);  // by less and less
  CHECK(judged("[[3, 30], [4, 45], [5, 55], [6, 65], [7, 75], [8, 90], [9, 95], [10, 105], [11, 115]]") ==
        Kind::kLeak);  // uneven, and on
  CHECK(judged("[[4, 8], [8, 8], [12, 8], [16, 8]]", R"(, "inner": [[4, 40], [8, 80], [12, 120], [16, 160]])") ==
        Kind::kLeak);  // lists in it get longer
  CHECK(
      judged("[[4, 200], [8, 200], [12, 200], [16, 200]]", R"(, "inner": [[4, 40], [8, 80], [12, 120], [16, 160]])") !=
      Kind::kLeak);  // places that are filled one by one
}

TEST_CASE(
    "a holder of whose survivors none was born lately, and that got no longer since, has ended; one that began late "
    "and goes on has not") {
  const auto judged = [](const std::string& births, const std::string& lengths) {
    Run run = leaking();
    run.note(R"({"note": "start"})").site({user("p.py", 44, "step"), user("p.py", 60, "main")}, 10, Life::kLeak);
    run.note(
        R"({"note": "walk", "period": 20, "alive": 90e6, "reached": 80e6, "holders": [{"bytes": 80e6, "samples": 40, "items": 40, "how": "reached", "type": "list",
      "chain": ["global kept of p", "module p"], "length": 40, "born": [{"file": "p.py", "line": 44, "bytes": 80e6}], "births": )" +
        births + "}]}");
    run.note(
        R"({"note": "courses", "kind": "epoch", "holders": [{"type": "list", "chain": ["global kept of p", "module p"], "lengths": )" +
        lengths + "}]}");
    return run.judged();
  };
  const std::string until = "[0,0,0,0,0,0,0,0,0,9,9,9,9,9,0,0]", late = "[0,0,0,0,0,0,0,0,0,0,0,9,9,9,9,9]";
  CHECK(judged(until, "[[12, 4], [16, 28], [20, 40], [24, 40]]").kind != Kind::kLeak);
  CHECK(judged(until, "[[12, 4], [16, 28], [20, 40], [24, 46]]").kind == Kind::kLeak);  // it got longer after the walk
  CHECK(judged(until, "[[16, 28], [20, 40]]").kind == Kind::kLeak);                     // nobody looked after the walk
  CHECK(judged(until, "[[34, 90]]").kind == Kind::kLeak);  // nor how long it was when the walk was made
  const Verdict v = judged(late, "[[16, 10], [18, 20], [20, 40], [22, 50], [24, 60]]");
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().holder == "global kept of p");
}

TEST_CASE(
    "mappings that are too small to be sampled are a leak of their own, held by the container that gains one for so "
    "many whole pages") {
  const auto judged = [](double mapped_each, double per_period) {
    Run run = leaking();
    run.evidence.process = 1;
    SeenProcess p{.row = 1,
                  .pid = 7,
                  .parent = 1,
                  .name = "python",
                  .command = {},
                  .start = 0,
                  .end = {},
                  .seen = "inside",
                  .spaces = {},
                  .pages = {},
                  .mappings = {}};
    for (const Mark& m : run.evidence.marks) {
      const double kept = 8192.0 * 100 * double(m.index), made = mapped_each > 0 ? kept : 8192.0 * 100 * 24;
      p.mappings["shared_anonymous"].push_back(
          {m.t, Bytes{int64_t(made)}, Bytes{int64_t(kept)}, Bytes{int64_t(kept)}, Bytes{int64_t(kept)}});
    }
    run.evidence.processes = {p};
    const auto container = [](const char* holder, const char* item, double bytes, double items, int line) {
      return nlohmann::json{{"type", "list"},    {"length", 24 * items},      {"per_period", items},
                            {"item_type", item}, {"bytes_per_period", bytes}, {"exact", true},
                            {"holder", holder},  {"chain", {"list", holder}}, {"file", "m.py"},
                            {"line", line},      {"function", "step"},        {"bounded", nullptr}};
    };
    run.note(nlohmann::json{
        {"note", "holders"},
        {"kind", "epoch"},
        {"containers", {container("kept", "ndarray", 10e6, 1, 8), container("maps", "mmap", 1e4, per_period, 12)}}}
                 .dump());
    return run.judged();
  };
  const auto told = [](const Verdict& v) {
    return std::ranges::find(v.findings, std::string("shared"), &Finding::space);
  };
  const Verdict v = judged(8192, 100);
  REQUIRE(told(v) != v.findings.end());
  CHECK(told(v)->blame->line == 12);
  CHECK(told(v)->bytes_per_unit == doctest::Approx(819200).epsilon(0.02));
  CHECK(v.findings.front().blame->line == 8);
  const Verdict odd = judged(8192, 77);  // so many come that none of them is of whole pages
  REQUIRE(told(odd) != odd.findings.end());
  CHECK_FALSE(told(odd)->blame);
  const Verdict written = judged(0, 100);  // one mapping that was made at once, and is written to bit by bit
  CHECK(told(written) == written.findings.end());
}

TEST_CASE("mappings that the system counts seldom have ended when their pages, which it counts often, say so") {
  const auto judged = [](double until) {
    Run run("timer", 0.25);
    run.rss(std::vector<double>(48, 60)).live(std::vector<double>(48, 30));
    run.evidence.process = 1;
    SeenProcess p{};
    p.row = 1, p.seen = "inside";
    for (size_t i = 0; i < run.evidence.marks.size(); ++i) {
      const double t = run.evidence.marks[i].t, bytes = 4e5 * std::min(until, double(i));
      run.evidence.marks[i].rss = *run.evidence.marks[i].rss + Bytes{int64_t(bytes)};
      p.spaces["shared"].push_back({t, Bytes{int64_t(bytes)}, {}, {}});
      if (i % 4 == 0 && i < 42)
        p.mappings["shared_memory"].push_back({t, Bytes{int64_t(bytes)}, Bytes{int64_t(bytes)}, {}, {}});
    }
    run.evidence.processes = {p};
    return run.judged();
  };
  CHECK(judged(48).kind == Kind::kLeak);
  CHECK(judged(42).kind != Kind::kLeak);  // over a second before the end of a silent program
}

TEST_CASE(
    "what a container with a limit gains is no leak of its line, though a walk names an item of it as the holder") {
  const auto judged = [](nlohmann::json bound) {
    Run run;
    run.grow(300, 10, 14).live_from(100, 10).site({user("p.py", 40, "run")}, 10, Life::kLeak, 10000);
    run.note(
        R"({"note": "walk", "kind": "epoch", "period": 12, "alive": 120e6, "reached": 60e6, "holders": [{"bytes": 60e6, "samples": 6, "items": 6, "how": "reached", "type": "ArrayImpl",
      "chain": ["an item of deque"], "born": [{"file": "p.py", "line": 40, "bytes": 60e6}], "births": [5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5]}]})");
    const nlohmann::json deque = {{"type", "deque"},          {"length", 13},    {"per_period", 0.95},
                                  {"item_type", "ArrayImpl"}, {"exact", true},   {"bytes_per_period", 9.8e6},
                                  {"holder", "Brick.mills"},  {"file", "p.py"},  {"line", 40},
                                  {"chain", {"deque of 13"}}, {"bounded", bound}};
    return run.note(nlohmann::json{{"note", "holders"}, {"kind", "epoch"}, {"containers", {deque}}}.dump()).judged();
  };
  CHECK(judged(nullptr).kind == Kind::kLeak);
  CHECK(judged(13).kind == Kind::kCache);
}

TEST_CASE("pairs of a thing and the pair before are two long, and keep everything") {
  const auto judged = [](double first, double samples) {
    Run run = leaking();
    run.site({user("p.py", 44, "step")}, 10, Life::kLeak);
    for (const double period : {4.0, 20.0}) {
      const nlohmann::json holder = {{"bytes", period == 4 ? first : 80e6},
                                     {"samples", samples},
                                     {"how", "reached"},
                                     {"type", "tuple"},
                                     {"chain", {"global chain of p"}},
                                     {"length", 2},
                                     {"born", {{{"file", "p.py"}, {"line", 44}, {"bytes", 80e6}}}},
                                     {"births", std::vector<double>(16, 5e6)},
                                     {"lengths", {{4, 2}, {12, 2}, {20, 2}}}};
      run.note(nlohmann::json{{"note", "walk"},
                              {"kind", "epoch"},
                              {"period", period},
                              {"alive", 85e6},
                              {"reached", 80e6},
                              {"holders", {holder}}}
                   .dump());
    }
    return run.judged().kind;
  };
  CHECK(judged(8e6, 60) == Kind::kLeak);
  CHECK(judged(80e6, 60) != Kind::kLeak);  // as heavy as ever: new ones take the place of old ones
}

TEST_CASE("the line of a container is that of its own holder, not of what lies around it") {
  Run run = leaking();
  run.note(
      R"J({"note": "holders", "kind": "epoch", "period": 12, "containers": [{"type": "list", "length": 640, "per_period": 10, "item_type": "str", "bytes_per_period": 10e6, "holder": "Space.texts",
    "chain": ["list of 640", "attribute texts of Space", "local space of fill"], "rises": 9, "still": true, "file": "a.py", "line": 26, "function": "fill", "text": "space.texts.append(text)"}]})J");
  run.note(
      R"({"note": "walk", "period": 12, "alive": 90e6, "reached": 80e6, "holders": [{"bytes": 80e6, "samples": 40, "items": 40, "how": "reached", "type": "Space",
    "chain": ["local space of fill"], "puts": [{"file": "a.py", "line": 29, "by": "counted"}], "births": [5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5]}]})");
  check(run, "C14", 26);
}

TEST_CASE("P1, C14: a walk tells who holds it, with the chain to its root") {
  const auto judged = [](const std::string& births, const std::string& more = "") {
    Run run = leaking();
    run.note(R"({"note": "start"})").site({user("p.py", 44, "step"), user("p.py", 60, "main")}, 10, Life::kLeak);
    run.note(
        R"({"note": "walk", "period": 12, "alive": 90e6, "reached": 80e6, "holders": [{"bytes": 80e6, "samples": 40, "items": 40, "how": "reached", "type": "list",
      "chain": ["attribute handlers of Logger", "global log of p"], "born": [{"file": "p.py", "line": 44, "bytes": 80e6}], "puts": [{"file": "p.py", "line": 31, "by": "counted"}], "births": )" +
        births + more + "}]}");
    return run.judged();
  };
  const auto walked = [&](const std::string& births) { return judged(births).findings.front(); };
  const std::string all = "[5,5,5,5,5,5,5,5,5,5,5,5,5,5,5,5]";
  const Finding held = walked(all);
  CHECK(held.cause == "C14");  // a list, and the line that puts things into it is known
  CHECK(held.holder == "attribute handlers of Logger");
  CHECK(held.chain.size() == 2);
  CHECK(held.blame->line == 31);
  CHECK(held.title.find("attribute handlers of Logger (list) holds it") != std::string::npos);
  CHECK(judged(all, R"(, "bounded": 64)").kind != Kind::kLeak);              // it has a limit of its own
  for (const Finding& other : {walked("[0,0,0,0,0,0,0,0,0,0,0,0,0,0,5,5]"),  // only what is new: a window
                               walked("[5,5,5,5,5,5,5,5,0,0,0,0,0,0,0,0]"),  // filled once, and no more
                               walked("[5,0,0,0,0,0,0,0,0,0,0,0,0,0,0,5]"),  // the first one and the last one
                               walked(R"(["x", {}, null])")}) {
    CHECK(other.holder.empty());
    CHECK(other.blame->line == 44);
  }
}

TEST_CASE("N1: a line of Python calls native code that keeps what it allocates") {
  Run run = leaking();
  run.framework("numpy");
  run.site({native("/usr/lib/libffi.so.8", "+0x6f7a"), user("n.py", 37, "observe"), user("n.py", 58, "main")}, 20,
           Life::kLeak, 8000);
  check(run, "N1", 37);
  Run array = leaking();
  array.framework("numpy");
  array.site({native("", ""), user("n.py", 37, "observe"), user("n.py", 58, "main")}, 20, Life::kLeak, 8000);
  CHECK(first_cause(array.judged()) == "P1");
  // By the clock: how often it happened is known from the blocks.
  Run silent("timer", 1);
  silent.grow(50, 8, 30).live_from(40, 8).framework("numpy");
  silent.site({native("/usr/lib/libffi.so.8", "+0x6f7a"), user("n.py", 37, "observe")}, 8, Life::kLeak, 2048);
  const Finding called = silent.judged().findings.front();
  CHECK(called.unit == Unit::kCall);
  CHECK(called.bytes_per_unit == doctest::Approx(2048 * 1024).epsilon(0.05));
}

TEST_CASE("K2: something fills while training begins and stays; what was there before the first step is data") {
  Run run = flat().baseline(400);
  run.site({user("m.py", 12, "decode"), user("m.py", 50, "main")}, 150, Life::kOnce, 100);
  Mark begin;
  begin.t = 15;
  begin.kind = "step";
  begin.rss = mb(420);
  begin.sites.push_back({0, mb(1), 10, {mb(1)}});
  run.evidence.marks.insert(run.evidence.marks.begin(), begin);
  check(run, "K2", 12, Kind::kCache);
  Run import = run;
  import.evidence.sites.back().frames.insert(import.evidence.sites.back().frames.begin(),
                                             library("<frozen importlib._bootstrap>", 241, "_load"));
  CHECK(first_cause(import.judged()) != "K2");
  Run slots = run;
  for (Mark& m : slots.evidence.marks)
    for (SiteState& state : m.sites) state.blocks = 2;  // two arrays: the slots of an optimiser
  CHECK(first_cause(slots.judged()) != "K2");
  run.evidence.marks.front().sites.front().bytes = mb(150);
  CHECK(first_cause(run.judged()) != "K2");
}

TEST_CASE("K2: work memory of a library is no cache, whatever small blocks lie beside it") {
  Run run = flat().baseline(400);
  run.site({user("m.py", 12, "step")}, 32, Life::kOnce, 32 << 10)
      .site({native("lib", "f"), user("m.py", 12, "step")}, 2, Life::kOnce, 4);
  CHECK(first_cause(run.judged()) != "K2");
}

TEST_CASE(
    "K1: what was filled before the program's rounds began is data; what was full before anybody looked is a cache") {
  const auto words = [](const char* kind) {
    Run run = flat().baseline(300);
    run.note(std::string(R"({"note": "holders", "kind": ")") + kind +
             R"(", "containers": [{"type": "dict", "holder": "words", "length": 800000, "per_period": 400000,
      "bytes_per_period": 4e7, "still": true, "file": "v.py", "line": 13}]})");
    run.note(R"({"note": "holders", "kind": "epoch", "containers": []})");
    return run;
  };
  CHECK(first_cause(words("epoch").judged()) == "K1");
  CHECK(words("timer").judged().kind == Kind::kReserve);
  Run full = flat().baseline(590);
  full.note(
      R"({"note": "holders", "kind": "epoch", "containers": [{"type": "lru_cache", "holder": "features", "length": 72, "per_period": 1, "bytes_per_period": 1.5e6,
    "bounded": 72, "full": true, "still": false, "file": "v.py", "line": 12}]})");
  check(full, "K1", 12, Kind::kCache);
  Run leaks = leaking();  // and it is no reason to doubt a leak
  leaks.evidence.notes = full.evidence.notes;
  CHECK(leaks.judged().kind == Kind::kLeak);
}

TEST_CASE("K3: a ring whose blocks are always new ones, in a program that is looked at by the clock") {
  Run ring("timer", 0.25);
  ring.rss({40, 110, 175, 245, 280, 280, 280, 280, 280, 280, 280, 280});
  ring.site({user("r.py", 14, "features")}, 1, Life::kOnce);
  double bytes = 0;
  for (Mark& m : ring.evidence.marks) {
    bytes = std::min(240.0, bytes + 60);
    m.sites[0].bytes = mb(bytes), m.sites[0].blocks = bytes / 4;
    m.sites[0].age = {};
    m.sites[0].age[6] = m.sites[0].age[7] = mb(bytes / 2);
  }
  check(ring, "K3", 14, Kind::kCache);
  Run rounds = ring;  // what is made anew in each round comes and goes
  for (size_t i = 0; i < rounds.evidence.marks.size(); i += 3) rounds.evidence.marks[i].sites[0].bytes = mb(10);
  CHECK(first_cause(rounds.judged()) != "K3");
}

TEST_CASE("K3: a window over the last rounds that was full before the second of them") {
  const auto window = [](double older) {
    Run run("line", 0.3);
    run.baseline(48).rss({96, 113, 113, 113, 115, 115, 115, 115, 113, 115, 115, 115, 115});
    run.site({user("w.py", 14, "load_item")}, 69, Life::kOnce, 2240);
    for (Mark& m : run.evidence.marks) m.sites[0].age = Ages{Bytes{}, {}, {}, {}, {}, {}, mb(older), mb(69 - older)};
    return run;
  };
  Run moves = window(29), anew = window(0);
  check(moves, "K3", 14, Kind::kCache);
  CHECK(first_cause(anew.judged()) != "K3");  // born in the last round: made anew in each
  Run best = window(0);                       // the best so far and the last one
  for (Mark& m : best.evidence.marks) m.sites[0].age = Ages{mb(30), {}, {}, {}, {}, {}, {}, mb(39)};
  CHECK(first_cause(best.judged()) != "K3");
}

TEST_CASE("what the program's own lines took before the first mark is a reserve") {
  Run slots = flat();
  slots.site({user("s.py", 18, "Adam.apply"), user("s.py", 40, "main")}, 300, Life::kOnce, 48 << 10, 300);
  const Verdict v = slots.judged();
  REQUIRE(v.kind == Kind::kReserve);
  REQUIRE(v.findings.front().blame);
  CHECK(v.findings.front().blame->line == 18);
  CHECK(flat().judged().kind == Kind::kFlat);
}

TEST_CASE("the agent's own words: chains of tensors, loops, registries, a container that only a library holds") {
  Run chain = leaking().framework("torch");
  chain.holder("chain of tensors", "Tensor with grad_fn", 10, "history", "v.py", 55, "main", "history += val_loss");
  check(chain, "C36", 55);
  Run loop = leaking(40, 12).framework("tensorflow").unit(Unit::kModel, 1);
  loop.note(
      R"x({"note": "lines", "calls": [{"what": "model", "count": 12, "file": "k.py", "line": 9, "function": "build_model", "text": "model = Sequential([",
                "loop": {"file": "k.py", "line": 36, "function": "main", "text": "model = build_model()"}}]})x");
  check(loop, "C5", 36);
  Run registry = leaking().framework("tensorflow").counter("tf.traces", 12, 12).traced("w.py", 49, "literal", 288);
  registry.holder("TensorFlow gradient registry", "", 0, "TensorFlow gradient registry", "w.py", 49, "main",
                  "total += float(train_step(x, y, step))");
  check(registry, "C1", 49);
  Run hook = leaking(25, 10).framework("torch");
  hook.holder("list", "Tensor", 25, "ActivationRecorder.maps", "f.py", 28, "ActivationRecorder.record",
              "self.maps.append(output.detach())", nullptr, 12);
  check(hook, "C14", 28);  // names say nothing
  Run meter = leaking().framework("torch").holder("list", "Tensor", 10, "local preds of validate", "f.py", 40,
                                                  "validate", "preds.append(output.detach())");
  check(meter, "C14", 40);
}

TEST_CASE("two calls of one line are one line, and data of predict is not copied") {
  Run run = leaking().framework("jax").counter("jax.compiles", 20, 4);
  run.note(
      R"({"note": "lines", "calls": [{"what": "jax_compile", "file": "j.py", "line": 3, "count": 30, "text": "a"}, {"what": "jax_compile", "file": "j.py", "line": 9, "count": 25, "text": "b"},
                {"what": "jax_compile", "file": "j.py", "line": 9, "count": 25, "text": "b"}]})");
  check(run, "C42", 9);
  Run predict =
      flat()
          .baseline(400)
          .framework("keras", "tensorflow")
          .note(
              R"({"note": "data", "what": "predict", "file": "t.py", "line": 16, "arrays": [{"dtype": "float64", "bytes": 400000000, "type": "ndarray"}]})");
  CHECK(first_cause(predict.judged()) != "C12");
}
