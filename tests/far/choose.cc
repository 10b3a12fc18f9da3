// Linked into test programs that can run on the far backend: MILLPOND_TEST_BACKEND=far puts every model of the process
// on it.
#include <cstdlib>
#include <string_view>

#include "far/far.h"

namespace {
const bool chosen = [] {
  const char* name = std::getenv("MILLPOND_TEST_BACKEND");
  if (!name || std::string_view(name) != "far") return false;
  millpond::backend::set_default_backend(millpond::test::far_backend());
  return true;
}();
}  // namespace
