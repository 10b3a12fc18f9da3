// WayIn: how the probe gets into a process that runs already, and out again.
//
//   Python 3.14 and newer   sys.remote_exec, called by an interpreter of the same version: the process runs a script at its next safe point; where that is refused, as before it
//   Python before that      gdb stops it for a moment, writes the script into a page of its own and queues it (Py_AddPendingCall, which neither allocates nor waits
//                           for the GIL); the process runs it when its main thread is next between two bytecodes
//   any other program       gdb waits until it calls malloc, outside of the loader, and has it load and enter the probe there
//
// Each of them needs leave to trace the process (ptrace). No symbols are read: addresses come from the files' own tables. Costs the process some tenths of a second each time.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace millpond::watch {

struct Visit {
  std::string probe_library, agent_folder;
  bool probes = true, native = false, follow = true;
};

class WayIn {
 public:
  WayIn(Pid pid, Visit visit);

  /// Brings the probe in; `folder` is the collector's. Nothing: it is inside. Otherwise why not, and what to do, in one
  /// sentence without its full stop.
  std::optional<std::string> enter(const std::string& folder);
  /// Nothing: all is as before. Otherwise what is not.
  std::optional<std::string> leave();

  /// What was found out about the process.
  struct Facts {
    bool python = false;
    int version = 0;          // 0x030b07f0 >> 16: 0x030b; 0: not known
    std::string interpreter;  // a program that runs that Python; empty: unknown
    uint64_t add_pending = 0, run_text = 0, mmap = 0, munmap = 0, malloc = 0, dlopen = 0, dlsym = 0;
    uint64_t loader_begin = 0, loader_end = 0;
    uint64_t free_page = 0;  // where nothing is mapped
  };
  static Facts facts_of(Pid pid);

 private:
  std::optional<std::string> run_script(const char* what, const std::string& text);
  std::optional<std::string> by_remote_exec(const std::string& script);
  /// Of a process that has not come back to Python in time: it runs nothing of ours when it does.
  void take_back_request();
  std::optional<std::string> by_gdb(const std::string& text);
  std::optional<std::string> call_natively(const char* function, bool load);
  std::optional<std::string> gdb(const std::string& commands, std::string& output);
  std::optional<std::string> answer(const char* what);

  Pid pid_;
  Visit visit_;
  Facts facts_;
  std::string folder_;
  bool inside_ = false;
};

/// The address that the file of a module gives to a symbol of its dynamic table; for its own linker, without where it
/// is loaded.
std::optional<uint64_t> dynamic_symbol(const std::string& file, const std::string& name);

}  // namespace millpond::watch
