// A client that can misbehave: bytes out, bytes in, nothing in between.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>

/// Asks until it is so, for two minutes at most: a busy machine takes its time.
template <class Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 2400; ++i, usleep(50'000))
    if (condition()) return true;
  return false;
}

class Wire {
 public:
  explicit Wire(int port, double seconds = 120) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{time_t(seconds), suseconds_t((seconds - double(time_t(seconds))) * 1e6)};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    connected = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  bool send(const std::string& bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size());
  }
  /// Until the other side closes, or `until` has come, or time is up.
  std::string receive(const std::string& until = {}) {
    std::string all;
    char buffer[8192];
    while (until.empty() || all.find(until) == all.npos) {
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      all.append(buffer, size_t(n));
    }
    return all;
  }
  bool connected = false;

 private:
  int fd_;
};
