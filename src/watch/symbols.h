// Symbols: names and lines for native addresses, after the run, through libdw.
//
// libdw is loaded when the first name is asked for, so that programs which never ask do not pay for it; where it is
// missing, frames keep module and offset. Costs: some ms for each module, and its symbol table in memory while this
// lives.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "watch/shared_view.h"

namespace millpond::watch {

struct NativeName {
  std::string module;    // path of the file that holds the code; empty: unknown code, made at run time
  uint64_t offset = 0;   // in that file
  std::string function;  // demangled; empty: not known
  std::string source;    // empty: no debug information
  int line = 0;
};

/// A header of the C++ library or of the system.
bool of_the_system(const std::string& source);
/// A function of the C++ library's, of an allocator or of Millpond itself, by its demangled name, wherever it was
/// instantiated: std::vector<int>::push_back, operator new.
bool of_the_library(const std::string& function);

class Symbols {
 public:
  Symbols();
  ~Symbols();

  /// A module that is mapped where an earlier one was takes its place.
  void add(const RawModule& module);
  /// Module and offset only: cheap.
  NativeName place(uint64_t address) const;
  /// With function and line. Addresses are return addresses: the call is looked for one byte before.
  NativeName name(uint64_t address);
  /// The same for a module and an offset that place() gave.
  NativeName name(const std::string& module, uint64_t offset);
  /// The variable of static storage that an address lies in: its module, and its name where it has one. No module: it
  /// is no such variable.
  NativeName variable(uint64_t address);

 private:
  void to_caller(void* module, uint64_t at, NativeName& n);
  struct Dw;
  std::vector<RawModule> modules_;
  std::unique_ptr<Dw> dw_;
};

}  // namespace millpond::watch
