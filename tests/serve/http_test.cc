#include <doctest/doctest.h>

#include "serve/http.h"

using namespace millpond::serve;

namespace {

int status_of(const std::string& head) {
  Request r;
  const auto refusal = parse(head, r);
  return refusal ? refusal->status : 200;
}

const Guard kGuard{8123, "0123456789abcdef0123456789abcdef"};

int guarded(const std::string& target, const std::string& host = "127.0.0.1:8123", const std::string& origin = "") {
  std::string path;
  const auto refusal = kGuard.check({"GET", target, host, origin}, path);
  return refusal ? refusal->status : 200;
}

}  // namespace

TEST_CASE("http: a request of a browser is read") {
  Request r;
  CHECK(!parse("GET /abc/data HTTP/1.1\r\nHost: 127.0.0.1:1\r\nORIGIN:  http://x \r\nAccept: */*\r\n\r\n", r));
  CHECK(r.target == "/abc/data");
  CHECK(r.host == "127.0.0.1:1");
  CHECK(r.origin == "http://x");
}
TEST_CASE("http: what is no request, has a body, or is too long is refused") {
  CHECK(status_of("hello\r\n\r\n") == 400);
  CHECK(status_of("GET /\r\n\r\n") == 400);
  CHECK(status_of("GET / HTTP/2\r\n\r\n") == 400);
  CHECK(status_of("GET /\x01 HTTP/1.1\r\n\r\n") == 400);
  CHECK(status_of("POST / HTTP/1.1\r\nHost: a\r\n\r\n") == 405);
  CHECK(status_of("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n") == 413);
  CHECK(status_of("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == 413);
  CHECK(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") == 400);
  CHECK(status_of("GET / HTTP/1.1\r\nbad header\r\n\r\n") == 400);
  CHECK(status_of("GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n") == 431);
}
TEST_CASE("guard: only the address that was told, from this machine's own name and page") {
  const std::string good = "/" + kGuard.token + "/";
  CHECK(guarded(good) == 200);
  CHECK(guarded(good + "data", "localhost:8123", "http://localhost:8123") == 200);
  for (const char* host : {"localhost:9000", "LOCALHOST:9000", "127.0.0.1:9999", "[::1]:8123", "localhost",
                           "127.0.0.1"}) {  // ssh -L has a port of its own
    CHECK(guarded(good, host) == 200);
    CHECK(guarded(good, host, std::string("http://") + host) == 200);
  }
  CHECK(guarded(good, "localhost:9000", "http://localhost:8888") == 403);  // another page of this machine
  for (const char* host : {"localhost.evil.example:9000", "127.0.0.1.evil.example", "localhost:", "localhost:80x",
                           "localhost:999999", "[::1", "[::1]x", "evil.example#localhost", "127.0.0.1:80@evil"})
    CHECK(guarded(good, host) == 403);
  CHECK(guarded("/") == 403);
  CHECK(guarded("/0123456789abcdef0123456789abcdee/") == 403);
  CHECK(guarded("/" + kGuard.token) == 403);
  CHECK(guarded(good, "evil.example:8123") == 403);
  CHECK(guarded(good, "") == 403);
  CHECK(guarded(good, "127.0.0.1:8123", "http://evil.example") == 403);
  CHECK(guarded(good, "127.0.0.1:8123", "null") == 403);
}
TEST_CASE("secrets are compared whole, and tokens differ") {
  CHECK(same_secret("abc", "abc"));
  CHECK(!same_secret("abc", "abd"));
  CHECK(!same_secret("abc", "ab"));
  CHECK(!same_secret("", "a"));
  CHECK(make_token() != make_token());
  CHECK(make_token().size() == 32);
}
