// Budget: how much a search may still do. It counts steps of work, so that a plan does not depend on how busy the
// machine is. The clock is a second, far wider limit, for a processor much slower than those the rate was taken from.
#pragma once
#include <chrono>
#include <cstdint>

namespace millpond::plan {

class Budget {
 public:
  explicit Budget(double seconds) : all_(int64_t(seconds * kStepsPerSecond)), left_(all_) {
    using Clock = std::chrono::steady_clock;
    end_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kPatience * seconds));
  }

  int64_t left() const { return stopped_ ? 0 : left_; }
  double seconds_spent() const { return double(all_ - left_) / kStepsPerSecond; }
  bool exhausted() const { return stopped_ || left_ <= 0; }
  void spend(int64_t steps) {
    left_ -= steps;
    if ((unread_ += steps) < kReadClockEvery) return;
    unread_ = 0;
    stopped_ = stopped_ || std::chrono::steady_clock::now() > end_;
  }

 private:
  static constexpr double kStepsPerSecond = 1.2e8;  // about 2e8 were measured on a slow machine with nothing else to do
  static constexpr double kPatience = 10;
  static constexpr int64_t kReadClockEvery = 100'000;
  int64_t all_, left_;
  int64_t unread_ = 0;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace millpond::plan
