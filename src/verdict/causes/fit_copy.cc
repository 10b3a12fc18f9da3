#include "verdict/causes/fit_copy.h"

namespace millpond::verdict {

FitCopy fit_copy(const Case& c) {
  FitCopy most;
  const bool tensorflow =
      c.notes.keras_backend == "tensorflow" || (c.notes.keras_backend.empty() && c.notes.has("tensorflow"));
  for (const FitData& data : c.notes.data) {
    FitCopy copy;
    copy.place = c.with_text(data.place);
    for (const FitArray& a : data.arrays) {
      if (a.dtype == "float64")
        copy.doubles += a.bytes, copy.bytes += a.bytes / 2;  // cast as a whole
      else if (tensorflow && !contains(lower(a.type), "tensor"))
        copy.bytes += a.bytes;  // into one tensor
    }
    if (copy.bytes > most.bytes) most = copy;
  }
  return most;
}

}  // namespace millpond::verdict
