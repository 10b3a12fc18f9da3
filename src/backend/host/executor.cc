#include "backend/host/executor.h"

#include <cstring>

#include "base/assert.h"

namespace millpond::backend::host {

void run_alone(const Kernel& kernel, const Arguments& arguments) {
  const std::span<const int> phases = kernel.phases();
  for (int phase = 0; phase < int(phases.size()); ++phase)
    for (int block = 0; block < phases[phase]; ++block) kernel.run(arguments, phase, block, 0);
}

Executor::Executor(Script script) : script_(std::move(script)) {
  for (const Script::Call& c : script_.calls) {
    Kernel& kernel = as_host(*c.kernel);
    kernel.generate();
    const auto phases = kernel.phases();
    for (size_t p = 0; p < phases.size(); ++p) {
      const bool shared = script_.threads > 1 && phases[p] > 1;
      const int s = int(steps_.size());
      steps_.push_back({&kernel, c.arguments, int(p), phases[p]});
      if (!shared && !stages_.empty() && !stages_.back().shared)
        stages_.back().last = s + 1;
      else
        stages_.push_back({s, s + 1, shared});
      shared_ |= shared;
    }
  }
  if (shared_) {
    claims_ = std::make_unique<Claim[]>(stages_.size() * size_t(script_.threads));
    done_ = std::make_unique<Done[]>(stages_.size());
  }
  for (const Script::Sum& s : script_.sums)
    sums_.push_back({reinterpret_cast<const float*>(script_.outputs[size_t(s.output)].at), s.weight});
}

// Whoever reads bytes that nobody holds any more reads NaN. Debug builds, one thread.
void Executor::spoil_after(const Kernel* kernel) const {
  for (const Script::Dead& d : script_.dead)
    if (script_.calls[size_t(d.call)].kernel == kernel) std::memset(d.bytes.at, 0xff, size_t(d.bytes.size.value));
}

void Executor::run(Team& team, double* sums) {
  if (shared_) {
    together(team);
  } else {
    for (const Step& s : steps_) {
      for (int b = 0; b < s.blocks; ++b) s.kernel->run(s.arguments, s.phase, b, 0);
#ifdef MILLPOND_CHECKS
      if (&s == &steps_.back() || (&s + 1)->kernel != s.kernel) spoil_after(s.kernel);
#endif
    }
  }
  if (!sums) return;
  for (const Summed& s : sums_) *sums++ += double(*s.value) * s.weight;
}

void Executor::together(Team& team) {
  const int threads = script_.threads;
  MP_CHECK(team.size() == threads);
  for (size_t i = 0; i < stages_.size(); ++i) {
    done_[i].blocks.store(0, std::memory_order_relaxed);
    if (!stages_[i].shared) continue;
    const int blocks = steps_[stages_[i].first].blocks;
    for (int m = 0; m < threads; ++m) {
      Claim& c = claims_[i * threads + m];
      c.next.store(int(int64_t(blocks) * m / threads), std::memory_order_relaxed);
      c.end = int(int64_t(blocks) * (m + 1) / threads);
    }
  }
  team.run([this](int m) { member(m); });
}

void Executor::member(int m) noexcept {
  const int threads = script_.threads;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    std::atomic<int>& done = done_[i].blocks;
    int all = 1;
    if (!stage.shared) {
      if (m == 0) {
        for (int j = stage.first; j < stage.last; ++j) {
          const Step& s = steps_[j];
          for (int b = 0; b < s.blocks; ++b) s.kernel->run(s.arguments, s.phase, b, 0);
        }
        done.store(1, std::memory_order_release);
        continue;
      }
    } else {
      const Step& s = steps_[stage.first];
      all = s.blocks;
      int mine = 0;
      for (int k = 0; k < threads; ++k) {
        Claim& c = claims_[i * threads + (m + k) % threads];
        for (int b; c.next.load(std::memory_order_relaxed) < c.end &&
                    (b = c.next.fetch_add(1, std::memory_order_relaxed)) < c.end;
             ++mine)
          s.kernel->run(s.arguments, s.phase, b, m);
      }
      if (mine) done.fetch_add(mine, std::memory_order_acq_rel);
    }
    for (Spin spin; done.load(std::memory_order_acquire) != all;) spin.wait();
  }
}

}  // namespace millpond::backend::host
