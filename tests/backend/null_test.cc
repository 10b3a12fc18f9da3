#include <doctest/doctest.h>

#include "ops/all.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;

TEST_CASE("null backend: accepts an operator of any size, asks for no memory and never runs") {
  const backend::Backend& null = backend::null_backend();
  CHECK(!null.runs());
  backend::Request huge;
  huge.inputs = {type({1 << 20, 1 << 20}), type({1 << 20, 1 << 20})};
  huge.outputs = ops::MatMul().infer(huge.inputs);
  CHECK(null.make(ops::MatMul(), huge)->workspace() == Bytes{0});
  CHECK(cpu_backend().runs());
}

}  // namespace millpond::test
