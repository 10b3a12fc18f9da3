#include "verdict/account.h"

#include <doctest/doctest.h>

#include "verdict/case.h"
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
Run growing() {
  Run run;
  run.grow(500, 10, 40).live_from(300, 9);
  run.site({Frame{"p.py", "step", 44, false, true}}, 8, Life::kLeak);
  return run;
}
const char* const kWalk = R"({"note": "walk", "period": 30, "alive": 200e6, "reached": 150e6, "native": 20e6, "garbage": 10e6, "holders": [
  {"bytes": 120e6, "samples": 40, "how": "reached", "type": "list", "chain": ["attribute seen of Trainer", "local t of main"], "born": [{"file": "p.py", "line": 31, "bytes": 120e6}], "births": [1,1]},
  {"bytes": 20e6, "samples": 9, "how": "native", "type": "tuple", "chain": [], "births": [1,1]}]})";

}  // namespace

TEST_CASE("account: the parts add up to the growth of resident memory, and a walk names the holders") {
  Run run = growing();
  run.note(kWalk);
  const std::optional<Account> a = account(Case(run.evidence));
  REQUIRE(a);
  CHECK(sum(*a) == doctest::Approx(a->growth).epsilon(1e-9));
  CHECK(a->growth == doctest::Approx(10e6 * a->rounds).epsilon(0.15));
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

}  // namespace millpond::verdict
