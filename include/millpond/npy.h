// NumPy's .npy files as tensors: versions 1 to 3, C order, little endian, in every dtype: float16/32/64, int8 to int64,
// uint8 to uint64, bool, and bfloat16 as NumPy writes it, "V2". A file that is not what its header says is refused:
// Error(kFormat) with file, position, what was expected and what was found.
//
//   Tensor x = read_npy("x.npy");
//   write_npy("y.npy", model.predict(x));
#pragma once
#include <string>

#include "millpond/tensor.h"

namespace millpond {

/// A copy of its own, charged to `account`.
[[nodiscard]] Tensor read_npy(const std::string& file, std::string account = "data/tensor");
/// The values where they lie in the file: a read-only mapping that lives as long as the tensor and its copies, and
/// costs address space only. Writing to it ends the process, and so does reading after somebody has cut the file short.
[[nodiscard]] Tensor map_npy(const std::string& file);
/// The whole file or none of it. Throws Error(kFile) where it cannot be written. bfloat16, which .npy lacks, is written
/// as NumPy writes it ("V2"): np.load(file).view(ml_dtypes.bfloat16).
void write_npy(const std::string& file, const Tensor& tensor);

}  // namespace millpond
