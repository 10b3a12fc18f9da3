#include <doctest/doctest.h>

#include "millpond/error.h"
#include "report/lines.h"
#include "report/made_up.h"
#include "report/sites.h"

using namespace millpond;
using namespace millpond::report;

namespace {

std::string refusal(const verdict::Evidence& e, const std::string& at) {
  try {
    find_moment(e, at);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("table: the lines that hold the memory at the peak, with share and growth") {
  const verdict::Evidence e = made_up();
  CHECK(table_text(e, *peak_moment(e), {}, 20) ==
        "Alive at the peak, epoch 10 (280 MiB resident): 210 MiB in sampled blocks\n"
        "                bytes   share  blocks  each epoch  line                       function\n"
        "              100 MiB  47.6 %      20           -  project/a/train.py:5       make_mode...add_weight\n"
        "             80.0 MiB  38.1 %      80   +8.00 MiB  project/a/train.py:12      <listcomp>\n"
        "  30.0 MiB ± 7.21 MiB  14.3 %     300           -  /usr/lib/libtensorflow.so  Allocate\n");
}
TEST_CASE("table: at an epoch, with a limit") {
  const verdict::Evidence e = made_up();
  CHECK(table_text(e, find_moment(e, "epoch:3"), {}, 1) ==
        "Alive then, epoch 3 (224 MiB resident): 154 MiB in sampled blocks\n"
        "    bytes   share  blocks  each epoch  line                  function\n"
        "  100 MiB  64.9 %      20           -  project/a/train.py:5  make_model > add_weight\n"
        "  2 more places hold 54.0 MiB (--rows shows more)\n");
  CHECK(table_json(e, find_moment(e, "epoch:3"), 1)["places"].size() == 1);
  CHECK(table_json(e, find_moment(e, "epoch:3"), 9)["places"][1]["bytes"] == 30 * kMiB);
}
TEST_CASE("--at: the nearest that was kept, seconds, and a refusal that names what there is") {
  const verdict::Evidence e = made_up();
  verdict::Evidence thinned = made_up();
  thinned.marks[6].sites.clear();
  CHECK(find_moment(thinned, "epoch:7").mark->index == 6);
  CHECK(find_moment(thinned, "epoch:7").text == "nearest that was kept, epoch 6 (248 MiB resident)");
  CHECK(find_moment(e, "4.2s").mark->index == 4);
  CHECK(find_moment(e, "end").mark->index == 10);
  CHECK(refusal(e, "epoch:900") ==
        "--at: there is no epoch:900 in this run; there are: peak, end, epoch:1 to epoch:10");
  CHECK(refusal(e, "epoch:0") != "");
  CHECK(refusal(e, "batch:7") == "--at: there is no batch:7 in this run; there are: peak, end, epoch:1 to epoch:10");
  CHECK(refusal(e, "epoch:seven") != "");
  CHECK(refusal(e, "now") != "");
  verdict::Evidence bare = e;
  for (verdict::Mark& m : bare.marks) m.sites.clear();
  CHECK(refusal(bare, "peak").find("no snapshot") != std::string::npos);
}
TEST_CASE("tree: calls with all that is held below them; of libraries the entrance and the allocating frame") {
  const verdict::Evidence e = made_up();
  CHECK(tree_text(e, *peak_moment(e), {}, 40) ==
        "Held by calls at the peak, epoch 10 (280 MiB resident): 210 MiB in sampled blocks; calls that hold less than "
        "1.05 MiB are left out\n"
        "    100 MiB  47.6 %  <module>  project/a/train.py:38\n"
        "    100 MiB  47.6 %    make_model  project/a/train.py:5\n"
        "    100 MiB  47.6 %      build  .../python3/dist-packages/keras/src/trainer.py:20\n"
        "    100 MiB  47.6 %        add_weight  .../python3/dist-packages/keras/src/trainer.py:33\n"
        "   80.0 MiB  38.1 %  <module>  project/a/train.py:40\n"
        "   80.0 MiB  38.1 %    fit  .../python3/dist-packages/keras/src/trainer.py:70\n"
        "   80.0 MiB  38.1 %      Keeper.on_epoch_end  project/a/train.py:12\n"
        "   80.0 MiB  38.1 %        <listcomp>  project/a/train.py:12\n"
        "   30.0 MiB  14.3 %  Allocate  /usr/lib/libtensorflow.so\n");
  const nlohmann::ordered_json j = tree_json(e, *peak_moment(e), 40);
  CHECK(j["calls"][0]["calls"][0]["function"] == "make_model");
}
TEST_CASE("table and tree: library code without names is told by what called it") {
  verdict::Evidence e = made_up();
  e.sites[2].frames = {{"/usr/lib/libpython3.so", "+0x1f", 0, true, false}, library("load", 3)};
  e.sites[0].frames.insert(e.sites[0].frames.begin(), {"/usr/lib/libpython3.so", "+0x2f", 0, true, false});
  e.sites[0].frames.insert(e.sites[0].frames.end() - 1,
                           {"<millpond_agent importlib._bootstrap>", "around.<locals>.wrapper", 44, false, false});
  const std::string table = table_text(e, *peak_moment(e), {}, 20), tree = tree_text(e, *peak_moment(e), {}, 40);
  CHECK(table.find("+0x") == table.npos);
  CHECK(tree.find("+0x") == tree.npos);
  CHECK(tree.find("wrapper") == tree.npos);
  CHECK(table.find("load") != table.npos);
  e.sites[2].frames.pop_back();
  CHECK(table_text(e, *peak_moment(e), {}, 20).find("+0x1f") != std::string::npos);
}
TEST_CASE("tree: a limit leaves small calls out, never the largest") {
  const verdict::Evidence e = made_up();
  const std::string text = tree_text(e, *peak_moment(e), {}, 4);
  CHECK(text.find("make_model") != text.npos);
  CHECK(text.find("Keeper") == text.npos);
}
TEST_CASE("lines: the user's source with allocated, freed, held and growth") {
  const verdict::Evidence e = made_up();
  const SourceLine source = [](const std::string& file, int line) {
    return file == "project/a/train.py" && line == 12 ? std::string("self.kept += [make() for _ in range(8)]\033[0m")
                                                      : std::string();
  };
  CHECK(lines_text(e, source, {}, 40) ==
        "project/a/train.py (freed and held: after 10.0 s)\n"
        "  line  allocated  freed      held  each epoch  source\n"
        "     5    100 MiB    0 B   100 MiB           -  (in make_model)\n"
        "    12   80.0 MiB    0 B  80.0 MiB   +8.00 MiB  self.kept += [make() for _ in range(8)]?[0m\n");
  const nlohmann::ordered_json j = lines_json(e, source, 40);
  REQUIRE(j.size() == 2);
  CHECK(j[1]["held"] == 80 * kMiB);
  CHECK(lines_text(verdict::Evidence{}, source, {}, 40) ==
        "Lines: no line of the user's own was seen to allocate much\n");
}
TEST_CASE(
    "table, tree and lines: a run file of a stranger cannot reach the terminal, and numbers out of range do no harm") {
  verdict::Evidence e = made_up();
  for (verdict::Frame& f : e.sites[0].frames)
    f.file = "\033]0;owned\a/" + std::string(70000, 'z') + "\r\n.py",
    f.function =
        "\xe2\x80\xae\x9b"
        "6n",
    f.line = -5;
  e.marks[9].sites.push_back({99, Bytes{5}, 1, {}});
  e.marks[9].sites.push_back({-1, Bytes{5}, 1, {}});
  for (const std::string& text :
       {table_text(e, *peak_moment(e), {}, 20), tree_text(e, *peak_moment(e), {}, 40), lines_text(e, {}, {}, 40)}) {
    CHECK(text.size() < 4000);
    for (const char c : text) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  }
}
