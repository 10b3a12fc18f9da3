#include <doctest/doctest.h>
#include <zlib.h>

#include "report/accounts.h"
#include "report/elsewhere.h"
#include "report/made_up.h"
#include "report/page.h"
#include "report/terminal.h"
#include "report/text.h"

using namespace millpond;
using namespace millpond::report;
using verdict::Kind;

namespace {

RunContents watched(int64_t kept = 8) {
  RunContents run;
  run.name = "run.pond";
  run.evidence = made_up(kept);
  run.verdict = verdict_of(Kind::kLeak, double(kept) * kMiB);
  run.meta = {{"started", "2026-01-02T03:04:05Z"}, {"status", "ended"}, {"seconds", "11"}};
  for (const verdict::OsPoint& p : run.evidence.os)
    run.os.push_back({.t = p.t,
                      .phase = {},
                      .rss = p.rss,
                      .peak_rss = {},
                      .pss = {},
                      .private_dirty = {},
                      .swap = {},
                      .heap_in_use = {},
                      .heap_free = {},
                      .explained = {}});
  return run;
}

runfile::OsRow point(double t, int64_t rss) {
  return {.t = t,
          .phase = {},
          .rss = Bytes{rss},
          .peak_rss = {},
          .pss = {},
          .private_dirty = {},
          .swap = {},
          .heap_in_use = {},
          .heap_free = {},
          .explained = {}};
}

RunContents engine() {
  RunContents run;
  run.name = "engine.pond", run.engine = true;
  run.meta = {{"model", "net"}, {"planned_bytes", "100"}};
  for (int i = 0; i < 4; ++i) run.os.push_back(point(i, 1000 + i));
  run.series = {{0, {}, "weights/a/kernel", runfile::SeriesKind::kCurrent, Bytes{60}},
                {0, {}, "weights/b/kernel", runfile::SeriesKind::kCurrent, Bytes{30}},
                {0, {}, "weights/b/kernel", runfile::SeriesKind::kPeak, Bytes{99}},
                {0, {}, "process/free in the allocator", runfile::SeriesKind::kCurrent, Bytes{5}},
                {2, {}, "weights/b/kernel", runfile::SeriesKind::kCurrent, Bytes{40}}};
  PlannedProgram p;
  p.program = {{1}, "train", 3, Bytes{50}, Bytes{50}, 0.001, "greedy"};
  p.buffers = {{"activations/a#0", "activations/a", "a", Bytes{0}, Bytes{30}, 0, 1},
               {"gradients/a#1", "gradients/a", "a", Bytes{30}, Bytes{20}, 1, 2}};
  p.calls = {{"matmul", "a", "a", Bytes{}}, {"relu", "a", "a", Bytes{}}, {"dense_backward", "a", "a", Bytes{4}}};
  run.programs.push_back(p);
  run.verdict.sentence = "Memory is flat.";
  return run;
}

/// Sums differences up; null is -1.
std::vector<int64_t> column(const PageJson& j) {
  std::vector<int64_t> out;
  int64_t last = 0;
  for (const PageJson& d : j) out.push_back(d.is_null() ? -1 : last += d.get<int64_t>());
  return out;
}

std::string inflated(const std::string& packed) {
  std::string out(64 << 20, '\0');
  uLongf size = uLongf(out.size());
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(packed.data()),
                     uLong(packed.size())) == Z_OK);
  out.resize(size);
  return out;
}

}  // namespace

