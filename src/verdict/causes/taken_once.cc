// Memory that is taken once, or for a moment: copies of data, buffers of pipelines, the optimizer's state.
#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

struct FitCopy {
  double bytes = 0;    // of the copies
  double doubles = 0;  // bytes of float64 arrays
  Place place;
};

FitCopy fit_copy(const Case& c) {
  FitCopy most;
  const bool tensorflow =
      c.notes.keras_backend == "tensorflow" || (c.notes.keras_backend.empty() && c.notes.has("tensorflow"));
  for (const FitData& data : c.notes.data) {
    FitCopy copy;
    copy.place = c.with_text(data.place);
    for (const FitArray& a : data.arrays) {
      if (a.dtype == "float64")
        copy.doubles += a.bytes, copy.bytes += a.bytes / 2;  // cast as a whole
      else if (tensorflow && !contains(lower(a.type), "tensor"))
        copy.bytes += a.bytes;  // into one tensor
    }
    if (copy.bytes > most.bytes) most = copy;
  }
  return most;
}

double held_by_pipeline(const Case& c) {
  double bytes = c.jump() - fit_copy(c).bytes;
  for (const char* what : {"fit", "train_on_batch", "optimizer_step", "tape_gradient"})
    if (const CountedLine* line = c.notes.line(what)) bytes -= c.reserved_at(line->place);
  if (!c.sites.empty()) bytes = std::min(bytes, c.reserved_natively());
  return bytes >= c.least(kTable.level, kTable.level_share) ? bytes : 0;
}

std::optional<Match> fit_copies(const Case& c) {
  const FitCopy copy = fit_copy(c);
  if (copy.bytes < c.least(kTable.named, kTable.named_share)) return {};
  // Seen as live blocks under the line, or as a jump large enough to hold it.
  const double seen = std::max(c.reserved_at(copy.place), c.jump());
  if (seen < kTable.some * copy.bytes) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .bytes = std::min(copy.bytes, seen)};
  m.blame = copy.place;
  m.holder = "a tensor with all of the training data";
  if (copy.doubles > 0)
    m.evidence.push_back(format("{} of the arrays given to fit are float64; casting them makes a copy of {}",
                                amount(copy.doubles), amount(copy.doubles / 2)));
  m.evidence.push_back(format("memory is {} above its level before training", amount(std::max(0.0, c.jump()))));
  if (copy.doubles > 0)
    m.fix =
        "Not a leak. Make the data float32 (`data.astype(np.float32)`, or dtype=np.float32 when it is made) and drop "
        "the original, or feed a tf.data or PyDataset stream.";
  return m;
}

std::optional<Match> predict_outputs(const Case& c) {
  // High only inside the call: at the marks it is gone. Listed, and never what sets the verdict.
  const CountedLine* line = c.notes.line("predict");
  if (!line) line = c.notes.line("evaluate");
  const double peak = double(c.evidence.peak_rss.value), above = peak - c.growth.level;
  if (!line || c.leaking() || above < c.least(kTable.nameless, kTable.nameless_share)) return {};
  double churn = 0;
  for (const SiteShare& s : temporaries(c.evidence))
    if (same_line(s.place, line->place)) churn += double(s.bytes.value);
  if (churn < above) return {};
  Match m{.kind = Kind::kFlat, .share = 1, .weight = kTable.no_cause, .bytes = above};
  m.blame = line->place;
  m.evidence.push_back(
      format("the highest point, {}, is {} above the level between epochs; {} were allocated and freed at {}",
             amount(peak), amount(above), amount(churn), at(line->place)));
  return m;
}

