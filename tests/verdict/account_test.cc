#include "verdict/account.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "verdict/case.h"
#include "verdict/resample.h"
#include "verdict/run.h"

namespace millpond::verdict {
namespace {

double sum(const Account& a) {
  double all = 0;
  for (const AccountPart& p : a.parts) all += p.bytes;
  return all;
}
const AccountPart* part(const Account& a, std::string_view name) {
  for (const AccountPart& p : a.parts)
    if (p.name == name) return &p;
  return nullptr;
}
const Account* space(const std::vector<Account>& all, int64_t process, std::string_view name) {
  for (const Account& a : all)
    if (!a.tree && a.process == process && a.space == name) return &a;
  return nullptr;
}
double of(const Account& a, AccountPart::Kind kind) { return a.of(kind).bytes; }

/// A process that the system looked at whenever a mark was set: what it held then, in MB, after `i` rounds.
struct Seen {
  double resident = 0, anonymous = 0, shared = 0;
  std::optional<double> private_dirty{}, pss{}, stack{}, file{};
};
template <class Level>
SeenProcess seen(int64_t row, const Run& run, Level level, const char* how = "inside") {
  SeenProcess p{.row = row,
                .pid = 100 + row,
                .parent = 0,
                .name = "python3",
                .command = {},
                .start = 0,
                .end = {},
                .seen = how,
                .spaces = {},
                .pages = {},
                .mappings = {}};
  for (size_t i = 0; i < run.evidence.marks.size(); ++i) {
    const Seen now = level(double(i));
    const double t = run.evidence.marks[i].t;
    const auto maybe = [](const std::optional<double>& v) { return v ? std::optional(mb(*v)) : std::nullopt; };
    p.pages.push_back({t, mb(now.resident), mb(now.anonymous), maybe(now.private_dirty), maybe(now.pss)});
    p.spaces["host"].push_back({t, mb(now.resident - now.shared), {}, {}});
    p.spaces["shared"].push_back({t, mb(now.shared), {}, {}});
    if (now.stack) p.mappings["stack"].push_back({t, {}, mb(*now.stack), {}, {}});
    if (now.file) p.mappings["file"].push_back({t, {}, mb(*now.file), {}, {}});
  }
  return p;
}

Run growing() {
  Run run;
  run.grow(500, 10, 40).live_from(300, 9);
  run.site({Frame{"p.py", "step", 44, false, true}}, 8, Life::kLeak);
  return run;
}
const char* const kWalk =
    R"({"note": "walk", "period": 30, "alive": 200e6, "reached": 150e6, "native": 20e6, "garbage": 10e6, "holders": [
  {"bytes": 120e6, "samples": 40, "how": "reached", "type": "list", "chain": ["attribute seen of Trainer", "local t of main"], "born": [{"file": "p.py", "line": 31, "bytes": 120e6}], "births": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]},
  {"bytes": 20e6, "samples": 9, "how": "native", "type": "tuple", "chain": [], "births": [1,1]}]})";

}  // namespace

TEST_CASE("account: the parts add up to the growth of resident memory, and a walk names the holders") {
  Run run = growing();
  run.note(kWalk);
  const std::optional<Account> a = account(Case(run.evidence));
  REQUIRE(a);
  CHECK(sum(*a) == doctest::Approx(a->growth).epsilon(1e-9));
  CHECK(a->growth == doctest::Approx(10e6 * a->rounds).epsilon(1e-9));
  const AccountPart* held = part(*a, "attribute seen of Trainer");
  REQUIRE(held);
  CHECK(held->kind == AccountPart::Kind::kHeld);
  CHECK(held->born->line == 31);
  // Three fifths of what is sampled, which is eight tenths of what resident memory grows by.
  CHECK(held->bytes == doctest::Approx(0.6 * 0.8 * a->growth).epsilon(0.1));
  REQUIRE(part(*a, "garbage until gc runs"));
  REQUIRE(part(*a, "held by native code"));
  CHECK(part(*a, "held by native code")->bytes == doctest::Approx(4 * part(*a, "garbage until gc runs")->bytes));
  CHECK(a->parts.back().kind == AccountPart::Kind::kUnexplained);
}