TEST_CASE("page: the document holds what the file says, byte for byte") {
  const RunContents run = watched();
  const PageJson j = page_run(run, {});
  CHECK(j["source"] == "watch");
  CHECK(j["verdict"] == "leak");
  CHECK(column(j["resident"]["t"]) ==
        std::vector<int64_t>{1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000});
  for (size_t i = 0; i < 10; ++i) CHECK(column(j["resident"]["rss"])[i] == run.os[i].rss->value);
  CHECK(j["findings"][0]["blame"]["line"] == 12);
  const PageJson& sites = j["sites"];
  CHECK(column(sites["snapshots"]["sum"]).back() == (80 + 100 + 30) * kMiB);
  int64_t sum = 0;
  for (const PageJson& c : sites["bytes"]) sum += column(c).back();
  CHECK(sum == (80 + 100 + 30) * kMiB);
  CHECK(sites["stacks"].size() == 3);
}
TEST_CASE("page: of a finding the words for its rounds and the way to its holder are those of the answer") {
  RunContents run = watched();
  verdict::Finding& f = run.verdict.findings[0];
  f.unit = verdict::Unit::kCall, f.each = "each time line 12 runs",
  f.chain = {"attribute kept of Keeper", "local keeper of main"};
  PageJson shown = page_run(run, {})["findings"][0];
  CHECK(shown["each"] == "each time line 12 runs");
  CHECK(shown["seen_over"] == "8 times");
  CHECK(shown["chain"] == PageJson(f.chain));
  f.unit = verdict::Unit::kLine, f.each.clear();
  shown = page_run(run, {})["findings"][0];
  CHECK(shown["each"] == "every printed line");
  CHECK(shown["seen_over"] == "8 printed lines");
}
TEST_CASE("page: what a program holds in the end is what it held after its last round, not when it was taken down") {
  RunContents run = watched();
  run.evidence.os.push_back({10.9, Bytes{90 * kMiB}, {}, {}, {}, 1});
  PageJson facts = page_run(run, {})["facts"];
  CHECK(facts["end"] == 90 * kMiB);
  CHECK(facts["last_round"]["name"] == "epoch");
  CHECK(facts["last_round"]["rss"] == 280 * kMiB);
  for (verdict::Mark& m : run.evidence.marks) m.kind = "timer";
  CHECK_FALSE(page_run(run, {})["facts"].contains("last_round"));
}
TEST_CASE("page: GPUs are in it, and what the driver did not tell is null") {
  RunContents run = watched();
  CHECK(page_run(run, {})["gpu"].empty());
  run.evidence.gpus = {{0, "NVIDIA H200", Bytes{1024 * kMiB}, Bytes{7}, {}, {{1, Bytes{5}, {}}, {2, Bytes{7}, {}}}}};
  const PageJson gpu = page_run(run, {})["gpu"][0];
  CHECK(gpu["name"] == "NVIDIA H200");
  CHECK(column(gpu["used"]) == std::vector<int64_t>{5, 7});
  CHECK(gpu["by_program_peak"].is_null());
  CHECK(gpu["by_program"][1].is_null());
}

TEST_CASE("page: a finding is told with its process and memory, and its cohorts, rounds and accounts are of that one") {
  RunContents run = watched(0);
  run.evidence.process = 1;
  verdict::Evidence child = made_up(8);
  child.process = 2;
  for (verdict::Mark& m : child.marks) m.sites[0].age[0] = Bytes{5 * kMiB};
  run.children.push_back(child);
  for (int64_t row = 1; row <= 3; ++row)
    run.evidence.processes.push_back({.row = row,
                                      .pid = 70 + row,
                                      .parent = 1,
                                      .name = "python3",
                                      .command = "",
                                      .start = 0,
                                      .end = {},
                                      .seen = "inside",
                                      .spaces = {}});
  verdict::Finding& f = run.verdict.findings.emplace_back(verdict_of(Kind::kLeak, 8 * kMiB).findings[0]);
  f.process = 2;
  PageJson j = page_run(run, {});
  CHECK(j["findings"].back()["process"] == 2);
  CHECK(j["findings"].back()["space"] == "host");
  CHECK(j["findings"].back()["cohorts"]["bytes"][0] == 5 * kMiB);
  const PageJson& story = j["processes"][1]["story"];
  CHECK(j["processes"][1]["process"] == 2);
  CHECK(column(story["periods"]["rss"]).back() == 280 * kMiB);
  CHECK(column(j["periods"]["rss"]).back() == 200 * kMiB);
  CHECK(column(story["accounts"]["resident"]).back() == 280 * kMiB);
  CHECK(j["processes"][0]["story"].is_null());
  CHECK(j["processes"][2]["story"].is_null());
  f.process = 3;  // it was not looked into
  CHECK(page_run(run, {})["findings"].back()["cohorts"].is_null());
  f.process = 2, f.space = "gpu:0";
  CHECK(page_run(run, {})["findings"].back()["cohorts"].is_null());
}
TEST_CASE("page: what pools had of GPUs is in it, with the rounds that were compared") {
  RunContents run = watched();
  CHECK(page_run(run, {})["pools"].empty());
  verdict::Pool pool{"gpu:0", "torch", {}};
  for (const verdict::Mark& m : run.evidence.marks)
    pool.points.push_back({m.t + 0.01, Bytes{m.index * kMiB}, Bytes{20 * kMiB}, Bytes{12 * kMiB}, {}, {}, {}, 0, 0});
  run.evidence.pools = {pool};
  const PageJson shown = page_run(run, {})["pools"][0];
  CHECK(shown["space"] == "gpu:0");
  CHECK(shown["peak"] == 12 * kMiB);
  CHECK(column(shown["in_use"]).back() == 10 * kMiB);
  CHECK(column(shown["reserved"]).front() == 20 * kMiB);
  CHECK(column(shown["periods"]["rss"]) == column(shown["in_use"]));
}
TEST_CASE("page: what was sampled comes with what 95 % lie within") {
  RunContents run = watched();
  const PageJson sites = page_run(run, {})["sites"];
  // of blocks as large as the sampling interval every one is taken, of those a thousandth as large few
  CHECK(sites["doubt"].size() == 3);
  const verdict::Site& small = run.evidence.sites[2];
  const double error = sampling_error(small.total, small.total_blocks, run.evidence.sampling_interval);
  bool found = false;
  for (const PageJson& doubt : sites["doubt"])
    found = found || (error > 0 && std::abs(doubt.get<double>() - error * error / double(small.total.value)) < 1);
  CHECK(found);
}

