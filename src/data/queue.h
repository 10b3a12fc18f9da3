// Queue: the one place where a pipeline has threads. Workers pull elements from the input, one at a time and in order,
// work on them side by side, and put them where the consumer finds them, in order (or, if told so, as they are ready).
//
//   input ──pull (one worker at a time)──▶ work (all of them) ──▶ | ready | ready | in work | ... |──▶ next()
//                                                                   head                    tail
//
// Admission is by bytes: a worker pulls only while what is ready and what is in work (each counted as the largest
// element so far) stays under the ceiling; with nothing outstanding it always may, so one element is always on its way.
// Errors lie in the queue in the place of their element. prefetch is a queue with one worker that only pulls; a
// parallel map one whose work is the function. Batches of numbered rows are pulled as numbers, and read side by side.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <thread>

#include "data/node.h"

namespace millpond::data {

struct QueueOptions {
  int64_t threads = 1;  // or AUTOTUNE
  int64_t depth = 2;    // elements outstanding, or AUTOTUNE
  int64_t most = 256;   // of them ever
  Bytes ceiling = {};   // 0: only the budget counts
  bool ordered = true;
  bool ignore_errors = false;
  std::function<void(Element&, int64_t index, uint64_t key)> work = {};
};

class Queue final : public Iterator {
 public:
  Queue(Run& run, Stage& stage, std::unique_ptr<Iterator> input, QueueOptions o);
  ~Queue() override;
  void cancel() override;
  void warm() override;

 protected:
  void begin(uint64_t key) override;
  bool get(Element& e) override;
  int64_t pass(int64_t n) override;

 private:
  struct Slot {
    Element e;
    std::exception_ptr error;
    Bytes bytes;
    bool ready = false, left_out = false;
  };
  struct Worker;

  // All with lock_ held.
  Slot& slot(int64_t i) { return ring_[size_t(i % int64_t(ring_.size()))]; }
  bool may_pull() const;
  void start();
  void add_worker();
  void tune();
  void tell(const char* why, double share);

  void serve(Worker& me);
  void pause();

  std::unique_ptr<Iterator> input_;
  QueueOptions o_;
  bool tune_threads_, tune_depth_;
  bool splits_ = false;  // the input's work can be done side by side
  int most_threads_;

  std::mutex pull_;  // one pulls at a time; taken before lock_
  std::mutex lock_;
  std::condition_variable ready_, room_, idle_;
  std::vector<Slot> ring_;
  int64_t head_ = 0, tail_ = 0, done_ = 0,
          end_ = -1;  // next to give; next to pull; finished; how many there are, once known
  int64_t base_ = 0;  // elements passed over before the first pull
  int64_t in_work_ = 0, depth_ = 2;
  int busy_ = 0, idle_workers_ = 0, active_ = 1;
  Bytes bytes_, largest_;
  std::atomic<bool> paused_{true}, cancelled_{false}, consumer_waits_{false};
  std::atomic<const Waiter*> consumer_{nullptr};
  std::atomic<int64_t> head_seen_{0};
  uint64_t key_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;

  // Since the last look of the tuner.
  int64_t taken_ = 0, waits_ = 0, wait_ns_ = 0, looked_ns_ = 0, full_ = 0;
  int quiet_ = 0, keep_threads_ = 1;
  const char* told_ = nullptr;
  int told_threads_ = 0;
  int64_t told_depth_ = 0;
};

}  // namespace millpond::data
