#include "cli/measure.h"

#include <algorithm>

namespace millpond::cli {

Measure::Measure(int epochs) {
  rss_per_epoch.reserve(size_t(epochs));
  epoch_seconds.reserve(size_t(epochs));
}

void Measure::on_train_begin(const Logs&) { steps_ = params().steps; }

void Measure::on_epoch_begin(int, const Logs&) { began_ = seconds_since_start(); }

void Measure::on_epoch_end(int, const Logs&) {
  const double now = seconds_since_start();
  if (epoch_seconds.size() == epoch_seconds.capacity()) return;  // more epochs than were said: nothing may grow here
  if (epoch_seconds.empty()) first_epoch_s = now;
  epoch_seconds.push_back(now - began_);
  last_ = counted_now();
  if (epoch_seconds.size() == 1) after_first_ = last_;
  rss_per_epoch.push_back(resident_now());
}

std::optional<Measure::Allocations> Measure::allocations() const {
  if (!after_first_ || !last_ || epoch_seconds.size() < 2 || steps_ <= 0) return {};
  const double steps = double(steps_) * double(epoch_seconds.size() - 1);
  return Allocations{double(last_->allocations - after_first_->allocations) / steps,
                     double(std::min(last_->taken - after_first_->taken, last_->given - after_first_->given)) / steps};
}

}  // namespace millpond::cli
