#include "base/older_glibc.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <initializer_list>

using namespace millpond;

TEST_CASE(
    "find_object_in_list: the file and its tables are those that the loader tells, for code of the program, of "
    "libraries and for none") {
  const auto of_loader = reinterpret_cast<int (*)(void*, LoadedObject*)>(dlsym(RTLD_NEXT, "_dl_find_object"));
  if (!of_loader) return;  // glibc 2.34: nothing to compare with
  int here = 0;
  double (*const sine)(double) = std::sin;
  for (void* pc : {reinterpret_cast<void*>(&find_object_in_list), reinterpret_cast<void*>(&std::abort),
                   reinterpret_cast<void*>(sine), reinterpret_cast<void*>(of_loader), static_cast<void*>(&here),
                   static_cast<void*>(nullptr)}) {
    LoadedObject ours{}, theirs{};
    const int found = of_loader(pc, &theirs);
    CHECK(find_object_in_list(pc, &ours) == found);
    if (found == 0) CHECK(ours.eh_frame_header == theirs.eh_frame_header);
    if (found == 0) CHECK((ours.begin <= pc && pc < ours.end));
  }
}
