// Room: the folder of shared memory of one run, and how much its processes may take there (probe/shared.h, Room).
//
//   /dev/shm/millpond-PID-START-XXXXXX/   locked (flock) as long as its watcher lives
//     room          limits and what is taken of them, mapped by every probe
//     4711.probe    one for each process; goes when the process has ended and was read
//
// All together: at most 4 MiB that the processes share and 512 KiB for each, so 8 MiB for eight of them, and never more
// than a quarter of what is free there when it is taken. A process that finds no room is seen from outside only.
#pragma once
#include <cstdint>
#include <string>

#include "millpond/bytes.h"

namespace millpond::watch {

class Room {
 public:
  /// In /dev/shm, or where that cannot be written in TMPDIR or /tmp. Removes what watchers that were killed have left
  /// there. Throws Error(kFile).
  Room();
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  const std::string& path() const { return path_; }
  /// Free memory has changed: limits follow. `held` is what the files take now.
  void look(Bytes held);
  /// A process has ended and its file is gone: `from_pool` of it was not promised.
  void gave_back(uint64_t from_pool);
  /// Processes that are seen from outside so far, and why.
  struct Unseen {
    uint64_t no_room = 0, no_descriptor = 0, unopened = 0, sanitized = 0;
    int unopened_error = 0;
    uint64_t all() const { return no_room + no_descriptor + unopened + sanitized; }
  };
  Unseen unseen() const;

 private:
  std::string path_;
  int folder_ = -1, file_ = -1;
  uint64_t gave_back_ = 0, pool_gave_back_ = 0;
};

/// Removes folders of watchers that are gone, of this user alone, in `place`. Returns how many.
int sweep(const std::string& place);

/// Bytes of the file system that the files in this folder take.
Bytes held_in(const std::string& folder);

}  // namespace millpond::watch