TEST_CASE("account: what was asked for and never written is told as that") {
  Run run;
  run.grow(500, 2, 40).live_from(300, 9);
  run.site({Frame{"p.py", "step", 44, false, true}}, 9, Life::kLeak);
  const std::optional<Account> a = account(Case(run.evidence));
  REQUIRE(a);
  CHECK(sum(*a) == doctest::Approx(a->growth).epsilon(1e-9));
  CHECK(a->parts.back().kind == AccountPart::Kind::kUntouched);
  CHECK(a->parts.back().bytes < 0);
}

TEST_CASE("account: without rounds there is none, and a flat run has small parts") {
  CHECK(!account(Case(Run().rss({500, 500}).evidence)));
  Run flat;
  flat.grow(500, 0, 40).live_from(300, 0);
  const std::optional<Account> a = account(Case(flat.evidence));
  REQUIRE(a);
  CHECK(std::abs(a->growth) < 1e6);
  for (const AccountPart& p : a->parts) CHECK(std::abs(p.bytes) < 1e6);
}

TEST_CASE("account: files, shared mappings and stacks are parts with numbers of their own, and nothing is left") {
  Run run;
  run.grow(500, 10, 40).live_from(300, 4);
  run.evidence.process = 1;
  // Of 10 MB a round the allocators have 4, a mapped file 3, shared memory 2 and stacks 1.
  run.evidence.processes.push_back(
      seen(1, run, [](double i) { return Seen{500 + 10 * i, 300 + 5 * i, 50 + 2 * i, {}, {}, 10 + i, 100 + 3 * i}; }));
  const std::optional<Account> a = account(Case(run.evidence));
  REQUIRE(a);
  CHECK(sum(*a) == doctest::Approx(a->growth).epsilon(1e-9));
  CHECK(part(*a, "memory-mapped files")->bytes == doctest::Approx(0.3 * a->growth));
  CHECK(of(*a, AccountPart::Kind::kShared) == doctest::Approx(0.2 * a->growth));
  CHECK(of(*a, AccountPart::Kind::kStacks) == doctest::Approx(0.1 * a->growth));
  CHECK(std::abs(of(*a, AccountPart::Kind::kUnexplained)) < 0.01 * a->growth);
  // By space: what is shared is no part of the host's.
  const std::vector<Account> all = accounts(run.evidence, {});
  REQUIRE(space(all, 1, "host"));
  REQUIRE(space(all, 1, "shared"));
  CHECK(space(all, 1, "host")->growth + space(all, 1, "shared")->growth == doctest::Approx(a->growth));
  CHECK(of(*space(all, 1, "host"), AccountPart::Kind::kShared) == 0);
  CHECK(sum(*space(all, 1, "host")) == doctest::Approx(space(all, 1, "host")->growth));
  CHECK(std::ranges::none_of(all, &Account::tree));
}