/// What a stage of the input pipeline keeps: its cache, its shuffle buffer, or buffers that it tunes itself. The first
/// of them that is there has it.
std::optional<Match> kept_by_stage(const Case& c) {
  const Stage *cache = c.notes.stage("cache"), *shuffle = c.notes.stage("shuffle"), *tuned = nullptr;
  for (const Stage& s : c.notes.stages)
    if (s.buffer && *s.buffer == -1) tuned = &s;
  const Stage* stage = cache ? cache : shuffle ? shuffle : tuned;
  if (!stage || c.leaking() || (stage == shuffle && stage->buffer.value_or(1e9) < kTable.elements)) return {};
  double bytes = held_by_pipeline(c);
  if (stage == tuned) {
    // It fills over several epochs, so the marks themselves must show it.
    if (c.growth.outcome != Outcome::kStopped || c.periods.rss.empty()) return {};
    bytes = std::min(bytes, c.growth.level - c.periods.rss.y.front());
  }
  if (bytes < c.least(kTable.level, kTable.level_share)) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = stage == tuned ? kTable.by_level : kTable.plain, .bytes = bytes};
  m.cause = stage == cache ? "C19" : stage == shuffle ? "C20" : "C22";
  m.blame = stage->place;
  if (stage == cache) {
    m.holder = "the cache of the tf.data pipeline";
    m.evidence.push_back(format("cache() at {} holds about {}; memory rose in the first epoch and then stayed",
                                at(stage->place), amount(bytes)));
  } else if (stage == shuffle) {
    m.holder = "the shuffle buffer of the tf.data pipeline";
    m.evidence.push_back(format("shuffle at {} holds {} elements; memory is {} above its level before training",
                                at(stage->place), stage->buffer ? format("{:.0f}", *stage->buffer) : "many",
                                amount(bytes)));
  } else {
    m.evidence.push_back(format("{} at {} tunes its own buffer; memory rose by {} and stopped", stage->op,
                                at(stage->place), amount(bytes)));
  }
  return m;
}

std::optional<Match> optimizer_state(const Case& c) {
  const CountedLine* line = nullptr;
  for (const char* what : {"optimizer_step", "fit", "train_on_batch", "tape_gradient"})
    if (!line) line = c.notes.line(what);
  if (!line) return {};
  const double least = c.least(kTable.named, kTable.named_share);
  const double copied = fit_copy(c).bytes;
  Match m{.kind = Kind::kReserve, .share = 1, .bytes = 0};
  m.blame = line->place;
  const double seen = c.reserved_at(line->place) - copied;
  if (!c.sites.empty() && seen >= least) {
    m.bytes = seen;
    m.evidence.push_back(
        format("{} in large blocks were taken under {} when training began and stayed", amount(seen), at(line->place)));
  } else {
    // Nothing sampled there: a jump at the first step that no pipeline explains, and then a level. Frameworks' own
    // threads may have taken it.
    const double jump = c.jump() - copied;
    if (!c.sites.empty() && c.reserved_natively(true) < kTable.most * jump) return {};
    if (c.leaking() || c.notes.stage("cache") || c.notes.stage("shuffle") ||
        jump < c.least(kTable.step, kTable.step_share))
      return {};
    m.bytes = jump;
    m.weight = kTable.library;
    m.evidence.push_back(format("memory rose by {} when training began and then stayed", amount(jump)));
  }
  return m;
}

/// Of resident memory what has no file behind it, when the program was last looked at in a round; all of it where that
/// was not told.
double resident_of_its_own(const Case& c) {
  const auto own = std::ranges::find(c.evidence.processes, c.evidence.process, &SeenProcess::row);
  if (c.evidence.process == 0 || own == c.evidence.processes.end() || own->pages.empty() || c.periods.marks.empty())
    return c.growth.level;
  const auto after = std::ranges::upper_bound(own->pages, c.periods.marks.back()->t, {}, &SeenProcess::Pages::t);
  return double((after == own->pages.begin() ? own->pages.front() : *(after - 1)).anonymous.value);
}

