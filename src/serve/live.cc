#include "serve/live.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pthread.h>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/format.h"
#include "base/temporary_folder.h"
#include "millpond/error.h"
#include "report/page.h"
#include "report/source.h"
#include "runfile/copy.h"
#include "runfile/reader.h"
#include "serve/metrics.h"
#include "serve/server.h"

namespace millpond::serve {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr auto kEvery = std::chrono::milliseconds(1000);
constexpr auto kInterest = std::chrono::seconds(30);  // after the last request nobody looks any more

std::string shell() {
  std::string page(report::page_template());
  const auto put = [&](std::string_view mark, std::string_view text) {
    if (const size_t at = page.find(mark); at != page.npos) page.replace(at, mark.size(), text);
  };
  put("<!--millpond:text-->", "Watching… the program has not been looked at yet.");
  put("millpond:title", "Millpond, live");
  return page;
}

}  // namespace

struct LivePage::State {
  std::string file;
  const TemporaryFolder folder{"--live"};
  const std::string draft = folder.path() + "/copy.pond";
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, streamed = false;
  Clock::time_point asked = Clock::now() - kInterest;
  std::shared_ptr<const std::string> page, document, metrics;
  uint64_t version = 0, served = 0;  // served: the last version that a page has fetched
  timespec seen{};
  off_t size = -1;
  std::unique_ptr<Server> server;
  std::thread thread;

  Answer answer(const std::string& path) {
    const std::lock_guard lock(mutex);
    const bool known = path.empty() || path == "data" || path == "events" || path == "metrics";
    if (!known)
      return {404, "text/plain; charset=utf-8", std::make_shared<const std::string>("there is no such page\n")};
    asked = Clock::now();
    changed.notify_all();
    if (path.empty()) return {200, "text/html; charset=utf-8", page};
    if (path == "events") {
      streamed = true;
      return {200, "", nullptr, true};
    }
    const std::shared_ptr<const std::string>& body = path == "data" ? document : metrics;
    if (!body)
      return {503, "text/plain; charset=utf-8",
              std::make_shared<const std::string>("the program has not been looked at yet\n")};
    if (path == "data") served = version;
    return {200, path == "data" ? "application/octet-stream" : kMetricsType, body};
  }

  bool news() {
    struct stat facts{};
    if (stat(file.c_str(), &facts) != 0) return false;
    const bool fresh =
        facts.st_size != size || facts.st_mtim.tv_sec != seen.tv_sec || facts.st_mtim.tv_nsec != seen.tv_nsec;
    size = facts.st_size;
    seen = facts.st_mtim;
    return fresh;
  }

  void look() {
    if (!news()) return;
    try {
      runfile::copy(file, draft);
      report::RunContents run = report::read_contents(runfile::Reader(draft), fs::path(file).filename().string());
      report::answer_early(run);
      auto made = std::make_shared<const std::string>(report::packed(
          report::page_document(run, report::stored_source(run.sources, report::Indent::kKept), {.live = true})));
      auto told = std::make_shared<const std::string>(openmetrics(run));
      const std::lock_guard lock(mutex);
      document = std::move(made);
      metrics = std::move(told);
      ++version;
    } catch (const Error&) {
      size = -1;  // half written just now, or no memory: the next look tries again
      return;
    }
    server->tell("news", std::to_string(version));
  }

  void work() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (somebody()) {
        lock.unlock();
        const Clock::time_point began = Clock::now();
        look();
        // A large file takes its time: at most a fifth of a processor goes into looking.
        const auto pause = std::max<Clock::duration>(kEvery, 4 * (Clock::now() - began));
        lock.lock();
        changed.wait_for(lock, document ? pause : std::chrono::milliseconds(100), [&] { return stopping; });
      } else {
        changed.wait(lock);
      }
    }
  }
  /// A page that is open asks again when its stream ends, so a stream in the last half hour counts as interest.
  bool somebody() const {
    return Clock::now() - asked < kInterest || (streamed && Clock::now() - asked < std::chrono::minutes(30));
  }
};

LivePage::LivePage(std::string file) : state_(std::make_unique<State>()) {
  State* s = state_.get();
  s->file = std::move(file);
  s->page = std::make_shared<const std::string>(shell());
  s->server = std::make_unique<Server>([s](const std::string& path) { return s->answer(path); });
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  s->thread = std::thread([s] { s->work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LivePage::~LivePage() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
}

std::string LivePage::address() const { return state_->server->address(); }

bool LivePage::end() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  if (state_->thread.joinable()) state_->thread.join();
  state_->size = -1;
  if (state_->somebody()) state_->look();
  state_->server->tell("over", std::to_string(state_->version));
  return state_->server->streams() > 0;
}

void LivePage::stay(double grace) { state_->server->stay(grace, 3600); }

void LivePage::finish() {
  // A page that hears of the end fetches the last document with a request of its own.
  state_->server->finish(state_->somebody() ? 2 : 0, [s = state_.get()] {
    const std::lock_guard lock(s->mutex);
    return s->served == s->version;
  });
}

}  // namespace millpond::serve
