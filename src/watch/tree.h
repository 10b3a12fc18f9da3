// tree: a process and all below it, as /proc tells. Costs about 20 us for each process of the machine.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"
#include "runfile/rows.h"

namespace millpond::watch {

/// A process as the system tells of it.
struct TreeProcess {
  Pid pid, parent;
  uint64_t born = 0;    // in ticks since the system began: tells it from a later process with the same pid
  bool zombie = false;  // it has ended, and nobody has asked for its exit code yet
  std::string name;     // "python3"
};
std::optional<TreeProcess> process_facts(Pid pid);  // nothing: it is gone

/// The process itself first. A process that ends meanwhile is left out, and so is a walk (probe/walk.h): its pages are
/// the program's.
std::vector<TreeProcess> process_tree_facts(Pid root);
std::vector<Pid> process_tree(Pid root);
/// Those of them that are walked over, each in a child: none of its pages is private to it meanwhile.
std::set<Pid> walked(const std::vector<Pid>& tree);

struct ProcessMemory {
  Pid pid;
  Bytes resident, shared;  // shared: of resident, in shared memory (RssShmem)
  std::optional<Bytes> private_dirty, pss;
  Bytes anonymous;  // of resident: RssAnon
};
/// Sums over a tree. Resident memory counts shared pages once for each process; the other two do not.
struct TreeMemory {
  int processes = 0;
  Bytes rss;
  std::optional<Bytes> private_dirty, pss;
  std::vector<ProcessMemory> each;
};
/// `detailed` asks for private_dirty and pss, which cost some ms for each GiB.
TreeMemory memory_of(const std::vector<Pid>& tree, bool detailed);

/// What a process has mapped, by kind (runfile::kMappingKinds). `own`: our folder in shared memory, whose files do not
/// count.
std::vector<runfile::MappingRow> mappings_by_kind(Pid pid, const std::string& own, std::set<std::string>& shared_files);
std::vector<runfile::MappingRow> mappings_by_kind(const std::vector<Mapping>& mappings, const std::string& own,
                                                  std::set<std::string>& shared_files);
/// Files in shared memory that this user has made since then. private_: of those that no name in `mapped` is of;
/// `loose` gets these with what they hold.
runfile::MappingRow shared_files_since(const std::string& place, time_t since, const std::string& own,
                                       const std::set<std::string>& mapped,
                                       std::map<std::string, Bytes>* loose = nullptr);

/// Files below a folder that a process has open now.
void open_files(Pid pid, const std::string& below, std::set<std::string>& found);

/// Files in shared memory that have no name any more, or never had one, and that a process has open: nothing in the
/// folder tells of them. By device and number, so that a file which several processes have open is there once.
struct NamelessFile {
  std::string link;  // as /proc says it: "/dev/shm/#1234 (deleted)"
  Bytes size, held;
};
using NamelessFiles = std::map<std::pair<uint64_t, uint64_t>, NamelessFile>;
void nameless_files(Pid pid, const std::string& below, NamelessFiles& found);

/// Whether there is no such process any more, or only what its parent has not waited for.
bool has_ended(Pid pid);

std::string thread_name(Pid pid, uint32_t tid);  // empty when it is gone
std::string process_name(Pid pid);               // "python3"; empty when it is gone
std::string command_line(Pid pid);  // "python3 train.py", at most 400 characters of it; empty when it is gone

}  // namespace millpond::watch
