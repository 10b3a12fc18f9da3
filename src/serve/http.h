// http: the little of HTTP/1.1 that one page for one person needs: GET, whole requests of at most 8 KiB, nothing kept
// open but the stream of events. Pure: bytes in, a decision out; server.h has the sockets.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millpond::serve {

constexpr size_t kLongestHead = 8192;

struct Request {
  std::string method, target;
  std::string host, origin;  // empty: not sent
};

struct Refusal {
  int status = 400;
  std::string text;
};

/// Where the head of a request ends (just behind the empty line); nothing while it has not all come.
std::optional<size_t> end_of_head(std::string_view bytes);

/// A request out of its head. Refuses what is no request, another method than GET, a body, two hosts, what is too long.
std::optional<Refusal> parse(std::string_view head, Request& request);

/// Whom the page is for: this machine's own browser, or one behind a tunnel to it, at the address that was told to the
/// person, with the token in it.
struct Guard {
  int port = 0;
  std::string token;
  /// Refuses a foreign Host (any but localhost, 127.0.0.1 and [::1], with any port), a foreign Origin (another page
  /// that asks), a wrong token; otherwise `path` is what follows "/TOKEN/".
  std::optional<Refusal> check(const Request& request, std::string& path) const;
};

/// As long as the longer one takes, wherever they differ.
bool same_secret(std::string_view a, std::string_view b);

/// Status line and headers; without a length the body ends when the connection does.
std::string response_head(int status, std::string_view type, std::optional<size_t> length);

/// 32 hexadecimal digits of the kernel's random numbers.
std::string make_token();

}  // namespace millpond::serve
