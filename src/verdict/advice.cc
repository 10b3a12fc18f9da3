#include "verdict/advice.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "verdict/causes/words.h"
#include "verdict/sentence.h"
#include "verdict/statistics.h"

namespace millpond::verdict {
namespace {

/// How often the line did it in all: the agent speaks up when it has seen enough, and goes on counting.
double count_of(const Notes& notes, const SeenAdvice& a) {
  const std::string_view what = a.what == "clear_session_in_loop" ? "clear_session"
                                : a.what == "predict_in_loop"     ? "predict"
                                : a.what == "retracing"           ? "trace"
                                                                  : "";
  double count = a.count;
  for (const CountedLine& line : notes.lines)
    if (line.what == what && same_line(line.place, a.place)) count = std::max(count, line.count);
  return count;
}

/// What the agent saw and said; an unknown kind is passed over.
std::string text_of(const SeenAdvice& a) {
  if (a.what == "clear_session_in_loop")
    return format(
        "clear_session was called {} at {}. It frees neither compiled functions nor a model that is still referenced; "
        "with one model for all rounds it is not needed.",
        often(a.count), at(a.place));
  if (a.what == "predict_in_loop")
    return format(
        "predict was called {} at {}. For small inputs `model(x, training=False)` or predict_on_batch is many times "
        "faster.",
        often(a.count), at(a.place));
  if (a.what == "retracing")
    return format(
        "a tf.function was traced {} under {}: pass tensors instead of Python numbers, and inputs of few shapes.",
        often(a.count), at(a.place));
  if (a.what == "figures_open")
    return format("{:.0f} figures were open at once ({}): plt.close(fig) frees them.", a.count, at(a.place));
  if (a.what == "run_eagerly")
    return format("run_eagerly=True at {}: every step is slower and leaves more for the garbage collector.",
                  at(a.place));
  return "";
}

std::optional<double> swap_growth(const Evidence& e) {
  double first = -1, last = 0;
  for (const OsPoint& p : e.os)
    if (p.swap) {
      if (first < 0) first = double(p.swap->value);
      last = double(p.swap->value);
    }
  if (first < 0 || last - first < kTable.swapped) return {};
  return last - first;
}

/// What rose on a GPU from the end of warm-up to the end of the run, and went on to.
struct GpuGrowth {
  const Gpu* gpu = nullptr;
  double from = 0, to = 0, seconds = 0;
};
std::optional<GpuGrowth> growth_of(const Gpu& gpu) {
  constexpr size_t kFewest = 12;
  std::vector<double> t, bytes;
  const auto points = gpu.told();
  for (size_t i = points.size() / 4; i < points.size(); ++i)
    t.push_back(points[i].first), bytes.push_back(points[i].second);
  if (t.size() < kFewest) return {};
  const Course way = course(t, bytes, kTable.level);
  if (way.move != Move::kGrows || way.total < std::max(kTable.level, kTable.level_share * bytes.back())) return {};
  return GpuGrowth{&gpu, bytes.front(), bytes.back(), t.back() - t.front()};
}

std::optional<Advice> gpu_growth(const Evidence& e) {
  std::optional<GpuGrowth> most;
  int others = -1;
  for (const Gpu& gpu : e.gpus)
    if (const std::optional<GpuGrowth> g = growth_of(gpu)) {
      ++others;
      if (!most || g->to - g->from > most->to - most->from) most = g;
    }
  if (!most) return {};
  return Advice{
      "gpu_growth",
      format(
          "{} GPU {} ({}) rises over the whole run: from {} to {} in {}{}. {}These are totals, which prove no leak: a "
          "caching allocator takes memory in "
          "advance and keeps what is freed. Compare with what the framework has in use (torch.cuda.memory_allocated, "
          "tf.config.experimental.get_memory_info, jax.Device.memory_stats).",
          most->gpu->whole() ? "What is used of" : "The program's memory on", most->gpu->device, most->gpu->name,
          amount(most->from), amount(most->to), duration(most->seconds),
          others ? format(", and so on {} more", others) : "",
          most->gpu->whole() ? "Whether it is the program's was not told by the driver. " : ""),
      {}};
}

}  // namespace

std::vector<Advice> advice(const Case& c) {
  std::vector<Advice> all;
  std::set<std::string> said;
  for (SeenAdvice a : c.notes.advice) {
    a.count = count_of(c.notes, a);
    const std::string text = text_of(a);
    if (text.empty() || !said.insert(a.what + at(a.place)).second) continue;
    all.push_back({a.what, text, a.place});
  }
  for (const FitData& d : c.notes.data) {
    double doubles = 0;
    for (const FitArray& a : d.arrays)
      if (a.dtype == "float64") doubles += a.bytes;
    if (doubles < kTable.doubles || !said.insert("float64" + at(d.place)).second) continue;
    all.push_back({"float64_data",
                   format("{} of the data given to fit at {} are float64; training casts them to float32, which costs "
                          "another {}. Make them float32.",
                          amount(doubles), at(d.place), amount(doubles / 2)),
                   d.place});
  }
  if (const auto swap = swap_growth(c.evidence))
    all.push_back({"swap",
                   format("{} went to swap during the run: the machine is short of memory, and resident memory shows "
                          "less than the program holds.",
                          amount(*swap)),
                   {}});
  // Where a framework tells what its pool has in use, that is judged.
  if (c.evidence.pools.empty())
    if (std::optional<Advice> gpu = gpu_growth(c.evidence)) all.push_back(std::move(*gpu));
  for (const Container& k : c.notes.containers)
    if (k.still && is_tensor(k.item_type) && k.is_user && !c.leaking() &&
        c.rose("torch.with_grad_fn") >= kTable.repeats)
      all.push_back({"list_keeps_tensors",
                     format("{} keeps tensors with their graphs ({}): store a number (.item(), of a tensor with one "
                            "element), or the tensor without its graph (.detach()).",
                            tell(k), at(k.place)),
                     k.place});
  if (c.evidence.dropped > 0)
    all.push_back({"dropped",
                   format("{} records were dropped because the buffer was full: sizes by place are less certain.",
                          c.evidence.dropped),
                   {}});
  return all;
}

}  // namespace millpond::verdict