std::optional<Match> taken_once(const Case& c) {
  // A framework's own start is not worth a word: only a jump that is a good part of the process.
  const Growth& g = c.growth;
  if (c.leaking() || g.outcome == Outcome::kTooShort) return {};
  // Sampled blocks may have been asked for and never written to: no more than the process has in memory was taken.
  double bytes = std::max(c.jump(), std::min(c.kept_by_user(), resident_of_its_own(c)));
  // The account says what came after warm-up; it has stopped, and is there.
  const AccountPart later = g.outcome == Outcome::kStopped ? c.account->staying() : AccountPart{};
  const bool is_later = bytes < c.least(kTable.nameless, kTable.nameless_share);
  if (is_later && (later.range.low < g.small || c.account->range.low < g.small)) return {};
  if (is_later) bytes = later.bytes;
  Match m{.kind = Kind::kReserve, .share = 1, .weight = kTable.no_name, .bytes = bytes};
  if (is_later) {
    m.title = "Memory rose for some rounds, and then stayed";
    m.evidence.push_back(format("what is in use rose by {} after warm-up ({} to {}), and rises no more", amount(bytes),
                                amount(later.range.low), amount(later.range.high)));
  } else if (bytes <= c.jump())
    m.evidence.push_back(
        format("{} when the first phase began, {} in the last third of the run", amount(g.baseline), amount(g.level)));
  else  // it was there before anything was marked
    m.evidence.push_back(
        format("{} of {} were taken early by the program's own lines and stay", amount(bytes), amount(g.level)));
  const SiteGroup* most = nullptr;
  for (const SiteGroup& s : c.sites.groups)
    if (s.user && s.bytes > (most ? most->bytes : kTable.some * bytes) && !c.imports(s)) most = &s;
  if (most) m.blame = c.with_text(most->place);
  return m;
}

}  // namespace

const std::vector<Cause> kTakenOnce = {
    {.id = "C12",
     .title = "fit copied the whole data set once, before the first batch",
     .fix = "Not a leak. Feed a tf.data or keras.utils.PyDataset stream instead of one array if the copy does not fit.",
     .threads = {"tensorflow#31312", "tensorflow#52086", "tensorflow#71744"},
     .detect = fit_copies},
    {.id = "C13",
     .title = "predict collects all outputs before it returns",
     .fix = "Loop over batches with predict_on_batch and write each result away.",
     .threads = {"keras#21642", "tensorflow#44986", "transformers#7232"},
     .detect = predict_outputs},
    {.id = "C19",
     .title = "cache() of the input pipeline keeps the whole decoded data set",
     .fix = "Not a leak. Put cache() before decoding and augmentation (small elements), cache to a file "
            "(cache(\"path\")), or leave it out.",
     .threads = {"tensorflow#27128", "tensorflow#50579"},
     .detect = kept_by_stage},
    {.id = "C20",
     .title = "The shuffle buffer holds decoded elements; its size is counted in elements, not in bytes",
     .fix = "Not a leak. Shuffle before decoding (file names or indices), or use a smaller buffer.",
     .threads = {"tensorflow#32376", "tensorflow#60599", "tensorflow#54299"},
     .detect = nullptr},
    {.id = "C22",
     .title = "tf.data tunes its buffers up to half of the memory that is free",
     .fix = "Not a leak. Fix the sizes (prefetch(2), num_parallel_calls=4), or give the pipeline tf.data.Options "
            "with a smaller autotune.ram_budget.",
     .threads = {"tensorflow#33516", "tensorflow#36821", "horovod#4296"},
     .detect = nullptr},
    {.id = "C35",
     .title = "Gradients and the optimizer's state appeared at the first step",
     .fix = "Not a leak. If it does not fit: SGD or Adafactor instead of Adam, a smaller model, or lower precision.",
     .threads = {"pytorch#9439", "pytorch#18643", "Megatron-LM#640"},
     .detect = optimizer_state},
    {.id = "",
     .title = "Memory was taken once, early in the run",
     .fix = "Nothing to fix: it does not grow.",
     .threads = {},
     .detect = taken_once}};

}  // namespace millpond::verdict
