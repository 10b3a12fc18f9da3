#include <doctest/doctest.h>

#include "report/bisect.h"
#include "report/made_up.h"

using namespace millpond;
using namespace millpond::report;

namespace {

VariantRun ran(const char* name, double mib, verdict::Kind kind) {
  VariantRun v;
  v.name = name, v.done = *name ? std::string("without ") + name : "nothing", v.owner = std::string("the ") + name,
  v.kind = kind;
  v.growth = {mib * kMiB, {mib * 0.9 * kMiB, mib * 1.1 * kMiB}, 6 * mib * kMiB, 300.0 * kMiB, "epoch", 8, true};
  return v;
}

}  // namespace

TEST_CASE("bisect: the first variant that takes the growth away owns it") {
  Bisection b;
  b.base = ran("", 8, verdict::Kind::kLeak);
  b.variants = {ran("callbacks", 0.1, verdict::Kind::kFlat), ran("gc", 7.9, verdict::Kind::kLeak),
                ran("eager", 4, verdict::Kind::kLeak)};
  VariantRun out = ran("cpu", 0, verdict::Kind::kFlat);
  out.not_run = "no GPU here";
  b.variants.push_back(out);
  out.name = "pipeline";
  b.variants.push_back(out);
  out.name = "validation", out.not_run = "no Keras in this program";
  b.variants.push_back(out);
  b.line = "project/train.py:12 in Keeper.add";
  CHECK(bisect_text(b, {}) ==
        "  variant                growth  rounds  verdict      what was done\n"
        "  as it is   8.00 MiB per epoch       8  leak         nothing\n"
        "  callbacks   102 KiB per epoch       8  growth gone  without callbacks\n"
        "  gc         7.90 MiB per epoch       8  leak         without gc\n"
        "  eager      4.00 MiB per epoch       8  lower        without eager\n"
        "  Left out: cpu, pipeline (no GPU here); validation (no Keras in this program).\n"
        "\n"
        "Memory grows by 8.00 MiB per epoch; without callbacks it does not (102 KiB per epoch): the callbacks\n"
        "owns the growth. The line is project/train.py:12 in Keeper.add.\n");
  CHECK(bisect_json(b)["line"] == "project/train.py:12 in Keeper.add");
  CHECK(bisect_json(b)["removed_by"] == "callbacks");
  CHECK(bisect_json(b)["variants"][2]["effect"] == "lowers");
  CHECK(bisect_json(b)["variants"][3]["not_run"] == "no GPU here");
}
TEST_CASE("bisect: growth in every variant, no growth, and too few rounds are told apart") {
  Bisection b;
  b.base = ran("", 8, verdict::Kind::kLeak);
  b.variants = {ran("gc", 8, verdict::Kind::kLeak)};
  CHECK(b.culprit() == nullptr);
  CHECK(bisect_sentence(b).starts_with("Memory grows by 8.00 MiB per epoch in every variant (gc)"));
  b.base = ran("", 0, verdict::Kind::kFlat);
  CHECK_FALSE(grows(b.base));
  CHECK(bisect_sentence(b).starts_with("Memory does not grow"));
  b.base.growth.enough = false, b.base.growth.periods = 2;
  CHECK(bisect_sentence(b).starts_with("Too few rounds were seen to tell (2 of them)"));
}
TEST_CASE("bisect: what was taken in one step is no growth") {
  verdict::Evidence step = made_up(8);
  for (verdict::Mark& mark : step.marks)
    mark.heap_in_use.reset(), mark.sites.clear(),
        mark.rss = Bytes{(mark.index <= 6 ? 300 : 308) * kMiB + mark.index * 4096};
  VariantRun base;
  base.growth = growth_seen(step);
  REQUIRE(base.growth.enough);
  CHECK_FALSE(grows(base));
  base.growth.bytes = 1e6, base.growth.range = {0.5e6, 2e6}, base.growth.total = 9e6;
  base.growth.goes_on = true;
  CHECK(grows(base));  // such a slope alone would say so
  base.growth.goes_on = false;
  Bisection b;
  b.base = base;
  CHECK(bisect_sentence(b).starts_with("Memory rose in a step or two and stopped"));
}
TEST_CASE(
    "bisect: a variant whose memory stops after a step has no growth, whatever the step was beside the program's "
    "rate") {
  verdict::Evidence step = made_up(8);
  for (verdict::Mark& mark : step.marks)
    mark.sites.clear(), mark.rss = mark.heap_in_use = Bytes{(mark.index <= 3 ? 22 : 26) * kMiB};
  VariantRun base = ran("", 4, verdict::Kind::kLeak), gc = ran("gc", 0, verdict::Kind::kFlat);
  gc.growth = growth_seen(step);
  REQUIRE(gc.growth.enough);
  CHECK(gc.growth.bytes == 0);
  CHECK(effect_of(base, gc) == Effect::kRemoves);
}
TEST_CASE("bisect: a variant with other rounds is not compared") {
  VariantRun base = ran("", 8, verdict::Kind::kLeak), other = ran("one_batch", 0, verdict::Kind::kFlat);
  CHECK(effect_of(base, other) == Effect::kRemoves);
  other.growth.unit = "second";
  CHECK(effect_of(base, other) == Effect::kNone);
}
TEST_CASE("bisect: growth is read from a run") {
  const GrowthSeen g = growth_seen(made_up(8));
  CHECK(g.enough);
  CHECK(g.unit == "epoch");
  CHECK(g.periods == 10);
  CHECK(g.bytes == doctest::Approx(8.0 * kMiB));
  CHECK_FALSE(growth_seen(verdict::Evidence{}).enough);
}
