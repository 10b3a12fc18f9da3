// Causes that live on the GPU: what a framework's pool holds there beyond what is in use.
#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"

namespace millpond::verdict {
namespace {

struct PoolFacts {
  const Pool* pool = nullptr;
  double reserved = 0, in_use = 0, peak = 0, split = 0, largest = 0, limit = 0;
  int64_t retries = 0, ooms = 0;  // since the first reading
  double context = 0;             // what the driver says this process has beyond the pool; 0: it does not
  double free() const { return std::max(0.0, reserved - in_use); }
};

std::optional<PoolFacts> facts_of(const Case& c) {
  if (c.evidence.pools.empty() || c.evidence.pools.front().points.empty()) return {};
  PoolFacts f;
  f.pool = &c.evidence.pools.front();
  const Pool::Point &first = f.pool->points.front(), &last = f.pool->points.back();
  const auto bytes = [](const std::optional<Bytes>& b) { return b ? double(b->value) : 0.0; };
  f.reserved = bytes(last.reserved), f.in_use = double(last.in_use.value), f.split = bytes(last.inactive_split),
  f.largest = bytes(last.largest_free), f.limit = bytes(last.limit);
  f.retries = last.retries - first.retries, f.ooms = last.ooms - first.ooms;
  for (const Pool::Point& p : f.pool->points) f.peak = std::max({f.peak, bytes(p.peak), double(p.in_use.value)});
  const auto process = std::ranges::find(c.evidence.processes, c.evidence.process, &SeenProcess::row);
  if (process != c.evidence.processes.end() && process->spaces.contains(f.pool->space)) {
    const std::optional<Bytes> all = process->spaces.at(f.pool->space).back().resident;
    f.context = all && f.reserved > 0 ? std::max(0.0, double(all->value) - f.reserved) : 0;
  }
  return f;
}

std::string framework(const Pool& pool) {
  return pool.name == "torch" ? "PyTorch" : pool.name == "jax" ? "JAX" : "TensorFlow";
}

void tell_pool(const PoolFacts& f, Match& m) {
  m.holder = format("the pool of {}", framework(*f.pool));
  m.evidence.push_back(format("{} are reserved, {} of it in use at the end, and never more than {} at once",
                              amount(f.reserved), amount(f.in_use), amount(f.peak)));
  if (f.context > 0)
    m.evidence.push_back(
        format("outside of the pool the process has {}: CUDA's context, kernels, other libraries", amount(f.context)));
}

std::optional<Match> fragmented(const Case& c) {
  const std::optional<PoolFacts> f = facts_of(c);
  if (!f || f->pool->name != "torch" || f->free() < kTable.pool) return {};
  const bool far_above = f->peak < kTable.far * f->reserved, fails = f->retries > 0 || f->ooms > 0;
  if (!far_above && !(fails && f->split > kTable.most * f->free())) return {};
  Match m{.kind = Kind::kFragmentation, .share = 1, .bytes = far_above ? f->reserved - f->peak : f->split};
  tell_pool(*f, m);
  m.evidence.push_back(format("{} are free in segments that something living pins{}", amount(f->split),
                              f->largest > 0 ? format("; the largest free block has {}", amount(f->largest)) : ""));
  if (fails)
    m.evidence.push_back(format("an allocation failed {} times until what was kept was given back, {} times even then",
                                f->retries, f->ooms));
  return m;
}

std::optional<Match> pool_in_pieces(const Case& c) {
  const std::optional<PoolFacts> f = facts_of(c);
  if (!f || f->pool->name == "torch" || f->free() < kTable.pool || f->largest <= 0) return {};
  // Free memory of a pool that is hardly used may lie in pieces without harm.
  if (f->largest > (1 - kTable.most) * f->free() || f->in_use < kTable.far * f->reserved) return {};
  Match m{.kind = Kind::kFragmentation, .share = 1, .bytes = f->free() - f->largest};
  tell_pool(*f, m);
  m.evidence.push_back(format("{} are free, the largest block of it has {}", amount(f->free()), amount(f->largest)));
  return m;
}

std::optional<Match> preallocated(const Case& c) {
  const std::optional<PoolFacts> f = facts_of(c);
  if (!f || c.leaking() || f->pool->name == "torch" || f->limit <= 0 || f->reserved < kTable.most * f->limit ||
      f->peak > kTable.far * f->reserved)
    return {};
  Match m{.kind = Kind::kReserve, .share = 1, .bytes = f->reserved};
  tell_pool(*f, m);
  return m;
}

std::optional<Match> working_memory(const Case& c) {
  const std::optional<PoolFacts> f = facts_of(c);
  const double bytes = f ? std::max(f->reserved, f->peak) : 0;
  if (c.leaking() || bytes < kTable.pool) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .weight = kTable.no_name, .bytes = bytes};
  tell_pool(*f, m);
  return m;
}

}  // namespace

const std::vector<Cause> kGpuPools = {
    {.id = "C27",
     .title = "The framework took (nearly) all GPU memory in advance",
     .fix = "Nothing, or set_memory_growth(True), XLA_PYTHON_CLIENT_PREALLOCATE=false.",
     .threads = {"tensorflow#36465", "rstudio/keras3#1538"},
     .detect = preallocated,
     .in = Cause::In::kDevice},
    {.id = "C28",
     .title = "The framework's GPU pool is fragmented, and never shrinks",
     .fix = "TF_GPU_ALLOCATOR=cuda_malloc_async; for JAX XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async.",
     .threads = {"tensorflow#48545"},
     .detect = pool_in_pieces,
     .in = Cause::In::kDevice},
    {.id = "C29",
     .title = "PyTorch's caching allocator holds far more than is ever in use at once",
     .fix = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer shapes.",
     .threads = {"pytorch#35901", "pytorch#173049"},
     .detect = fragmented,
     .in = Cause::In::kDevice},
    {.id = "G1",
     .title = "The framework's pool took what its rounds need, and keeps it",
     .fix = "Nothing to fix: it does not grow.",
     .threads = {},
     .detect = working_memory,
     .in = Cause::In::kDevice}};

}  // namespace millpond::verdict
