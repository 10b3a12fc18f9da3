#include <cstring>

#include "backend/reference/types.h"
#include "ops/assign.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> assign(const ops::Assign&, const Request& request) {
  return loop([n = size_t(request.inputs[1].bytes().value)](const Arguments& a) {
    if (n) std::memmove(a.out[0], a.in[1], n);
  });
}

}  // namespace millpond::backend::reference
