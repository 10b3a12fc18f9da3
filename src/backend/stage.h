// stage: the rows of a batch, gathered from a user's arrays into the host's side of a program's inputs
// (backend/executor.h), converted and checked on the way. It is the host's work whatever the backend is.
// Memory: none. Cost: one pass over the batch; a large one is shared by the team.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/team.h"
#include "millpond/tensor.h"

namespace millpond::backend {

/// Which rows make the batch: `index[0..count)`, or, without an index, `first` and those behind it.
struct Rows {
  const uint32_t* index = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  int64_t operator[](int64_t i) const { return index ? int64_t(index[i]) : first + i; }
};

enum class Check : uint8_t {
  kNone,
  kFinite,  // refuse NaN and infinity
  kBelow,   // integers in [0, limit)
};

/// One array on its way into one buffer.
struct Lane {
  const std::byte* from = nullptr;
  DType from_type = DType::kFloat32;
  std::byte* to = nullptr;
  DType to_type = DType::kFloat32;
  int64_t width = 0;  // elements in a row
  Check check = Check::kNone;
  int64_t limit = 0;
};

/// The place in the batch of a row that the check refuses, or -1. Everything else has been staged then.
int64_t stage(const Lane& lane, const Rows& rows);

/// All lanes. Returns the number of the lane that was refused and where, or {-1, -1}.
struct Refusal {
  int lane = -1;
  int64_t at = -1;
  explicit operator bool() const { return lane >= 0; }
};
Refusal stage(Team& team, std::span<const Lane> lanes, const Rows& rows);

}  // namespace millpond::backend
