#include "backend/host/executor.h"

#include <cstring>

#include "backend/host/loop.h"
#include "base/assert.h"

namespace millpond::backend::host {

void run_alone(const Kernel& kernel, const Arguments& arguments) {
  const std::span<const int> phases = kernel.phases();
  for (int phase = 0; phase < int(phases.size()); ++phase)
    for (int block = 0; block < phases[phase]; ++block) kernel.run(arguments, phase, block, 0);
}

Sequence::Sequence(Script s, int count) : script(std::move(s)), threads(count) {
  const auto add = [&](const Step& step, bool is_shared) {
    const int at = int(steps.size());
    steps.push_back(step);
    if (!is_shared && !stages.empty() && !stages.back().shared && !stages.back().loop)
      stages.back().last = at + 1;
    else
      stages.push_back({at, at + 1, is_shared && !step.loop, is_shared ? step.loop : nullptr});
    shared |= is_shared;
  };
  for (size_t c = 0; c < script.calls.size(); ++c) {
    const Script::Call& call = script.calls[c];
    if (!call.kernel) {
      loops.push_back(std::make_unique<Loop>(std::move(script.flows[size_t(call.flow)]), call.arguments, threads));
      add({nullptr, call.arguments, 0, 1, int(c), loops.back().get()}, threads > 1 && loops.back()->shared());
      continue;
    }
    Kernel& kernel = as_host(*call.kernel);
    kernel.generate();
    const auto phases = kernel.phases();
    for (size_t p = 0; p < phases.size(); ++p)
      add({&kernel, call.arguments, int(p), phases[p], int(c), nullptr}, threads > 1 && phases[p] > 1);
  }
  if (!shared) return;
  claims = std::make_unique<Claim[]>(stages.size() * size_t(threads));
  done = std::make_unique<Done[]>(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    const int64_t blocks = steps[size_t(stages[i].first)].blocks;
    for (int m = 0; m < threads; ++m) {
      Claim& c = claims[i * size_t(threads) + size_t(m)];
      c.begin = int(blocks * m / threads);
      c.size = int(blocks * (m + 1) / threads) - c.begin;
    }
  }
}
Sequence::~Sequence() = default;

void Sequence::reset() {
  for (const auto& l : loops) l->reset();
  if (!shared) return;
  for (size_t i = 0; i < stages.size(); ++i) {
    done[i].blocks.store(0, std::memory_order_relaxed);
    for (int m = 0; m < threads; ++m) claims[i * size_t(threads) + size_t(m)].next.store(0, std::memory_order_relaxed);
  }
}

// Whoever reads bytes that nobody holds any more reads NaN. Debug builds, one thread.
void Sequence::spoil_after(int call) const {
  for (const Script::Dead& d : script.dead)
    if (d.call == call) std::memset(d.bytes.at, 0xff, size_t(d.bytes.size.value));
}

inline void Sequence::run_step(const Step& s) const {
  if (s.loop) [[unlikely]]
    return s.loop->alone();
  for (int b = 0; b < s.blocks; ++b) s.kernel->run(s.arguments, s.phase, b, 0);
}

void Sequence::alone() {
  for (const Step& s : steps) {
    run_step(s);
#ifdef MILLPOND_CHECKS
    if (&s == &steps.back() || (&s + 1)->call != s.call) spoil_after(s.call);
#endif
  }
}

void Sequence::throw_if_failed() const {
  for (const Step& s : steps) {
    if (s.kernel) s.kernel->throw_if_failed();
    if (s.loop)
      for (const auto& body : s.loop->bodies) body->throw_if_failed();
  }
}

void Sequence::member(int m, int64_t round) noexcept {
  if (!shared) {  // a body of little work, in a loop that members run together: never made, because such a loop is not
    if (m == 0) alone();
    return;
  }
  for (size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    std::atomic<int64_t>& ended = done[i].blocks;
    int64_t all = 1;
    if (stage.loop) {
      stage.loop->member(m, round);
      if (m == 0) {
        ended.store(round + 1, std::memory_order_release);
        continue;
      }
    } else if (!stage.shared) {
      if (m == 0) {
        for (int j = stage.first; j < stage.last; ++j) run_step(steps[size_t(j)]);
        ended.store(round + 1, std::memory_order_release);
        continue;
      }
    } else {
      const Step& s = steps[size_t(stage.first)];
      all = s.blocks;
      int64_t mine = 0;
      for (int k = 0; k < threads; ++k) {
        Claim& c = claims[i * size_t(threads) + size_t((m + k) % threads)];
        const int64_t first = round * c.size, end = first + c.size;
        for (int64_t b = c.next.load(std::memory_order_relaxed); b < end;)
          if (c.next.compare_exchange_weak(b, b + 1, std::memory_order_relaxed)) {
            s.kernel->run(s.arguments, s.phase, c.begin + int(b - first), m);
            ++mine;
            b = c.next.load(std::memory_order_relaxed);
          }
      }
      if (mine) ended.fetch_add(mine, std::memory_order_acq_rel);
    }
    for (Spin spin; ended.load(std::memory_order_acquire) < all * (round + 1);) spin.wait();
  }
}

Executor::Executor(Script script) : all_(std::move(script), script.threads) {
  for (const Script::Sum& s : all_.script.sums)
    sums_.push_back({reinterpret_cast<const float*>(all_.script.outputs[size_t(s.output)].at), s.weight});
}

void Executor::run(Team& team, double* sums) {
  if (all_.shared) {
    MP_CHECK(team.size() == all_.threads);
    all_.reset();
    team.run([this](int m) { all_.member(m, 0); });
  } else {
    all_.alone();
  }
#ifdef MILLPOND_CHECKS
  all_.throw_if_failed();
#endif
  if (!sums) return;
  for (const Summed& s : sums_) *sums++ += double(*s.value) * s.weight;
}

}  // namespace millpond::backend::host
