#include "train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/process.h"

namespace millpond::train {
namespace {

// "85 us", "2.31 ms", "1.5 s"
template <class Out>
Out duration(Out out, double s) {
  if (s < 1e-3) return fmt::format_to(out, "{:.3g} us", s * 1e6);
  if (s < 1) return fmt::format_to(out, "{:.3g} ms", s * 1e3);
  if (s < 60) return fmt::format_to(out, "{:.3g} s", s);
  const auto whole = int64_t(s);
  if (whole < 3600) return fmt::format_to(out, "{}:{:02}", whole / 60, whole % 60);
  return fmt::format_to(out, "{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

struct Line {
  char text[512];
  size_t size = 0;
  template <class... Args>
  void add(fmt::format_string<Args...> f, Args&&... args) {
    const auto r = fmt::format_to_n(text + size, sizeof text - size, f, std::forward<Args>(args)...);
    size = std::min(sizeof text, size + r.size);
  }
  void add_duration(double s) {
    char word[32];
    const auto end = duration(word, s);
    add("{}", fmt::string_view(word, size_t(end - word)));
  }
};

}  // namespace

Progress::Progress(int verbose, std::FILE* to)
    : verbose_(verbose), to_(to), moving_(verbose == 1 && isatty(fileno(to))) {}

void Progress::begin(int epoch, int epochs, int64_t steps) {
  epoch_ = epoch, epochs_ = epochs, steps_ = steps;
  next_ = 1, stride_ = 1, seen_ = 0, shown_ = 0;
  start_ = looked_ = Clock::now();
  drawn_ = start_ - std::chrono::seconds(1);
}

bool Progress::look(int64_t step) {
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - looked_).count();
  const double each = since / double(std::max<int64_t>(1, step - seen_));
  stride_ = std::clamp<int64_t>(int64_t(1e-3 / std::max(1e-9, each)), 1, 100'000);
  next_ = step + stride_, seen_ = step, looked_ = now;
  if (now - drawn_ < std::chrono::milliseconds(50)) return false;
  drawn_ = now;
  return true;
}

void Progress::print(int64_t step, const Logs& logs, bool last) {
  Line line;
  if (epochs_ > 0) line.add("Epoch {}/{}  ", epoch_ + 1, epochs_);
  if (steps_ > 0)
    line.add("{}/{} ", step, steps_);
  else
    line.add("{} step{} ", step, step == 1 ? "" : "s");  // of data that does not say how long it is
  if (!last && steps_ > 0) {
    constexpr int kWide = 20;
    const int full = int(std::min<int64_t>(kWide, step * kWide / steps_));
    line.add("[{:=<{}}{:.<{}}] ", "", full, "", kWide - full);
  }
  const double s = seconds();
  line.add_duration(s);
  line.add(" ");
  line.add_duration(s / double(std::max<int64_t>(1, step)));
  line.add("/step");
  for (const Logs::Entry& e : logs)
    if (const double size = std::abs(e.value); size != 0 && (size < 1e-3 || size >= 1e5))
      line.add("  {} {:.4e}", e.name, e.value);
    else
      line.add("  {} {:.4f}", e.name, e.value);
  if (!last && step > 0 && steps_ > step) {
    line.add("  left ");
    line.add_duration(s / double(step) * double(steps_ - step));
  }
  if (const auto bytes = resident()) line.add("  memory {:.1f} MiB", bytes->mib());
  // A line that is longer than the terminal is wide could not be drawn over.
  if (moving_ && !last) line.size = std::min(line.size, columns() - 1);
  if (moving_) std::fputc('\r', to_);
  std::fwrite(line.text, 1, line.size, to_);
  for (size_t i = line.size; moving_ && i < std::min(shown_, columns() - 1); ++i) std::fputc(' ', to_);
  shown_ = line.size;
  if (last) std::fputc('\n', to_);
  std::fflush(to_);
}

size_t Progress::columns() const {
  winsize size{};
  if (ioctl(fileno(to_), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return sizeof(Line::text);
  return std::max<size_t>(20, size.ws_col);
}

void Progress::draw(int64_t step, const Logs& logs) { print(step, logs, false); }

void Progress::end(int64_t step, const Logs& logs) {
  if (verbose_ > 0) print(step, logs, true);
}

void Progress::note(const char* text) {
  if (verbose_ == 0) return;
  std::fprintf(to_, "%s%s\n", shown_ && moving_ ? "\n" : "", text);
  std::fflush(to_);
}

}  // namespace millpond::train
