#include <doctest/doctest.h>

#include <algorithm>

#include "base/format.h"
#include "report/compare.h"
#include "report/made_up.h"

using namespace millpond;
using namespace millpond::report;
using verdict::Kind;

TEST_CASE("compare: a leak that is gone, in one sentence and a table") {
  verdict::Evidence before = made_up(8), after = made_up(0);
  for (verdict::Evidence* e : {&before, &after})
    e->os.push_back({10.9, Bytes{90 * kMiB}, {}, {}, {}, 1});  // as it was taken down
  const verdict::Verdict leak = verdict_of(Kind::kLeak, 8.0 * kMiB), flat = verdict_of(Kind::kFlat);
  CHECK(compare_text({"before.pond", &before, &leak}, {"after.pond", &after, &flat}, {}, 20) ==
        "The leak is gone: memory grew by 8.00 MiB per epoch, now the verdict is flat; the peak falls from\n"
        "280 MiB to 200 MiB (-29 %).\n"
        "\n"
        "              before.pond         after.pond  change\n"
        "  verdict     leak                flat\n"
        "  growth      8.00 MiB per epoch  none\n"
        "  peak        280 MiB             200 MiB     -29 %\n"
        "  last round  280 MiB             200 MiB     -29 %\n"
        "  seconds     11.0                11.0        +0 %\n"
        "\n"
        "Alive at the peak, where it differs most:\n"
        "    before  now  difference  line                   function\n"
        "  80.0 MiB  0 B   -80.0 MiB  project/a/train.py:12  <listcomp>\n");
}
TEST_CASE("compare: what the sentence says of each pair of verdicts") {
  const verdict::Evidence e = made_up(8);
  const verdict::Verdict leak = verdict_of(Kind::kLeak, 8.0 * kMiB), twice = verdict_of(Kind::kLeak, 16.0 * kMiB),
                         flat = verdict_of(Kind::kFlat), cache = verdict_of(Kind::kCache);
  const auto sentence = [&](const verdict::Verdict& a, const verdict::Verdict& b) {
    return compare_sentence({"a", &e, &a}, {"b", &e, &b});
  };
  CHECK(sentence(flat, leak) ==
        "A leak is new: the verdict was flat, now memory grows by 8.00 MiB per epoch at project/a/train.py:12; the "
        "peak stays at 280 MiB.");
  CHECK(sentence(leak, twice) ==
        "Both runs leak: 8.00 MiB per epoch before, 16.0 MiB per epoch now (+100 %) at project/a/train.py:12; the peak "
        "stays at 280 MiB.");
  CHECK(sentence(leak, leak) ==
        "Both runs leak, 8.00 MiB per epoch at project/a/train.py:12; the peak stays at 280 MiB.");
  CHECK(sentence(flat, flat) == "Neither run leaks: both are flat; the peak stays at 280 MiB.");
  CHECK(sentence(cache, flat) == "Neither run leaks: cache before, flat now; the peak stays at 280 MiB.");
}
TEST_CASE("compare: a line that moved within its function is the same place") {
  const verdict::Evidence before = made_up(8);
  verdict::Evidence after = made_up(8);
  after.sites[1].frames[2].line = 9;
  const std::vector<PlaceDifference> list = differences(before, after);
  const auto moved =
      std::find_if(list.begin(), list.end(), [](const PlaceDifference& d) { return d.function == "make_model"; });
  REQUIRE(moved != list.end());
  CHECK(moved->before == 5);
  CHECK(moved->after == 9);
  CHECK(moved->difference() == 0);
}
TEST_CASE(
    "compare: a place is the same one in another folder and at another line, by its function and the text of its "
    "line") {
  const verdict::Evidence before = made_up(8);
  verdict::Evidence after = made_up(8);
  for (verdict::Site& site : after.sites)
    for (verdict::Frame& f : site.frames)
      if (f.user) f.file = "/home/other/checkout/train.py", f.line += 30;
  const auto text = [](int shift) {
    return [shift](const std::string&, int line) {
      return line - shift == 12 ? std::string("    self.kept.append(x)") : format("line {}", line - shift);
    };
  };
  const std::vector<PlaceDifference> list = differences(before, after, text(0), text(30));
  CHECK(list.size() == 3);
  for (const PlaceDifference& d : list) CHECK_MESSAGE(d.difference() == 0, d.file);
  const auto kept = std::ranges::find(list, 12, &PlaceDifference::before);
  REQUIRE(kept != list.end());
  CHECK(kept->after == 42);
}
TEST_CASE("compare: of two lines of one function the text tells which is which, not the size") {
  verdict::Evidence before = made_up(8), after = made_up(8);
  for (verdict::Evidence* e : {&before, &after}) {
    e->sites[1].frames = {user("work", 5)}, e->sites[2].frames = {user("work", 6)};
  }
  std::swap(after.sites[1].frames[0].line, after.sites[2].frames[0].line);  // two lines of the file changed places
  const auto text = [](int first) {
    return [first](const std::string&, int line) {
      return line == first ? "model = build()" : line == 11 - first ? "cache = {}" : "other";
    };
  };
  const std::vector<PlaceDifference> list = differences(before, after, text(5), text(6));
  for (const PlaceDifference& d : list) CHECK(d.difference() == 0);
  CHECK(std::ranges::any_of(list, [](const PlaceDifference& d) { return d.before == 5 && d.after == 6; }));
}
TEST_CASE("compare: where one of the runs has no rounds both are told as they ended") {
  const verdict::Evidence before = made_up(8);
  verdict::Evidence after = made_up(8);
  for (verdict::Mark& m : after.marks) m.kind = "timer";
  after.os.push_back({10.9, Bytes{90 * kMiB}, {}, {}, {}, 1});
  const verdict::Verdict flat = verdict_of(Kind::kFlat);
  CHECK(compare_text({"a", &before, &flat}, {"b", &after, &flat}, {}, 20).find("at the end  280 MiB  90.0 MiB") !=
        std::string::npos);
}
TEST_CASE("compare: as JSON") {
  const verdict::Evidence before = made_up(8), after = made_up(0);
  const verdict::Verdict leak = verdict_of(Kind::kLeak, 8.0 * kMiB), flat = verdict_of(Kind::kFlat);
  const nlohmann::ordered_json j = compare_json({"a.pond", &before, &leak}, {"b.pond", &after, &flat}, 5);
  CHECK(j["before"]["bytes_per_unit"] == 8.0 * kMiB);
  CHECK(j["after"]["bytes_per_unit"].is_null());
  CHECK(j["before"]["last_round_rss"] == 280 * kMiB);
  CHECK(j["before"]["rate"] == "8.00 MiB per epoch");
  CHECK(j["places"][0]["line_before"] == 12);
  CHECK(j["places"][0]["line_after"].is_null());
}
