// Server: one thread, one poll loop, on 127.0.0.1 at a port the system chooses. Every client has bounds: 8 KiB and five
// seconds for its request, ten seconds without taking a byte of its answer, 64 of them at once. What is sent is shared,
// not copied; a slow reader of events misses some and holds up nobody.
#pragma once
#include <functional>
#include <memory>
#include <string>

namespace millpond::serve {

struct Answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
  bool events = false;  // the stream of events instead of a body
};

struct ServerOptions {
  double head_seconds = 5, idle_seconds = 10, beat_seconds = 10;
  size_t clients = 64, streams = 16;
};

class Server {
 public:
  /// `answer` is called in the server's own thread with what follows the token in the address. Throws Error(kFile) when
  /// there is no port.
  Server(std::function<Answer(const std::string& path)> answer, const ServerOptions& options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  /// "http://127.0.0.1:PORT/TOKEN/"
  std::string address() const;

  /// Sent to every reader of events as soon as it has taken the one before; of several the last.
  void tell(const std::string& event, const std::string& data);
  /// Ends when no client is left and `done` (in the server's thread; empty: always) says so, or after so many seconds.
  void finish(double seconds, std::function<bool()> done = {});
  /// How many read events now: pages that are open.
  size_t streams() const;
  /// Ends when nobody has read events for `grace` seconds (a page that is loaded again is away for a moment), or after
  /// so many seconds.
  void stay(double grace, double seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millpond::serve
