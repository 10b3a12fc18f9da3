#include "train/interrupt.h"

#include <csignal>
#include <mutex>

#include "millpond/error.h"
#include "millpond/history.h"

namespace millpond {
namespace train {

std::atomic<bool> Interrupt::asked_{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

namespace {

struct Handler {
  std::mutex mutex;
  int trainings = 0;               // that live now, of all threads
  bool installed = false;          // ours, by the first of them
  struct sigaction replaced = {};  // what to put back
} handler;
thread_local int trainings_here = 0;

void on_interrupt(int) { Interrupt::ask(); }

}  // namespace

Interrupt::Interrupt() {
  if (trainings_here == 0 && asked())
    throw Error(Code::kInterrupted, "fit: the training before this one was interrupted by Ctrl-C")
        .hint("look at History::interrupted to leave a loop, or call clear_interrupt() to train on");
  const std::lock_guard lock(handler.mutex);
  ++trainings_here;
  if (handler.trainings++ > 0) return;
  sigaction(SIGINT, nullptr, &handler.replaced);
  handler.installed = handler.replaced.sa_handler != SIG_IGN;
  if (!handler.installed) return;
  struct sigaction ours{};
  ours.sa_handler = on_interrupt;
  ours.sa_flags = int(SA_RESETHAND);
  sigemptyset(&ours.sa_mask);
  sigaction(SIGINT, &ours, nullptr);
}

Interrupt::~Interrupt() {
  const std::lock_guard lock(handler.mutex);
  --trainings_here;
  if (--handler.trainings > 0 || !handler.installed) return;
  struct sigaction now{};
  sigaction(SIGINT, nullptr, &now);
  // A handler that a callback has installed meanwhile stays. The default is what SA_RESETHAND left of ours.
  if (now.sa_handler == on_interrupt || now.sa_handler == SIG_DFL) sigaction(SIGINT, &handler.replaced, nullptr);
}

}  // namespace train

void clear_interrupt() { train::Interrupt::clear(); }

}  // namespace millpond
