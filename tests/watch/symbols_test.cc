#include "watch/symbols.h"

#include <doctest/doctest.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "base/temporary_folder.h"

using namespace millpond::watch;

namespace {

// Not inlined: its address must have a line of this file.
[[gnu::noinline]] uint64_t own_address() {
  return uint64_t(__builtin_extract_return_addr(__builtin_return_address(0)));
}

RawModule own_module() {
  RawModule m;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& s = info->dlpi_phdr[i];
          if (s.p_type == PT_LOAD && s.p_flags & PF_X) {
            *static_cast<RawModule*>(to) = {info->dlpi_addr + s.p_vaddr, info->dlpi_addr + s.p_vaddr + s.p_memsz,
                                            s.p_offset, "/proc/self/exe"};
            return 1;  // the program itself comes first
          }
        }
        return 1;
      },
      &m);
  return m;
}

}  // namespace

TEST_CASE("Symbols: an address of this very program has its function, file and line") {
  Symbols s;
  s.add(own_module());
  const uint64_t here = own_address();
  const int line = __LINE__ - 1;
  const NativeName n = s.name(here);
  if (n.function.empty()) {
    MESSAGE("libdw is not installed here: names stay module and offset");
    return;
  }
  CHECK(n.source.ends_with("symbols_test.cc"));
  CHECK(n.line == line);
  CHECK(n.function.find("DOCTEST_ANON") != std::string::npos);
}

int a_variable_of_the_test = 7;

TEST_CASE("Symbols: an address in a variable of static storage has its name, and one elsewhere has none") {
  Symbols s;
  s.add(own_module());
  const NativeName n = s.variable(uint64_t(&a_variable_of_the_test) + 1);
  CHECK(n.module == "/proc/self/exe");
  if (!n.function.empty()) CHECK(n.function == "a_variable_of_the_test");  // without libdw names stay modules
  int local = 0;
  CHECK(s.variable(uint64_t(&local)).module.empty());
  CHECK(s.variable(own_address()).module.empty());
}

TEST_CASE("Symbols: code without a module keeps its address, and a newer module takes the place of an older one") {
  Symbols s;
  s.add({0x1000, 0x2000, 0, "/no/old.so"});
  s.add({0x1800, 0x2800, 0x100, "/no/new.so"});
  CHECK(s.place(0x1900).module == "/no/new.so");
  CHECK(s.place(0x1900).offset == 0x200);
  CHECK(s.place(0x1100).module.empty());
  CHECK(s.place(0x9000).module.empty());
  CHECK(s.name(0x1900).function.empty());
}

TEST_CASE("Symbols: a pipe in place of a module is not waited for") {
  const millpond::TemporaryFolder folder("symbols_test", millpond::TemporaryFolder::In::kFiles);
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(Symbols().name(pipe, 16).function.empty());
}

TEST_CASE(
    "Symbols: functions of the C++ library and of allocators are told from the program's own by their names, wherever "
    "they were instantiated") {
  for (const char* theirs :
       {"std::vector<int, std::allocator<int> >::push_back(int&&)",
        "void std::vector<Node*, std::allocator<Node*> >::_M_realloc_insert<Node*>(int)",
        "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
        "operator new(unsigned long)", "operator new[](unsigned long)",
        "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
        "int* std::__new_allocator<int>::allocate(unsigned long, void const*)", "malloc",
        "std::map<int, Node>& std::forward<std::map<int, Node>&>(int)", "millpond::Segment::Segment(millpond::Bytes)",
        "void millpond::runtime::Program::run<float>(int)"})
    CHECK_MESSAGE(of_the_library(theirs), theirs);
  for (const char* own :
       {"leak_new(int)", "main", "Trainer<std::vector<int> >::step(std::string const&)",
        "void fill<std::vector<int> >(std::vector<int>&)", "main::{lambda()#1}::operator()() const",
        "(anonymous namespace)::keep(std::string)", "std_like::keep()", "Pool::operator new(unsigned long)",
        "std::vector<int> make_row(int)", "mallocate(int)", "train_with(millpond::Model&)", ""})
    CHECK_MESSAGE(!of_the_library(own), own);
  CHECK(of_the_system("/usr/include/c++/12/bits/new_allocator.h"));
  CHECK(of_the_system("/opt/gcc/include/c++/13/vector"));
  CHECK_FALSE(of_the_system("/home/user/include/pool.h"));
}
