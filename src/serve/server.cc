#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <pthread.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "base/format.h"
#include "millpond/error.h"
#include "serve/http.h"

namespace millpond::serve {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

struct Fd {
  int value = -1;
  Fd() = default;
  explicit Fd(int fd) : value(fd) {}
  Fd(Fd&& other) noexcept : value(std::exchange(other.value, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~Fd() {
    if (value >= 0) close(value);
  }
};

struct Client {
  Fd fd;
  std::string in;                           // until the request has come
  std::string head;                         // of the answer, then events
  std::shared_ptr<const std::string> body;  // after the head
  size_t sent = 0;                          // of head and body
  bool answering = false, events = false;
  uint64_t heard = 0;  // the number of the last event sent
  Time deadline;

  size_t left() const { return head.size() + (body ? body->size() : 0) - sent; }
};

}  // namespace

struct Server::State {
  std::function<Answer(const std::string&)> answer;
  ServerOptions options;
  Guard guard;
  Fd listener, wake;
  std::thread thread;
  std::atomic<bool> stop{false};
  std::mutex mutex;  // of event, number
  std::string event;
  uint64_t number = 0;
  bool finishing = false;
  std::function<bool()> done;
  Time last;
  std::atomic<size_t> open_streams{0};
  double grace = -1;  // staying, where it is not negative

  void nudge() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(wake.value, &one, sizeof one);
  }

