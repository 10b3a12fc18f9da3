#include "cli/news.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/format.h"
#include "report/text.h"
#include "watch/tree.h"

namespace millpond::cli {
namespace {

constexpr size_t kWidest = 100;

void put(int fd, const std::string& bytes) {
  // At once or not at all: a terminal that is stopped must not stop us.
  [[maybe_unused]] const ssize_t written = write(fd, bytes.data(), bytes.size());
}

/// A background job that writes to its terminal may be stopped for it, and the window belongs to whoever is in front. A
/// terminal that is not ours stops nobody.
bool in_front(int terminal) {
  const pid_t front = tcgetpgrp(terminal);
  return front < 0 || front == getpgrp();
}

}  // namespace

bool uses_terminal(Pid process, int terminal) {
  struct stat ours{};
  if (fstat(terminal, &ours) != 0) return true;
  for (int fd = 0; fd < 3; ++fd) {
    struct stat theirs{};
    if (stat(format("/proc/{}/fd/{}", process.value, fd).c_str(), &theirs) != 0) {
      if (errno == ENOENT) continue;  // closed, or the process is gone
      return true;                    // what we may not look at may be the same
    }
    const dev_t controlling = makedev(5, 0);  // /dev/tty: whatever terminal the process has
    if (S_ISCHR(theirs.st_mode) && (theirs.st_rdev == ours.st_rdev || theirs.st_rdev == controlling)) return true;
  }
  return false;
}

bool has_titles(const std::string& term) {
  constexpr std::array<std::string_view, 15> kKnown = {"xterm", "rxvt",    "tmux",    "screen",  "alacritty",
                                                       "kitty", "foot",    "konsole", "gnome",   "vte",
                                                       "st-",   "wezterm", "iterm",   "ghostty", "mlterm"};
  return std::ranges::any_of(kKnown, [&](std::string_view known) { return term.starts_with(known); });
}

News::News(int line) : line_(line) {}

News::~News() {
  if (line_shown_) put(line_, "\r\033[K");
  if (title_shown_ && in_front(terminal_)) put(terminal_, "\033[23;2t");  // the title that was kept
  if (terminal_ >= 0) close(terminal_);
}

void News::tell(Pid program, const std::string& text) {
  if (line_ < 0) return;
  // The program itself is asked first: it has our own streams nearly always, and then its children need not be looked
  // for.
  const auto theirs = [&](Pid process) { return uses_terminal(process, line_); };
  if (isatty(line_) && in_front(line_) && !theirs(program) &&
      std::ranges::none_of(watch::process_tree(program), theirs))
    return write_line(text);
  if (line_shown_) put(line_, "\r\033[K"), line_shown_ = false;
  write_title(text);
}

void News::write_line(const std::string& text) {
  put(line_, "\r\033[K" + report::shown(text, kWidest) + "\r");
  line_shown_ = true;
}

void News::write_title(const std::string& text) {
  if (!looked_) {
    looked_ = true;
    const char* term = std::getenv("TERM");
    if (term && has_titles(term)) terminal_ = open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  }
  if (terminal_ < 0 || !isatty(terminal_) || !in_front(terminal_)) return;
  const std::string keep = title_shown_ ? "" : "\033[22;2t";
  put(terminal_, keep + "\033]2;" + report::shown(text, kWidest) + "\a");
  title_shown_ = true;
}

}  // namespace millpond::cli