TEST_CASE("account: shared mappings whose blocks were sampled are told by line, and not a second time") {
  // 5 MB a round in a list, 5 MB a round in shared mappings: the samples see both, the allocators one of them.
  Run run;
  run.grow(500, 10, 40).live_from(300, 5);
  run.site({user("p.py", 31, "keep")}, 5, Life::kLeak).site({user("p.py", 44, "share")}, 5, Life::kLeak);
  run.evidence.process = 1;
  SeenProcess p = seen(1, run, [](double i) { return Seen{500 + 10 * i, 400 + 5 * i, 5 * i}; });
  for (size_t i = 0; i < run.evidence.marks.size(); ++i)
    p.mappings["shared_anonymous"].push_back({run.evidence.marks[i].t, mb(5 * double(i)), mb(5 * double(i)), {}, {}});
  run.evidence.processes.push_back(std::move(p));
  const std::optional<Account> a = account(Case(run.evidence));
  REQUIRE(a);
  CHECK(sum(*a) == doctest::Approx(a->growth).epsilon(1e-9));
  CHECK(of(*a, AccountPart::Kind::kNative) == doctest::Approx(a->growth).epsilon(0.01));
  for (const int line : {31, 44})
    CHECK(std::ranges::any_of(a->parts, [&](const AccountPart& part) {
      return part.born && part.born->line == line && std::abs(part.bytes - a->growth / 2) < 0.02 * a->growth;
    }));
  CHECK(std::abs(of(*a, AccountPart::Kind::kUnexplained) + of(*a, AccountPart::Kind::kUntouched)) < 0.01 * a->growth);
  // By space: the host has what the allocators count, the shared space the rest.
  const std::vector<Account> all = accounts(run.evidence, {});
  CHECK(space(all, 1, "host")->growth == doctest::Approx(5e6 * a->rounds));
  CHECK(of(*space(all, 1, "host"), AccountPart::Kind::kInUse) == doctest::Approx(5e6 * a->rounds));
  CHECK(of(*space(all, 1, "shared"), AccountPart::Kind::kShared) == doctest::Approx(5e6 * a->rounds));
}

TEST_CASE(
    "account: the tree is private pages of each process and each shared page once, and a process not seen from inside "
    "is told by its mappings") {
  Run run;
  run.grow(500, 4, 40).live_from(300, 4);
  run.evidence.process = 1;
  run.evidence.processes.push_back(
      seen(1, run, [](double i) { return Seen{500 + 4 * i, 400 + 4 * i, 0, 400 + 4 * i, 450 + 4 * i}; }));
  // A worker: 6 MB a round of its own, and 2 MB a round of its parent's pages that it writes to, which its parent then
  // has alone, too.
  run.evidence.processes.push_back(
      seen(2, run, [](double i) { return Seen{300 + 6 * i, 200 + 6 * i, 0, 50 + 8 * i, 150 + 7 * i}; }, "outside"));
  const std::vector<Account> all = accounts(run.evidence, {});
  REQUIRE(all.size() >= 3);
  const Account& tree = all.front();
  REQUIRE(tree.tree);
  CHECK(sum(tree) == doctest::Approx(tree.growth).epsilon(1e-9));
  CHECK(tree.growth == doctest::Approx(11e6 * tree.rounds));
  CHECK(of(tree, AccountPart::Kind::kInUse) == doctest::Approx(4e6 * tree.rounds));
  CHECK(of(tree, AccountPart::Kind::kOutside) == doctest::Approx(6e6 * tree.rounds));
  CHECK(of(tree, AccountPart::Kind::kCopied) == doctest::Approx(2e6 * tree.rounds));
  CHECK(of(tree, AccountPart::Kind::kShared) == doctest::Approx(-1e6 * tree.rounds));
  const Account* worker = space(all, 2, "host");
  REQUIRE(worker);
  CHECK(worker->growth == doctest::Approx(6e6 * worker->rounds));
  CHECK(of(*worker, AccountPart::Kind::kOutside) == doctest::Approx(worker->growth));
}

TEST_CASE("account: files in memory that no process has mapped are memory of the tree") {
  Run run;
  run.grow(500, 0, 40).live_from(300, 0);
  run.evidence.process = 1;
  run.evidence.processes.push_back(seen(1, run, [](double) { return Seen{500, 400, 0, 400, 480}; }));
  for (size_t i = 0; i < run.evidence.marks.size(); ++i)
    run.evidence.loose_files.emplace_back(run.evidence.marks[i].t, mb(5 * double(i)));
  const std::vector<Account> all = accounts(run.evidence, {});
  REQUIRE(all.front().tree);
  CHECK(all.front().growth == doctest::Approx(5e6 * all.front().rounds));
  CHECK(part(all.front(), "files in memory that no process has mapped")->bytes == doctest::Approx(all.front().growth));
}

