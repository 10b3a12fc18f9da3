#include "verdict/advice.h"

#include <set>

#include "base/format.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

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
  if (first < 0 || last - first < 64e6) return {};
  return last - first;
}

}  // namespace

std::vector<Advice> advice(const Case& c) {
  std::vector<Advice> all;
  std::set<std::string> said;
  for (const SeenAdvice& a : c.notes.advice) {
    const std::string text = text_of(a);
    if (text.empty() || !said.insert(a.what + at(a.place)).second) continue;
    all.push_back({a.what, text, a.place});
  }
  for (const FitData& d : c.notes.data) {
    double doubles = 0;
    for (const FitArray& a : d.arrays)
      if (a.dtype == "float64") doubles += a.bytes;
    if (doubles < 8e6 || !said.insert("float64" + at(d.place)).second) continue;
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
  for (const Container& k : c.notes.containers)
    if (k.still && is_tensor(k.item_type) && k.is_user && !c.leaking() && c.rose("torch.with_grad_fn") >= 3)
      all.push_back(
          {"list_keeps_tensors",
           format("{} keeps tensors with their graphs ({}): store .item() or .detach().", tell(k), at(k.place)),
           k.place});
  if (c.evidence.dropped > 0)
    all.push_back({"dropped",
                   format("{} records were dropped because the buffer was full: sizes by place are less certain.",
                          c.evidence.dropped),
                   {}});
  return all;
}

}  // namespace millpond::verdict