  void open() {
    listener = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    wake = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (listener.value < 0 || wake.value < 0 ||
        bind(listener.value, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener.value, 16) != 0 ||
        getsockname(listener.value, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw Error(Code::kFile, format("--live: no port of 127.0.0.1 can be had: {}", std::strerror(errno)))
          .hint("run without --live; the page can be made afterwards");
    guard.port = ntohs(address.sin_port);
    guard.token = make_token();
  }

  void reply(Client& c, int status, std::string_view type, std::shared_ptr<const std::string> body) {
    c.head = response_head(status, type, body->size());
    c.body = std::move(body);
    c.sent = 0;
    c.answering = true;
    c.deadline = Clock::now() + seconds(options.idle_seconds);
  }
  void refuse(Client& c, const Refusal& r) {
    reply(c, r.status, "text/plain; charset=utf-8", std::make_shared<const std::string>(r.text + "\n"));
  }

  void request(Client& c, size_t streams) {
    Request q;
    std::string path;
    const std::string_view head = std::string_view(c.in).substr(0, *end_of_head(c.in));
    if (const std::optional<Refusal> r = parse(head, q)) return refuse(c, *r);
    if (const std::optional<Refusal> r = guard.check(q, path)) return refuse(c, *r);
    c.in.clear();
    Answer a = answer(path);
    if (!a.events) return reply(c, a.status, a.type, a.body ? a.body : std::make_shared<const std::string>());
    if (streams >= options.streams) return refuse(c, {503, "too many pages are open"});
    c.head = response_head(200, "text/event-stream", std::nullopt) + "retry: 1000\n\n";
    c.answering = c.events = true;
    c.deadline = Clock::now() + seconds(options.idle_seconds);
  }

  /// False: the client is done with, or gone.
  bool receive(Client& c, size_t streams) {
    char buffer[4096];
    const ssize_t n = recv(c.fd.value, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n == 0) return c.answering && !c.events;  // has said all it had to; may still read
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (c.answering) return true;  // what comes after the request is not for us
    c.in.append(buffer, size_t(n));
    if (end_of_head(c.in))
      request(c, streams);
    else if (c.in.size() > kLongestHead)
      refuse(c, {431, "the request is too long"});
    return true;
  }

  bool push(Client& c) {
    while (c.left() > 0) {
      const bool in_head = c.sent < c.head.size();
      const std::string_view part =
          in_head ? std::string_view(c.head).substr(c.sent) : std::string_view(*c.body).substr(c.sent - c.head.size());
      const ssize_t n = send(c.fd.value, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      c.sent += size_t(n);
      c.deadline = Clock::now() + seconds(options.idle_seconds);
    }
    if (!c.events) {
      shutdown(c.fd.value, SHUT_WR);
      return false;
    }
    c.head.clear();
    c.sent = 0;
    return true;
  }

  void next_event(Client& c, Time now) {
    if (!c.events || c.left() > 0) return;
    const std::lock_guard lock(mutex);
    if (c.heard < number) {
      c.head = event;
      c.heard = number;
    } else if (c.deadline - now < seconds(options.idle_seconds - options.beat_seconds)) {
      c.head = ": still here\n\n";  // so that a reader that has gone is noticed
    }
  }

  void run() {
    std::list<Client> clients;
    std::vector<pollfd> fds;
    Time streamed = Clock::now();
    while (!stop) {
      const Time before = Clock::now();
      size_t streams = 0;
      fds.assign({{wake.value, POLLIN, 0}, {listener.value, POLLIN, 0}});
      Time next = before + seconds(1);
      for (Client& c : clients) {
        next_event(c, before);
        streams += c.events;
        fds.push_back({c.fd.value, short(POLLIN | (c.answering && c.left() > 0 ? POLLOUT : 0)), 0});
        if (!c.events || c.left() > 0) next = std::min(next, c.deadline);
      }
      const int wait = int(std::clamp<int64_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(next - before).count() + 1, 1, 1000));
      if (poll(fds.data(), nfds_t(fds.size()), wait) < 0 && errno != EINTR) return;
      if (fds[0].revents) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t n = read(wake.value, &count, sizeof count);
      }
      const Time now = Clock::now();
      size_t i = 2;
      for (auto c = clients.begin(); c != clients.end(); ++i) {
        bool keep = true;
        if (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) keep = receive(*c, streams);
        if (keep && c->answering && c->left() > 0) keep = push(*c);
        if (keep && now > c->deadline && !(c->events && c->left() == 0)) {
          if (!c->answering && !c->in.empty()) {
            refuse(*c, {408, "the request took too long"});
            push(*c);
          }
          keep = false;
        }
        c = keep ? std::next(c) : clients.erase(c);
      }
      if (fds[1].revents & POLLIN) {
        for (int n = 0; n < 16; ++n) {
          Fd fd(accept4(listener.value, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
          if (fd.value < 0) break;
          if (clients.size() >= options.clients) continue;  // closed at once
          clients.push_back({std::move(fd), {}, {}, {}, 0, false, false, 0, now + seconds(options.head_seconds)});
        }
      }
      const std::lock_guard lock(mutex);
      open_streams = size_t(std::count_if(clients.begin(), clients.end(), [](const Client& c) { return c.events; }));
      if (open_streams > 0) streamed = now;
      if (grace >= 0 && (now > last || now > streamed + seconds(grace))) return;
      if (finishing && (now > last || (clients.empty() && (!done || done())))) return;
    }
  }
};

Server::Server(std::function<Answer(const std::string&)> answer, const ServerOptions& options)
    : state_(std::make_unique<State>()) {
  state_->answer = std::move(answer);
  state_->options = options;
  state_->open();
  // Signals are for the thread that runs the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  state_->thread = std::thread([s = state_.get()] { s->run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Server::~Server() {
  state_->stop = true;
  state_->nudge();
  if (state_->thread.joinable()) state_->thread.join();
}

int Server::port() const { return state_->guard.port; }
std::string Server::address() const {
  return format("http://127.0.0.1:{}/{}/", state_->guard.port, state_->guard.token);
}

void Server::tell(const std::string& event, const std::string& data) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->event = format("event: {}\ndata: {}\n\n", event, data);
    ++state_->number;
  }
  state_->nudge();
}

size_t Server::streams() const { return state_->open_streams; }

void Server::stay(double grace, double s) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->grace = grace;
    state_->last = Clock::now() + seconds(s);
  }
  state_->nudge();
  if (state_->thread.joinable()) state_->thread.join();
  const Fd closed = std::move(state_->listener);
}

void Server::finish(double s, std::function<bool()> done) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->done = std::move(done);
    state_->finishing = true;
    state_->last = Clock::now() + seconds(s);
  }
  state_->nudge();
  if (state_->thread.joinable()) state_->thread.join();
  const Fd closed = std::move(state_->listener);
}

}  // namespace millpond::serve
