#include "data/queue.h"

#include <pthread.h>

#include "base/team.h"

namespace millpond::data {
namespace {

Bytes cost_of_element(const Element& e) {
  Bytes sum;
  for (const Tensor& t : e) sum += Pool::cost(t.bytes());
  return sum;
}

}  // namespace

struct Queue::Worker final : Waiter {
  Worker(Queue& q, int n) : queue(q), number(n) {}
  bool stopping() const override { return queue.paused_ || queue.cancelled_; }
  // Somebody waits for just this element, and nobody waits for that one without need. A queue that pauses wants its
  // workers to finish.
  bool urgent() const override {
    if (queue.paused_) return true;
    if (!queue.consumer_waits_ || (queue.o_.ordered && ticket.load() != queue.head_seen_.load())) return false;
    const Waiter* above = queue.consumer_.load();
    return !above || above->urgent();
  }
  Queue& queue;
  int number;
  std::atomic<int64_t> ticket{-1};
  RowClaim claim;
  Element mine;
  std::thread thread;
};

Queue::Queue(Run& run, Stage& stage, std::unique_ptr<Iterator> input, QueueOptions o)
    : Iterator(run, stage),
      input_(std::move(input)),
      o_(std::move(o)),
      tune_threads_(o_.threads < 0),
      tune_depth_(o_.depth < 0) {
  stage.ask(input_->stage());
  splits_ = input_->splits();
  if (splits_ && !o_.work && o_.depth < 0) tune_threads_ = true;
  most_threads_ = tune_threads_ ? std::max(1, run.threads) : int(std::max<int64_t>(1, o_.threads));
  active_ = tune_threads_ ? 1 : most_threads_;
  depth_ = tune_depth_ ? 2 * active_ : std::max<int64_t>(1, o_.depth);
  ring_.resize(size_t(tune_depth_ ? std::max<int64_t>(o_.most, 2 * most_threads_) : depth_));
  if (o_.ceiling.value == 0) o_.ceiling = run.pool->limit();
}

Queue::~Queue() {
  cancel();
  for (const auto& w : workers_) w->thread.join();
}

void Queue::cancel() {
  {
    const std::lock_guard lock(lock_);
    cancelled_ = true;
  }
  ready_.notify_all();
  room_.notify_all();
  pool().poke();
  input_->cancel();
}

void Queue::warm() {
  const std::lock_guard lock(lock_);
  start();
}

void Queue::start() {
  if (!paused_) return;
  paused_ = false;
  looked_ns_ = now_ns();
  taken_ = waits_ = wait_ns_ = full_ = 0;
  while (int(workers_.size()) < active_) add_worker();
  room_.notify_all();
}

void Queue::add_worker() {
  workers_.push_back(std::make_unique<Worker>(*this, int(workers_.size())));
  Worker& w = *workers_.back();
  w.thread = std::thread([this, &w] { serve(w); });
  stage_.threads.store(active_, std::memory_order_relaxed);
}

void Queue::pause() {
  {
    std::unique_lock lock(lock_);
    paused_ = true;
    room_.notify_all();
    pool().poke();
    idle_.wait(lock, [&] { return busy_ == 0; });
  }
}

void Queue::begin(uint64_t key) {
  pause();
  {
    const std::lock_guard lock(lock_);
    for (Slot& s : ring_) {
      s.e.clear();
      s.error = nullptr;
      s.ready = s.left_out = false;
    }
    head_ = tail_ = done_ = base_ = in_work_ = 0;
    head_seen_ = 0;
    end_ = -1;
    bytes_ = {};
    key_ = key;
  }
  input_->rewind(key);
}

int64_t Queue::pass(int64_t n) {
  if (!paused_ || o_.ignore_errors) return Iterator::pass(n);
  const int64_t done = input_->skip(n);
  base_ += done;
  return done;
}

bool Queue::may_pull() const {
  const int64_t outstanding = tail_ - head_;
  if (outstanding == 0) return true;
  if (outstanding >= depth_ || outstanding >= int64_t(ring_.size())) return false;
  return bytes_ + largest_ * (in_work_ + 1) <= o_.ceiling && pool().has_room(largest_ * 2);
}

void Queue::serve(Worker& me) {
  pthread_setname_np(pthread_self(), ("mp-" + stage_.name).substr(0, 15).c_str());
  touch_stack();
  this_waiter = &me;
  const auto off = [&] { return paused_ || end_ >= 0 || me.number >= active_; };
  for (;;) {
    {
      std::unique_lock lock(lock_);
      ++idle_workers_;
      room_.wait(lock, [&] { return cancelled_ || !off(); });
      --idle_workers_;
      if (cancelled_) return;
    }
    int64_t ticket;
    std::exception_ptr error;
    bool left_out = false;
    {
      const std::lock_guard pulling(pull_);
      {
        std::unique_lock lock(lock_);
        ++idle_workers_;
        room_.wait(lock, [&] { return cancelled_ || off() || may_pull(); });
        --idle_workers_;
        if (cancelled_) return;
        if (off()) continue;
        ticket = tail_++;
        me.ticket = ticket;
        ++busy_;
        ++in_work_;
      }
      bool there = false;
      try {
        there = splits_ ? input_->claim(me.claim) : input_->next(me.mine);
      } catch (const Stopped&) {
      } catch (...) {
        error = std::current_exception();
      }
      if (!there || error) {
        const std::lock_guard lock(lock_);
        end_ = error ? ticket + 1 : ticket;
        if (!error) {
          tail_ = ticket;
          me.mine.clear();
          --busy_;
          --in_work_;
          if (busy_ == 0) idle_.notify_all();
          ready_.notify_all();
          continue;
        }
      }
    }
    if (!error && (o_.work || splits_)) {
      const int64_t start = now_ns();
      try {
        if (splits_) input_->gather(me.claim, me.mine);
        if (o_.work) o_.work(me.mine, base_ + ticket, key_);
      } catch (const Stopped&) {
        error = std::current_exception();
      } catch (...) {
        if (o_.ignore_errors) {
          left_out = true;
          stage_.left_out.fetch_add(1, std::memory_order_relaxed);
          me.mine.clear();
        } else {
          try {
            rethrow_with_place(stage_, base_ + ticket);
          } catch (...) {
            error = std::current_exception();
          }
        }
      }
      if (o_.work) stage_.work_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
    }
    if (error) me.mine.clear();
    hand_over(me.mine, stage_);
    {
      const std::lock_guard lock(lock_);
      const int64_t at = o_.ordered ? ticket : done_;
      ++done_;
      Slot& s = slot(at);
      std::swap(s.e, me.mine);
      s.error = std::move(error);  // the consumer's alone from here on
      s.left_out = left_out;
      s.bytes = cost_of_element(s.e);
      s.ready = true;
      bytes_ += s.bytes;
      largest_ = std::max(largest_, s.bytes);
      --in_work_;
      --busy_;
      if (busy_ == 0 && paused_) idle_.notify_all();
      if (consumer_waits_ && at == head_) ready_.notify_one();
    }
  }
}

bool Queue::get(Element& e) {
  e.clear();
  std::unique_lock lock(lock_);
  start();
  for (;;) {
    if (cancelled_) throw Stopped{};
    if (head_ == end_) return false;
    Slot& s = slot(head_);
    if (!s.ready) {
      const int64_t start_ns = now_ns();
      consumer_ = this_waiter;
      consumer_waits_ = true;
      pool().poke();
      ready_.wait(lock, [&] { return s.ready || head_ == end_ || cancelled_; });
      consumer_waits_ = false;
      const int64_t waited = now_ns() - start_ns;
      stage_.waited_ns.fetch_add(waited, std::memory_order_relaxed);
      stage_.waits.fetch_add(1, std::memory_order_relaxed);
      ++waits_;
      wait_ns_ += waited;
      continue;
    }
    if (tail_ - head_ >= depth_) ++full_;
    s.ready = false;
    std::swap(e, s.e);
    bytes_ -= s.bytes;
    ++head_;
    head_seen_ = head_;
    const std::exception_ptr error = std::move(s.error);
    s.error = nullptr;
    if (++taken_ % 16 == 0) tune();
    if (idle_workers_ > 0) room_.notify_all();
    if (error) {
      lock.unlock();
      std::rethrow_exception(error);
    }
    if (s.left_out) {
      s.left_out = false;
      continue;
    }
    return true;
  }
}

void Queue::tell(const char* why, double share) {
  if (why == told_ && active_ == told_threads_ && depth_ == told_depth_) return;  // text is memory: only for news
  told_ = why, told_threads_ = active_, told_depth_ = depth_;
  std::string text;
  if (o_.work || splits_) text = format("{} thread{} of {}", active_, active_ == 1 ? "" : "s", most_threads_);
  text += format("{}{} deep", text.empty() ? "" : ", ", depth_);
  stage_.threads.store(active_, std::memory_order_relaxed);
  stage_.decide(format("{}: {} ({:.0f} % of the time waited for)", text, why, 100 * share));
}

// Looks every few elements, at most 20 times a second. Only how much is done ahead changes, never what comes out.
void Queue::tune() {
  if (!tune_threads_ && !tune_depth_) return;
  const int64_t now = now_ns(), passed = now - looked_ns_;
  if (passed < 50'000'000) return;
  const double share = std::min(1.0, double(wait_ns_) / double(passed));
  const bool bytes_bind = bytes_ + largest_ * (in_work_ + 1) > o_.ceiling || !pool().has_room(largest_ * 2);
  if (waits_ > 0 && share > 0.02) {
    quiet_ = 0;
    if (bytes_bind) {
      tell("the byte bound is reached", share);
    } else if (tune_threads_ && active_ < most_threads_) {
      ++active_;
      keep_threads_ = active_;
      depth_ = std::max(depth_, std::min<int64_t>(4 * active_, int64_t(ring_.size())));
      if (int(workers_.size()) < active_) add_worker();
      tell("one more thread, the consumer waited", share);
    } else if (tune_depth_ && full_ > 0 && share < 0.5 &&
               depth_ * 2 <=
                   int64_t(ring_.size())) {  // one who waits most of the time waits for the work, not for room
      depth_ *= 2;
      tell("deeper, it was full and then empty", share);
    } else {
      tell("no more to gain here, the work itself is the limit", share);
    }
  } else if (tune_threads_ && active_ > 1 && full_ * 10 > taken_ * 9 && ++quiet_ >= 20 && active_ > keep_threads_ - 1) {
    quiet_ = 0;
    --active_;  // once: when it is raised again it stays
    tell("one thread less, the queue was always full", share);
  } else if (!told_) {
    tell("ahead of the consumer", share);
  }
  looked_ns_ = now;
  taken_ = waits_ = wait_ns_ = full_ = 0;
}

}  // namespace millpond::data
