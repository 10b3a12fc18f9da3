// Budget: how much a search may still do. It counts steps of work, so that a result does not depend on how busy the
// machine is; the clock is a second, wider limit for a processor far slower than the one the rate was taken from.
#pragma once
#include <chrono>
#include <cstdint>

namespace millpond::plan {

class Budget {
 public:
  // About 2e8 were measured on the slowest machine at hand.
  static constexpr double kStepsPerSecond = 1.2e8;

  explicit Budget(double seconds)
      : left_(int64_t(seconds * kStepsPerSecond)),
        end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                    std::chrono::duration<double>(seconds))) {}

  int64_t left() const { return stopped_ ? 0 : left_; }
  void spend(int64_t steps) {
    left_ -= steps;
    if ((unread_ += steps) < kReadClockEvery) return;
    unread_ = 0;
    if (std::chrono::steady_clock::now() > end_) stopped_ = true;
  }
  bool exhausted() const { return stopped_ || left_ <= 0; }

 private:
  static constexpr int64_t kReadClockEvery = 100'000;
  int64_t left_;
  int64_t unread_ = 0;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace millpond::plan
