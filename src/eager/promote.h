// promote: the dtype in which two dtypes, or a dtype and a number, meet: Keras's lattice (keras.backend.result_type).
#pragma once
#include "millpond/dtype.h"
#include "millpond/eager.h"

namespace millpond::eager {

DType promote(DType x, DType y);
DType promote(DType x, Numeral::Kind y);
/// What a function of fractions works in: whole numbers and bool become float32.
constexpr DType floating(DType t) { return is_floating(t) ? t : DType::kFloat32; }
/// What sums of it are kept in: bool and the small whole numbers in 32 bits, as in Keras.
DType summed(DType t);

}  // namespace millpond::eager