TEST_CASE("page: accounts of a watched run add up to what is resident") {
  const AccountTable t = accounts_over_time(watched());
  REQUIRE(t.t.size() == 10);
  for (size_t i = 0; i < t.t.size(); ++i) {
    int64_t sum = 0;
    for (const Account& a : t.accounts) sum += a.kind == AccountKind::kReserved ? 0 : a.bytes[i];
    CHECK(sum == *t.resident[i]);
  }
}
TEST_CASE("page: what is mapped and not touched is reserved, not resident") {
  RunContents run = watched();
  for (verdict::Mark& m : run.evidence.marks) m.heap_mapped = Bytes{1000 * kMiB};
  const AccountTable t = accounts_over_time(run);
  const auto reserved = std::ranges::find(t.accounts, AccountKind::kReserved, &Account::kind);
  REQUIRE(reserved != t.accounts.end());
  CHECK(reserved->bytes[0] == (150 + 8 + 1000 + 10 - 208) * kMiB);
}
TEST_CASE("page: what is mapped and not touched is taken from large blocks first, so that bands are resident bytes") {
  RunContents run = watched();
  for (verdict::Mark& m : run.evidence.marks) m.heap_mapped = Bytes{1000 * kMiB};
  const AccountTable t = accounts_over_time(run);
  for (size_t i = 0; i < t.t.size(); ++i) {
    int64_t sum = 0;
    for (const Account& a : t.accounts) sum += a.kind == AccountKind::kReserved ? 0 : a.bytes[i];
    CHECK(sum == *t.resident[i]);
  }
  const auto use = std::ranges::find(t.accounts, "malloc, in use", &Account::name);
  REQUIRE(use != t.accounts.end());
  CHECK(use->bytes[0] == run.evidence.marks[0].heap_in_use->value);
}
TEST_CASE("page: a program that marks nothing has accounts by time, of what was sampled") {
  RunContents run = watched();
  for (verdict::Mark& m : run.evidence.marks)
    m.kind = "timer", m.heap_in_use = m.heap_free = m.heap_mapped = m.python_arenas = std::nullopt;
  const AccountTable t = accounts_over_time(run);
  REQUIRE(t.t.size() == 10);
  int64_t sum = 0;
  for (const Account& a : t.accounts) sum += a.kind == AccountKind::kReserved ? 0 : a.bytes.back();
  CHECK(sum == *t.resident.back());
  CHECK(std::ranges::find(t.accounts, "your code, sampled blocks", &Account::name) != t.accounts.end());
}
TEST_CASE("page: what explains resident memory is told as it was measured, not cut to what is resident") {
  RunContents run = watched();
  run.meta["file_rss"] = std::to_string(500 * kMiB);
  for (verdict::Mark& m : run.evidence.marks) m.heap_mapped = Bytes{1000 * kMiB};
  const PageJson x = page_run(run, {})["measured"]["explained"];
  const auto part = [&](const char* key) { return x[key].get<int64_t>(); };
  CHECK(part("files") == 500 * kMiB);
  CHECK(part("in_use") + part("free") + part("files") > part("resident"));
  CHECK(x["explained"].is_null());
}
TEST_CASE("page: processes come with the main one first, host and shared memory of each together") {
  RunContents run = watched();
  run.evidence.process = 2;
  const auto point = [](double t, int64_t bytes) { return verdict::SeenProcess::Point{t, Bytes{bytes}, {}, {}}; };
  run.evidence.processes = {{1, 11, 1, "sh", "sh -c x", 0, 1.0, "outside", {{"host", {point(0.5, 90)}}}},
                            {2,
                             12,
                             11,
                             "python3",
                             "",
                             0,
                             {},
                             "inside",
                             {{"host", {point(1, 10), point(2, 30)}}, {"shared", {point(1, 5), point(2, 5)}}}}};
  const PageJson p = page_run(run, {})["processes"];
  REQUIRE(p.size() == 2);
  CHECK(p[0]["pid"] == 12);
  CHECK(p[0]["main"] == true);
  CHECK(column(p[0]["resident"]) == std::vector<int64_t>{15, 35});
  CHECK(p[0]["peak"] == 35);
  CHECK(p[0]["end"].is_null());
  CHECK(p[1]["end"] == 1000);
}
TEST_CASE("page: threads are named by what they run, blocks by size have no gap, and lines of the user's add up") {
  RunContents run = watched();
  run.evidence.process = 1;
  run.evidence.processes = {{1, 70, 1, "python3", "", 0, {}, "inside", {}}};
  for (size_t i = 0; i < run.evidence.sites.size(); ++i) {
    verdict::Site& site = run.evidence.sites[i];
    site.row = int64_t(i + 1), site.total = Bytes{200 * kMiB}, site.freed = Bytes{100 * kMiB};
    run.details[site.row] = {{site.row}, {i == 0 ? 2 : 1}, Bytes{kMiB}};
  }
  run.threads = {{{1}, {1}, 70, "python3"}, {{2}, {1}, 71, "python3"}};
  run.sizes = {{{1}, Bytes{0}, 2, Bytes{40}, Bytes{10}, Bytes{5}},
               {{1}, Bytes{128}, 1, Bytes{200}, Bytes{0}, Bytes{0}},
               {{2}, Bytes{128}, 1, Bytes{150}, Bytes{150}, Bytes{150}}};
  const PageJson j = page_run(run, {});
  REQUIRE(j["threads"].size() == 2);
  CHECK(j["threads"][0] == "main thread");
  CHECK(j["threads"][1].get<std::string>().ends_with(", thread 2"));
  CHECK(std::ranges::count(j["sites"]["thread"], PageJson(1)) == 1);
  CHECK(j["sizes"]["from"] == PageJson({0, 32, 64, 128, 256}));
  CHECK(j["sizes"]["bytes"] == PageJson({40, 0, 0, 350, 0}));
  const std::vector<int64_t> allocated = column(j["lines"]["allocated"]), freed = column(j["lines"]["freed"]),
                             kept = column(j["lines"]["kept"]);
  for (size_t i = 0; i < allocated.size(); ++i) CHECK(allocated[i] == freed[i] + kept[i]);
}
TEST_CASE("page: a run is called by its script, not by the path of an interpreter") {
  const auto title = [](const char* command) {
    RunContents run = watched();
    run.evidence.command = command;
    return run.title();
  };
  CHECK(title("/usr/bin/python3 -u -X dev /home/ann/train.py --epochs 3") == "train.py --epochs 3");
  CHECK(title("python3.12 -m pytest -q") == "pytest -q");
  CHECK(title("python3 -c print(1)") == "python -c print(1)");
  CHECK(title("/opt/bin/trainer --fast") == "trainer --fast");
  CHECK(title("python3") == "python3");
  CHECK(page_html(page_document(watched(), {}), "").find("<title>train.py") != std::string::npos);
}
TEST_CASE("page: accounts of the engine hold their value until the next row") {
  const AccountTable t = accounts_over_time(engine());
  REQUIRE(t.accounts.size() == 3);
  CHECK(t.accounts[0].name == "weights/a/kernel");
  CHECK(t.accounts[1].bytes == std::vector<int64_t>{30, 30, 40, 40});
  CHECK(t.accounts[2].kind == AccountKind::kRetained);
  const AccountTable g = grouped(t, 8);
  CHECK(g.accounts[0].name == "weights");
  CHECK(g.accounts[0].bytes == std::vector<int64_t>{90, 90, 100, 100});
}
TEST_CASE("page: of too many accounts the small ones go together, and their group stays exact") {
  RunContents run = engine();
  run.series.clear();
  int64_t sum = 0;
  for (int i = 0; i < 500; ++i)
    run.series.push_back({0, {}, "weights/" + std::to_string(i), runfile::SeriesKind::kCurrent, Bytes{i + 1}}),
        sum += i + 1;
  const AccountTable t = accounts_over_time(run, {.moments = 10, .accounts = 20});
  CHECK(t.accounts.size() == 21);
  CHECK(grouped(t, 8).accounts[0].bytes[0] == sum);
}
TEST_CASE("page: of too many points the least and the most of each stretch stay") {
  RunContents run = watched();
  run.os.clear();
  for (int i = 0; i < 100'000; ++i) run.os.push_back(point(i * 0.01, 1'000'000 + (i == 54321 ? 999'999 : i % 100)));
  const PageJson j = page_run(run, {});
  const std::vector<int64_t> rss = column(j["resident"]["rss"]);
  CHECK(rss.size() <= 6000);
  CHECK(*std::ranges::max_element(rss) == 1'999'999);
}
TEST_CASE("page: snapshots and stacks are bounded, and what is left out is counted") {
  RunContents run = watched();
  const verdict::Mark one = run.evidence.marks[0];
  run.evidence.marks.clear();
  run.evidence.sites.clear();
  for (int s = 0; s < 2000; ++s) run.evidence.sites.push_back({{user("f", s + 1)}, Bytes{}, 0, Bytes{}});
  for (int i = 0; i < 400; ++i) {
    verdict::Mark m = one;
    m.t = i, m.index = i + 1;
    m.sites.clear();
    for (int s = 0; s < 2000; ++s) m.sites.push_back({s, Bytes{s + 1}, 1, {}});
    run.evidence.marks.push_back(m);
  }
  const PageJson j = page_run(run, {});
  CHECK(j["sites"]["stacks"].size() == 1500);
  const std::vector<int64_t> sum = column(j["sites"]["snapshots"]["sum"]),
                             other = column(j["sites"]["snapshots"]["other"]);
  CHECK(sum.size() <= 161);
  CHECK(sum[0] == 2000 * 2001 / 2);
  CHECK(other[0] == 500 * 501 / 2);
  CHECK(packed(page_document(run, {})).size() < 1'000'000);
}
TEST_CASE("page: the lines around the blamed one are there, unless the file was edited") {
  const RunContents run = watched();
  const SourceLine same = [](const std::string&, int n) {
    return n == 12 ? std::string("    self.kept.append(x)") : n <= 14 ? "line " + std::to_string(n) : "";
  };
  const PageJson there = page_run(run, same)["findings"][0]["blame"]["source"];
  CHECK(there["from"] == 8);
  CHECK(there["lines"].size() == 7);
  CHECK(there["lines"][4] == "    self.kept.append(x)");
  const PageJson edited = page_run(
      run, [](const std::string&, int) { return std::string("something else"); })["findings"][0]["blame"]["source"];
  CHECK(edited["changed"] == true);
  CHECK(!edited.contains("lines"));
}
TEST_CASE("page: the plan is in it, every buffer by name") {
  const PageJson j = page_run(engine(), {});
  CHECK(j["source"] == "engine");
  CHECK(j["facts"]["planned"] == 100);
  const PageJson& p = j["programs"][0];
  CHECK(column(p["buffers"]["offset"]) == std::vector<int64_t>{0, 30});
  CHECK(j["strings"][size_t(column(p["buffers"]["name"])[1])] == "gradients/a#1");
}
TEST_CASE("page: whatever the names are, the file is one page with one document, and nothing of them is markup") {
  RunContents run = watched();
  const std::string bad = "</script><script>alert(1)</script>\xff\xfe<!--millpond:data-->millpond:title";
  run.evidence.command = run.verdict.sentence = run.verdict.findings[0].title = bad;
  run.evidence.sites[0].frames[0].function = bad + std::string(100'000, 'x');
  const PageJson document = page_document(run, {});
  const std::string html = page_html(document, "as text: " + bad);
  CHECK(html.find("<script>alert(1)") == html.npos);
  CHECK(html.find("&lt;script&gt;alert(1)") != html.npos);
  CHECK(html.size() < page_template().size() + 60'000);
  const std::string text = inflated(packed(document));
  const PageJson back = PageJson::parse(text);  // valid UTF-8, or this throws
  CHECK(back["runs"][0]["sentence"].get<std::string>().starts_with("</script>"));
}
TEST_CASE("page: two runs come with the sentence that says what changed") {
  const PageJson j = page_document(watched(8), {}, watched(0), {});
  CHECK(j["runs"].size() == 2);
  CHECK(j["compare"]["places"].size() > 0);
  CHECK(j["compare"]["sentence"].get<std::string>().size() > 10);
}
TEST_CASE("page: a run without anything in it is a page too") {
  RunContents run;
  run.name = "empty.pond";
  const PageJson j = page_document(run, {});
  CHECK(j["runs"][0]["sites"].is_null());
  CHECK(j["runs"][0]["resident"]["t"].empty());
  CHECK(page_html(j, "").size() > 100);
}
TEST_CASE("page: the built page has the places that the program fills") {
  for (const char* mark : {"<!--millpond:text-->", "<!--millpond:data-->", "millpond:title"})
    CHECK_MESSAGE(page_template().find(mark) != std::string_view::npos, mark);
  CHECK(page_template().size() < 500'000);
}

TEST_CASE("csv: one line for each account and moment, and a name cannot be a formula") {
  RunContents run = engine();
  run.series[0].account = "=cmd|' /C calc'!A0,\"x\"";
  const std::string text = csv(run);
  CHECK(text.starts_with("seconds,mark,index,account,kind,bytes\r\n0.000,,,resident,resident,1000\r\n"));
  CHECK(text.find("2.000,,,weights/b/kernel,use,40\r\n") != text.npos);
  CHECK(text.find(",\"'=cmd|' /C calc'!A0,\"\"x\"\"\",use,60\r\n") != text.npos);
}
TEST_CASE("started: seconds since 1970, or 0 where the file says nonsense") {
  RunContents run = watched();
  CHECK(started(run) == 1767323045);
  run.meta["started"] = "yesterday";
  CHECK(started(run) == 0);
}
TEST_CASE("plan picture: buffers are drawn where they lie") {
  const std::string a = plan_picture(engine().programs[0], 60, 40).png(),
                    b = plan_picture(PlannedProgram{}, 60, 40).png();
  CHECK(a != b);
}
TEST_CASE("plan picture: both axes have numbers, and a colour is named by its group") {
  // What differs from a picture without buffers lies in the chart and in the row of names above it: the room of the
  // labels is the axes' alone.
  PlannedProgram none = engine().programs[0];
  none.buffers.clear();
  const events::Picture with = plan_picture(engine().programs[0], 960, 480), without = plan_picture(none, 960, 480);
  const auto ink = [](const events::Picture& p, int x, int y, int to_x, int to_y) {
    int dark = 0;
    for (int row = y; row < to_y; ++row)
      for (int column = x; column < to_x; ++column) dark += p.at(column, row).red < 0x40;
    return dark;
  };
  CHECK(ink(with, 0, 28, 104, 440) > 100);    // bytes, beside the chart
  CHECK(ink(with, 112, 446, 960, 480) > 40);  // calls, below it
  CHECK(ink(with, 0, 0, 100, 24) > 20);       // what the first axis counts
  CHECK(ink(with, 0, 460, 100, 480) > 20);    // and the second
  CHECK(ink(with, 130, 0, 960, 24) > 20);     // names of colours
  CHECK(ink(without, 130, 0, 960, 24) == 0);
}

TEST_CASE("terminal: accounts and lines with what they did over time, plain in a pipe") {
  const std::string text = terminal_text(watched(), {.verbose = true});
  CHECK(text.starts_with("millpond: LEAK\n"));
  CHECK(terminal_text(watched(), {}) == doctor_text(watched().evidence, watched().verdict, watched().meta, {}));
  CHECK(text.find("  accounts  malloc, in use") != text.npos);
  CHECK(text.find("  lines     train.py:5 make_model") != text.npos);
  CHECK(text.find("train.py:12") != text.npos);
  CHECK(text.find("▁") != text.npos);
  CHECK(text.find('\033') == text.npos);
  CHECK(terminal_text(watched(), {true, 100, true}).find("\033[36m") != std::string::npos);
}
TEST_CASE("terminal: the plan of an engine's run, with its peak") {
  const std::string text = terminal_text(engine(), {});
  CHECK(text.find("  plan      train, 3 calls  ") != text.npos);
  CHECK(text.find("arena 50 B, lower bound 50 B; peak at call 2, relu of a\n") != text.npos);
}