TEST_CASE("account: what a walk found before holds no growth, however much is put in and taken out") {
  Run run = growing();
  // A full buffer whose items are all new, and a list that grows: the growth is the list's.
  const auto walk = [](int period, double list) {
    return R"({"note": "walk", "kind": "epoch", "period": )" + std::to_string(period) + R"(, "alive": )" +
           std::to_string(100e6 + list) + R"(, "reached": )" + std::to_string(100e6 + list) +
           R"(, "native": 0, "garbage": 0, "holders": [{"bytes": 100e6, "samples": 90, "how": "reached", "type": "deque", "chain": ["global recent"], "births": [1,1]}, {"bytes": )" +
           std::to_string(list) +
           R"(, "samples": 20, "how": "reached", "type": "list", "chain": ["global kept"], "births": [1,1]}]})";
  };
  run.note(walk(9, 10e6)).note(walk(30, 60e6));
  const std::optional<Account> a = account(Case(run.evidence));
  REQUIRE(a);
  REQUIRE(part(*a, "global kept"));
  CHECK(part(*a, "global kept")->bytes == doctest::Approx(0.8 * a->growth).epsilon(0.15));
  CHECK(!part(*a, "global recent"));
}

TEST_CASE(
    "account: pages that trim gave back are counted free by the allocator and are no memory, until they are used "
    "again") {
  // 82 MB are free, and trim gives 80 of them back at round 4. From then on what is in use grows by 2 MB a round out of
  // these.
  Run run;
  std::vector<double> rss, live, free;
  for (int i = 0; i < 36; ++i)
    rss.push_back(i < 4 ? 500 : 420 + 2 * (i - 3)), live.push_back(i < 4 ? 300 : 300 + 2 * (i - 3)),
        free.push_back(i < 4 ? 82 : 82 - 2 * (i - 3));
  run.rss(rss).live(live).free(free).probe(4, 500, 500, 420);
  const std::optional<Account> a = account(Case(run.evidence));
  REQUIRE(a);
  CHECK(of(*a, AccountPart::Kind::kInUse) == doctest::Approx(a->growth));
  CHECK(std::abs(of(*a, AccountPart::Kind::kUnexplained)) < 0.05 * a->growth);
}

TEST_CASE("account: memory of a device is divided by what the framework's pool told") {
  Run run;
  run.grow(500, 0, 40).live_from(300, 0);
  run.evidence.process = 1;
  run.evidence.processes.push_back(seen(1, run, [](double) { return Seen{500, 400, 0}; }));
  run.evidence.pools = {{.space = "gpu:0", .name = "torch", .points = {}}};
  for (size_t i = 0; i < run.evidence.marks.size(); ++i) {
    const double t = run.evidence.marks[i].t, n = double(i);
    run.evidence.processes[0].spaces["gpu:0"].push_back({t, mb(1000 + 10 * n), {}, {}});
    run.evidence.pools[0].points.push_back({.t = t,
                                            .in_use = mb(300 + 7 * n),
                                            .reserved = mb(400 + 9 * n),
                                            .peak = {},
                                            .inactive_split = {},
                                            .largest_free = {},
                                            .limit = {}});
  }
  const std::vector<Account> all = accounts(run.evidence, {});
  const Account* device = space(all, 1, "gpu:0");
  REQUIRE(device);
  CHECK(device->growth == doctest::Approx(10e6 * device->rounds));
  CHECK(of(*device, AccountPart::Kind::kGpu) == doctest::Approx(7e6 * device->rounds));
  CHECK(of(*device, AccountPart::Kind::kFree) == doctest::Approx(2e6 * device->rounds));
  CHECK(of(*device, AccountPart::Kind::kUnexplained) == doctest::Approx(1e6 * device->rounds));
}

