#include <doctest/doctest.h>

#include <list>
#include <memory>

#include "serve/client.h"
#include "serve/server.h"

using namespace millpond::serve;

namespace {

struct Served {
  std::shared_ptr<const std::string> large = std::make_shared<const std::string>(64 << 20, 'x');
  Server server;
  explicit Served(const ServerOptions& o = {})
      : server(
            [this](const std::string& path) -> Answer {
              if (path == "events") return {200, "", nullptr, true};
              if (path == "large") return {200, "text/plain", large};
              if (path.empty()) return {200, "text/html", std::make_shared<const std::string>("hello")};
              return {404, "text/plain", std::make_shared<const std::string>("no")};
            },
            o) {}
  std::string token() const {
    const std::string a = server.address();
    return a.substr(a.size() - 33, 32);
  }
  std::string get(const std::string& path) const {
    return "GET /" + token() + "/" + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
           "\r\n\r\n";
  }
  std::string ask(const std::string& request) const {
    Wire w(server.port());
    w.send(request);
    return w.receive();
  }
};

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("server: the page is served at its address, and nowhere else") {
  Served s;
  const std::string page = s.ask(s.get(""));
  CHECK(has(page, "HTTP/1.1 200 OK"));
  CHECK(page.ends_with("\r\n\r\nhello"));
  CHECK(has(page, "X-Frame-Options: DENY"));
  CHECK(has(s.ask("GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(s.server.port()) + "\r\n\r\n"), "403"));
  CHECK(has(s.ask("GET /" + s.token() + "/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403"));
  CHECK(has(s.ask(s.get("../../../etc/passwd")), "404"));
  CHECK(has(s.ask(s.get("%2e%2e/secret")), "404"));
}
TEST_CASE("server: a request without end is cut off, in bytes and in time") {
  Served patient({.head_seconds = 120, .idle_seconds = 120, .beat_seconds = 1});
  Wire big(patient.server.port());
  for (int i = 0; i < 40 && big.send("X-Header: " + std::string(1000, 'x') + "\r\n"); ++i) continue;
  CHECK(has(big.receive(), "431"));
  Served s({.head_seconds = 0.3, .idle_seconds = 2, .beat_seconds = 1});
  CHECK(comes_true([&] { return has(s.ask("GET / HT"), "408"); }));  // once the words came before the time was over
  Wire silent(s.server.port());
  CHECK(silent.receive().empty());
  CHECK(comes_true([&] { return has(s.ask(s.get("")), "hello"); }));
}
TEST_CASE("server: a client that does not read is dropped, and the others are served meanwhile") {
  Served patient({.head_seconds = 120, .idle_seconds = 120, .beat_seconds = 1});
  std::list<Wire> lazy;
  for (int i = 0; i < 8; ++i) {
    lazy.emplace_back(patient.server.port());
    lazy.back().send(patient.get("large"));
  }
  for (int i = 0; i < 20; ++i) CHECK(has(patient.ask(patient.get("")), "hello"));
  // Where there is room for one, another is served only after that one was dropped.
  Served s({.head_seconds = 120, .idle_seconds = 0.5, .beat_seconds = 0.2, .clients = 1});
  Wire only(s.server.port());
  only.send(s.get("large"));
  CHECK(comes_true([&] { return has(s.ask(s.get("")), "hello"); }));
  CHECK(only.receive().size() < s.large->size());  // what lay in the sockets, and then the end
}
TEST_CASE("server: more clients than it has room for are turned away, not waited for") {
  Served s({.head_seconds = 120, .idle_seconds = 120, .beat_seconds = 1, .clients = 4, .streams = 2});
  std::list<Wire> held;
  for (int i = 0; i < 4; ++i) held.emplace_back(s.server.port());
  CHECK(s.ask(s.get("")).empty());  // they came before it, so they have the places
  held.clear();
  CHECK(comes_true([&] { return has(s.ask(s.get("")), "hello"); }));
}
TEST_CASE("server: events come as they are told, the last one to who comes late, and all hear the end") {
  Served s;
  Wire a(s.server.port());
  a.send(s.get("events"));
  CHECK(has(a.receive("retry: 1000\n\n"), "text/event-stream"));
  s.server.tell("news", "1");
  CHECK(has(a.receive("data: 1\n\n"), "event: news"));
  s.server.tell("news", "2");
  CHECK(has(a.receive("data: 2\n\n"), "event: news"));
  Wire late(s.server.port());
  late.send(s.get("events"));
  CHECK(has(late.receive("data: 2\n\n"), "event: news"));
  s.server.tell("over", "3");
  s.server.finish(0.3);
  CHECK(has(a.receive(), "event: over\ndata: 3"));
  CHECK(!Wire(s.server.port()).connected);
}
TEST_CASE("server: pages beyond the number of streams are told so") {
  Served s({.head_seconds = 5, .idle_seconds = 5, .beat_seconds = 5, .clients = 16, .streams = 1});
  Wire a(s.server.port());
  a.send(s.get("events"));
  a.receive("retry: 1000\n\n");
  CHECK(has(s.ask(s.get("events")), "503"));
}
