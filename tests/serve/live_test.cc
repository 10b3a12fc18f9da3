#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "io/scratch.h"
#include "runfile/copy.h"
#include "runfile/reader.h"
#include "runfile/writer.h"
#include "serve/client.h"
#include "serve/live.h"
#include "serve/metrics.h"

using namespace millpond;
using namespace millpond::serve;

namespace {

void add_point(runfile::Writer& w, double t, int64_t rss) {
  w.add(runfile::OsRow{.t = t,
                       .phase = {},
                       .rss = Bytes{rss},
                       .peak_rss = {},
                       .pss = {},
                       .private_dirty = {},
                       .swap = {},
                       .heap_in_use = {},
                       .heap_free = {},
                       .explained = {}});
}

std::string ask(const LivePage& page, const std::string& path) {
  const std::string a = page.address();
  const int port = std::atoi(a.c_str() + std::string("http://127.0.0.1:").size());
  Wire w(port);
  w.send("GET /" + a.substr(a.size() - 33) + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
         "\r\n\r\n");
  return w.receive();
}

}  // namespace

TEST_CASE("copy: a run file is copied whole while it is being written") {
  const Scratch f;
  runfile::Writer w(f.path("run.pond"), {{"command", "x"}});
  add_point(w, 1, 1000);
  w.commit();
  add_point(w, 2, 2000);  // not committed: not in the copy
  runfile::copy(f.path("run.pond"), f.path("copy.pond"));
  CHECK(runfile::Reader(f.path("copy.pond")).os_series().size() == 1);
  w.commit();
  runfile::copy(f.path("run.pond"), f.path("copy.pond"));
  CHECK(runfile::Reader(f.path("copy.pond")).os_series().size() == 2);
}
TEST_CASE("live: page, document and metrics of a run that goes on; all gone after its end, and the file stays") {
  const Scratch f;
  const std::string file = f.path("run.pond");
  runfile::Writer w(file, {{"command", "python train.py"}});
  add_point(w, 1, 123456);
  w.commit();
  LivePage page(file);
  CHECK(ask(page, "").find("text/html") != std::string::npos);
  std::string metrics;
  const auto metrics_say = [&](const char* words) {
    return comes_true([&] { return (metrics = ask(page, "metrics")).find(words) != metrics.npos; });
  };
  CHECK(metrics_say(" 200 "));
  CHECK(metrics.find("millpond_resident_bytes 123456\n") != metrics.npos);
  CHECK(metrics.ends_with("# EOF\n"));
  CHECK(ask(page, "data").find("application/octet-stream") != std::string::npos);
  CHECK(ask(page, "nothing").find(" 404 ") != std::string::npos);
  add_point(w, 2, 777777);
  w.commit();
  CHECK(metrics_say("millpond_resident_bytes 777777\n"));
  w.finish(3, "ended");
  CHECK_FALSE(page.end());
  page.finish();
  CHECK(ask(page, "").empty());
  CHECK(runfile::Reader(file).os_series().size() == 2);
}
TEST_CASE("live: a page that is open at the end can be loaded again until it is closed") {
  const Scratch f;
  runfile::Writer w(f.path("run.pond"), {{"command", "python train.py"}});
  add_point(w, 1, 123456);
  w.commit();
  LivePage page(f.path("run.pond"));
  const std::string a = page.address();
  const int port = std::atoi(a.c_str() + std::string("http://127.0.0.1:").size());
  auto open = std::make_unique<Wire>(port);
  open->send("GET /" + a.substr(a.size() - 33) + "events HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
             "\r\n\r\n");
  CHECK(comes_true([&] { return ask(page, "data").find(" 200 ") != std::string::npos; }));
  w.finish(3, "ended");
  CHECK(page.end());
  std::thread staying([&] { page.stay(0.3); });
  CHECK(ask(page, "").find("text/html") != std::string::npos);
  CHECK(ask(page, "data").find("application/octet-stream") != std::string::npos);
  usleep(600'000);  // longer than a closed page is waited for
  CHECK(ask(page, "").find("text/html") != std::string::npos);
  open.reset();
  staying.join();
  CHECK(ask(page, "").empty());
}
TEST_CASE("metrics: every process of a program with children, and the most that all held together") {
  report::RunContents run;
  run.evidence.process = 1, run.evidence.peak_rss = Bytes{50}, run.evidence.tree_peak = Bytes{90};
  CHECK(openmetrics(run).find("millpond_process") == std::string::npos);
  for (int64_t row = 1; row <= 2; ++row) {
    verdict::SeenProcess p{.row = row,
                           .pid = 70 + row,
                           .parent = 1,
                           .name = "python3",
                           .command = "",
                           .start = 0,
                           .end = {},
                           .seen = "inside",
                           .spaces = {}};
    p.spaces["host"] = {{1, Bytes{10 * row}, {}, {}}, {2, Bytes{20 * row}, {}, {}}};
    p.spaces["shared"] = {{2, Bytes{5}, {}, {}}};
    run.evidence.processes.push_back(p);
  }
  const std::string text = openmetrics(run);
  for (const char* line :
       {"millpond_processes 2\n", "millpond_process_resident_bytes{process=\"python3 71\"} 25\n",
        "millpond_process_resident_bytes{process=\"python3 72\"} 45\n", "millpond_all_peak_bytes 90\n"})
    CHECK_MESSAGE(text.find(line) != text.npos, text);
}
TEST_CASE("metrics: names of strangers cannot break a line") {
  report::RunContents run;
  run.engine = true;
  run.os.push_back({.t = 1,
                    .phase = {},
                    .rss = Bytes{5},
                    .peak_rss = {},
                    .pss = {},
                    .private_dirty = {},
                    .swap = {},
                    .heap_in_use = {},
                    .heap_free = {},
                    .explained = {}});
  run.series.push_back({0, {}, "a\"} 1\nmillpond_fake 2\\", runfile::SeriesKind::kCurrent, Bytes{7}});
  const std::string text = openmetrics(run);
  CHECK(text.find("\nmillpond_fake") == text.npos);
  CHECK(text.find("account=\"a\\\"} 1?millpond_fake 2\\\\\"") != text.npos);
}