TEST_CASE("resample: of levels of known truth the 95 % intervals of growth hold it in at least 93 %") {
  Random random(1);
  int held = 0, all = 0, plain = 0,
      held_plain = 0;  // plain: without saw-teeth, whose intervals are wider than they need be
  std::string by_class;
  for (const size_t n : {6, 9, 15, 30, 80})
    for (const int shape : {0, 1, 2})      // a line, growth that begins on the way, a step
      for (const int noise : {0, 1, 2}) {  // of each round alone, alike from round to round, saw-teeth
        int here = 0;
        constexpr int kRuns = 60;
        for (int run = 0; run < kRuns; ++run, ++all) {
          Rounds rounds;
          std::vector<double> truth, y;
          double carried = random.normal();
          const double phase = random.uniform() * 3;
          for (size_t i = 0; i < n; ++i) {
            rounds.t.push_back(double(i)), rounds.x.push_back(double(i));
            const double x = double(i), half = double(n) / 2;
            truth.push_back(shape == 0 ? 3 * x : shape == 1 ? 3 * std::max(0.0, x - half) : x < half ? 0 : 40);
            carried = 0.4 * carried + std::sqrt(1 - 0.16) * random.normal();
            y.push_back(truth.back() + 2 * (noise == 0   ? random.normal()
                                            : noise == 1 ? carried
                                                         : std::fmod(x + phase, 3) - 1));
          }
          const std::vector<std::vector<double>> levels{y};
          std::vector<double> off = growth_errors(rounds, levels, random)[0];
          const Interval range = middle_95(off);
          const double error = grown(rounds, y) - grown(rounds, truth);
          here += range.low <= error && error <= range.high;
        }
        held += here;
        if (noise < 2) held_plain += here, plain += kRuns;
        CHECK(here >= 0.8 * kRuns);
        by_class += " " + std::to_string(n) + "/" + std::to_string(shape) + "/" + std::to_string(noise) + ": " +
                    std::to_string(100 * here / kRuns) + " %";
      }
  MESSAGE("held in " << held << " of " << all << ", without saw-teeth in " << held_plain << " of " << plain
                     << " (rounds/shape/noise)" << by_class);
  CHECK(held >= 0.93 * all);
  CHECK(held_plain >= 0.93 * plain);
}

TEST_CASE(
    "account: of sampled blocks whose truth is known the 95 % intervals hold it in at least 93 %, and parts add up in "
    "all") {
  Random random(2);
  constexpr double kInterval = 512 << 10;
  int held = 0, all = 0, added = 0;
  for (const double block : {2e3, 4e4, 2e5, 6e5})
    for (const double kept : {2e6, 10e6})    // bytes in a round
      for (const double noise : {0.1, 1.0})  // MB, of resident memory
        for (int run_number = 0; run_number < 25; ++run_number, ++all) {
          Run run;
          const size_t n = 24;
          std::vector<double> rss;
          for (size_t i = 0; i < n; ++i) rss.push_back(200 + kept / 1e6 * double(i + 1) + noise * random.normal());
          run.rss(rss);
          run.evidence.sampling_interval = kInterval;
          run.evidence.sites.push_back({{Frame{"p.py", "step", 44, false, true}}, {}, 0, {}, 0});
          const double taken = -std::expm1(-block / kInterval), blocks = kept / block;
          double samples = 0;
          std::vector<double> born;
          for (size_t i = 0; i < n; ++i) {
            double here = 0;
            for (double k = 0; k < blocks; ++k) here += random.uniform() < taken;
            born.push_back(here), samples += here;
            SiteState state{
                .site = 0, .bytes = to_bytes(samples * block / taken), .blocks = samples / taken, .age = {}};
            for (size_t k = 0; k <= i; ++k)
              state.age[i == 0 ? 7 : std::min<size_t>(7, k * 8 / (i + 1))] += to_bytes(born[k] * block / taken);
            run.evidence.marks[i].sites.push_back(state);
          }
          const std::optional<Account> a = account(Case(run.evidence));
          REQUIRE(a);
          const double truth = kept * a->rounds;
          const AccountPart stays = a->staying();
          held += stays.range.low <= truth && truth <= stays.range.high;
          added += std::abs(sum(*a) - a->growth) < 1e-3;
        }
  MESSAGE("held in " << held << " of " << all);
  CHECK(held >= 0.93 * all);
  CHECK(added == all);
}

