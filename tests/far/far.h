// far: a backend for tests, as unlike the host's processors as can be without a device. It shows that nothing above a
// backend touches tensor memory or believes that a run is over when run() returns.
//
//   memory      one memfd, mapped twice. Addresses that it hands out lie in a mapping that nobody may read or write (PROT_NONE): whoever
//               follows one crashes. Its own copies and kernels go to the same bytes through the other mapping, which only it knows.
//   execution   begins nothing until this thread waits, copies, or has several runs waiting: the latest moment an asynchronous device may
//               choose. Until then the host's side of outputs is spoilt; inputs are taken late, and spoilt when they have been.
//   arithmetic  the cpu backend's kernels on one thread, so that plans and bits are the same.
#pragma once
#include "backend/backend.h"

namespace millpond::test {

const backend::Backend& far_backend();

/// Is this the backend that the tests of this process run on? (MILLPOND_TEST_BACKEND=far)
inline bool on_far() { return &backend::default_backend() == &far_backend(); }

}  // namespace millpond::test
