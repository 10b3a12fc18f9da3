#include "serve/http.h"

#include <errno.h>
#include <sys/random.h>

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::serve {
namespace {

bool token_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

/// A name of this machine for itself, with any port or none: a tunnel (ssh -L 9000:…) has a port of its own. No other
/// name can be made to lead to these.
bool is_loopback(std::string_view host) {
  const size_t colon = host.starts_with('[') ? host.find(':', std::min(host.find(']'), host.size())) : host.find(':');
  if (colon != host.npos) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; }))
      return false;
  }
  std::string name(host.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](char c) { return char(std::tolower(static_cast<unsigned char>(c))); });
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
  }
  return "Error";
}

}  // namespace

std::optional<size_t> end_of_head(std::string_view bytes) {
  const size_t at = bytes.find("\r\n\r\n");
  return at == bytes.npos ? std::nullopt : std::optional(at + 4);
}

std::optional<Refusal> parse(std::string_view head, Request& request) {
  if (head.size() > kLongestHead) return Refusal{431, "the request is too long"};
  size_t end = head.find("\r\n");
  if (end == head.npos) return Refusal{400, "this is no request"};
  const std::string_view line = head.substr(0, end);
  const size_t first = line.find(' '), second = line.rfind(' ');
  if (first == line.npos || first == second || line.substr(second + 1, 7) != "HTTP/1.")
    return Refusal{400, "this is no request"};
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, second - first - 1);
  for (const char c : request.target)
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      return Refusal{400, "the address has characters that none has"};
  bool has_host = false;
  for (size_t at = end + 2; at < head.size();) {
    end = head.find("\r\n", at);
    if (end == head.npos) return Refusal{400, "a header does not end"};
    const std::string_view header = head.substr(at, end - at);
    at = end + 2;
    if (header.empty()) break;
    const size_t colon = header.find(':');
    if (colon == 0 || colon == header.npos || !std::ranges::all_of(header.substr(0, colon), token_character))
      return Refusal{400, "a header is malformed"};
    std::string name(header.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](char c) { return char(std::tolower(static_cast<unsigned char>(c))); });
    const std::string_view value = trimmed(header.substr(colon + 1));
    if (name == "host") {
      if (has_host) return Refusal{400, "two hosts are named"};
      has_host = true;
      request.host = value;
    } else if (name == "origin") {
      request.origin = value;
    } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
      return Refusal{413, "a request here has no body"};
    }
  }
  if (request.method != "GET") return Refusal{405, "only GET is known here"};
  return {};
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    different |= static_cast<unsigned char>((i < a.size() ? a[i] : 0) ^ (i < b.size() ? b[i] : 0));
  return different == 0;
}

std::optional<Refusal> Guard::check(const Request& request, std::string& path) const {
  if (!is_loopback(request.host)) return Refusal{403, "this page is for 127.0.0.1 and localhost only"};
  if (!request.origin.empty() && request.origin != "http://" + request.host)
    return Refusal{403, "another page may not ask here"};
  const std::string_view target = request.target;
  const size_t slash = target.find('/', 1);
  if (target.empty() || target[0] != '/' || slash == target.npos || !same_secret(target.substr(1, slash - 1), token))
    return Refusal{403, "the address lacks its token: open the one that millpond printed"};
  path = target.substr(slash + 1);
  return {};
}

std::string response_head(int status, std::string_view type, std::optional<size_t> length) {
  std::string head = format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", status, reason(status), type);
  if (length) head += format("Content-Length: {}\r\n", *length);
  head +=
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: "
      "DENY\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n";
  return head;
}

std::string make_token() {
  unsigned char raw[16];
  if (getrandom(raw, sizeof raw, 0) != sizeof raw)
    throw Error(Code::kUnsupported, "the kernel gives no random numbers").hint("run without --live");
  std::string token;
  for (const unsigned char b : raw) token += format("{:02x}", b);
  return token;
}

}  // namespace millpond::serve