TEST_CASE("account: its time and its intervals are the same whenever it is asked for") {
  Run run = growing();
  run.note(kWalk);
  const std::optional<Account> a = account(Case(run.evidence)), b = account(Case(run.evidence));
  REQUIRE(a->parts.size() == b->parts.size());
  for (size_t i = 0; i < a->parts.size(); ++i) {
    CHECK(a->parts[i].range.low == b->parts[i].range.low);
    CHECK(a->parts[i].range.high == b->parts[i].range.high);
  }
}

TEST_CASE("contradictions: a verdict that the account speaks against is found, and one that it bears out is not") {
  const auto told = [](Kind kind, Run run) {
    Verdict v;
    v.kind = kind;
    v.account = std::make_shared<const Account>(*account(Case(run.evidence)));
    return contradictions(v);
  };
  Run leak = growing(), flat, freed;
  flat.grow(500, 0, 40).live_from(300, 0);
  std::vector<double> free;
  for (int i = 0; i < 40; ++i) free.push_back(50 + 10 * i);
  freed.grow(500, 10, 40).live_from(300, 0).free(free);
  CHECK(told(Kind::kLeak, leak).empty());
  CHECK(told(Kind::kFlat, flat).empty());
  CHECK(told(Kind::kRetention, freed).empty());
  CHECK(told(Kind::kFlat, leak).size() == 1);
  CHECK(told(Kind::kLeak, flat).size() == 1);
  CHECK(told(Kind::kLeak, freed).size() == 1);
  CHECK(told(Kind::kRetention, leak).size() == 1);
  CHECK(told(Kind::kUnsure, leak).empty());
}

TEST_CASE("contradictions: a verdict that the account speaks against does not stand") {
  const auto held = [](Kind kind, Run run) {
    Verdict v;
    v.kind = kind;
    v.findings.push_back({});
    v.findings.front().kind = kind;
    v.account = std::make_shared<const Account>(*account(Case(run.evidence)));
    hold_to_account(v);
    CHECK(contradictions(v).empty());
    return v;
  };
  Run leak = growing(), flat, freed;
  flat.grow(500, 0, 40).live_from(300, 0);
  std::vector<double> free;
  for (int i = 0; i < 40; ++i) free.push_back(50 + 10 * i);
  freed.grow(500, 10, 40).live_from(300, 0).free(free);
  CHECK(held(Kind::kLeak, leak).kind == Kind::kLeak);
  CHECK(held(Kind::kLeak, flat).kind == Kind::kFlat);  // nothing rose at all
  const Verdict v = held(Kind::kLeak, freed);
  CHECK(v.kind == Kind::kUnsure);
  CHECK_FALSE(v.findings.front().sets_verdict);
  CHECK(v.sentence.find("what is in use grew by") != std::string::npos);
  CHECK_FALSE(v.would_settle.empty());
  CHECK(held(Kind::kFlat, leak).kind == Kind::kUnsure);
  CHECK(held(Kind::kRetention, leak).kind == Kind::kUnsure);
  // A total that is told of more rounds than the account has is no contradiction; one that is far too large is.
  Verdict more;
  more.kind = Kind::kLeak;
  more.account = std::make_shared<const Account>(*account(Case(leak.evidence)));
  more.findings.push_back({});
  Finding& f = more.findings.front();
  f.kind = Kind::kLeak, f.unit = Unit::kEpoch, f.bytes_per_unit = 9e6, f.units_seen = 40, f.total = mb(360);
  CHECK(contradictions(more).empty());
  f.total = mb(3600);
  CHECK(contradictions(more).size() == 1);
}

TEST_CASE(
    "contradictions: what another process or a device is told to leak is not held against the account of this one") {
  Run flat;
  flat.grow(500, 0, 40).live_from(300, 0);
  Verdict v;
  v.kind = Kind::kLeak;
  v.account = std::make_shared<const Account>(*account(Case(flat.evidence)));
  v.findings.push_back({});
  v.findings.front().kind = Kind::kLeak;
  v.findings.front().space = "gpu:0";
  CHECK(contradictions(v).empty());
}

}  // namespace millpond::verdict
