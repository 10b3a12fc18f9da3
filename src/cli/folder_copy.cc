#include "cli/folder_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::cli {
namespace {

namespace fs = std::filesystem;

/// What tools keep beside a program and no program writes for its work.
bool is_left(const fs::path& name) {
  static const std::string kNames[] = {".git",        ".hg",          ".svn", ".venv", "venv",
                                       ".venv-peers", "node_modules", ".tox", ".nox"};
  return std::ranges::find(kNames, name.string()) != std::end(kNames);
}

Error cannot(const fs::path& path, const char* what, int why) {
  return Error(Code::kFile, format("bisect: {} cannot be {}: {}", path.string(), what, std::strerror(why)))
      .hint("--in-place runs in the folder itself");
}

constexpr int64_t kMostFiles = 200'000;

struct Found {
  FolderCopy sum;
  std::vector<fs::path> folders, files, links, left;  // relative
};

Found look(const fs::path& from, Bytes most) {
  Found found;
  std::error_code error;
  bool too_much = false;
  for (fs::recursive_directory_iterator at(from, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    const fs::path relative = at->path().lexically_relative(from);
    struct stat facts{};
    if (lstat(at->path().c_str(), &facts) != 0) continue;  // gone meanwhile
    if (S_ISDIR(facts.st_mode) && is_left(at->path().filename())) {
      found.left.push_back(relative);
      at.disable_recursion_pending();
    } else if (S_ISDIR(facts.st_mode)) {
      found.folders.push_back(relative);
    } else if (S_ISLNK(facts.st_mode)) {
      found.links.push_back(relative);
    } else if (S_ISREG(facts.st_mode)) {
      found.files.push_back(relative);
      ++found.sum.files;
      found.sum.size += Bytes{facts.st_size};
      too_much = too_much || found.sum.size > most;
      if (found.sum.files > kMostFiles)
        throw Error(
            Code::kUnsupported,
            format("bisect: this folder has more than {} files ({} of them hold {}), too many to copy for the runs",
                   kMostFiles, kMostFiles, found.sum.size))
            .hint("--in-place runs in the folder itself, where the program writes over its files again with each run");
    }
  }
  if (error) throw cannot(from, "read", error.value());
  if (too_much)
    throw Error(Code::kUnsupported,
                format("bisect: this folder has {} in {} files, and at most {} are copied for the runs", found.sum.size,
                       found.sum.files, most))
        .hint(
            "--in-place runs in the folder itself, where the program writes over its files again with each run; "
            "--copy-limit 20GiB copies more");
  return found;
}

void copy_one(const fs::path& from, const fs::path& to) {
  struct Fd {
    int value;
    ~Fd() {
      if (value >= 0) close(value);
    }
  };
  const Fd in{open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat facts{};
  if (in.value < 0 || fstat(in.value, &facts) != 0) {
    if (errno == ENOENT) return;
    throw cannot(from, "read", errno);
  }
  const Fd out{open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, facts.st_mode & 0777)};
  if (out.value < 0) throw cannot(to, "written", errno);
  if (ioctl(out.value, FICLONE, in.value) != 0)
    for (;;) {
      const ssize_t n = copy_file_range(in.value, nullptr, out.value, nullptr, 1 << 24, 0);
      if (n == 0) break;
      if (n > 0) continue;
      if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        throw cannot(to, "written", errno);
      std::vector<char> buffer(1 << 20);
      ssize_t got = 0;
      while ((got = read(in.value, buffer.data(), buffer.size())) > 0)
        for (ssize_t done = 0, k = 0; done < got; done += k)
          if (k = write(out.value, buffer.data() + done, size_t(got - done)); k < 0) throw cannot(to, "written", errno);
      if (got < 0) throw cannot(from, "read", errno);
      break;
    }
  const timespec times[2] = {facts.st_atim, facts.st_mtim};  // a program may ask which file is newer
  futimens(out.value, times);
}

}  // namespace

FolderCopy copy_folder(const std::string& from, const std::string& to, Bytes most) {
  Found found = look(from, most);
  std::error_code error;
  for (const fs::path& folder : found.folders)
    if (fs::create_directory(fs::path(to) / folder, error); error)
      throw cannot(fs::path(to) / folder, "made", error.value());
  for (const fs::path& file : found.files) copy_one(fs::path(from) / file, fs::path(to) / file);
  for (const fs::path& link : found.links) {
    const fs::path target = fs::read_symlink(fs::path(from) / link, error);
    if (error) continue;
    // A link within the folder leads to the copy; one that leads out of it leads where it led.
    const fs::path full = (fs::path(from) / link.parent_path() / target).lexically_normal(),
                   inside = full.lexically_relative(from);
    const bool out = inside.empty() || *inside.begin() == "..";
    fs::create_symlink(out ? full : target.is_absolute() ? fs::path(to) / inside : target, fs::path(to) / link, error);
  }
  for (const fs::path& folder : found.left) {
    fs::create_directory_symlink(fs::path(from) / folder, fs::path(to) / folder, error);
    found.sum.linked.push_back(folder.string());
  }
  return found.sum;
}

FolderCopy measure_folder(const std::string& from, Bytes most) {
  Found found = look(from, most);
  for (const fs::path& folder : found.left) found.sum.linked.push_back(folder.string());
  return found.sum;
}

std::string in_copy(const std::string& word, const std::string& from, const std::string& to) {
  if (!word.starts_with(from + "/")) return word;
  const std::string there = to + word.substr(from.size());
  return access(there.c_str(), F_OK) == 0 ? there : word;
}

}  // namespace millpond::cli
