// Who allocates what stays: sampled live bytes by place of the user's code, over the periods and by age.
//
//   age, oldest first   leak       |.|#|#|#|#|#|#|#|     about the same left of every cohort
//                       cache      |#|#|#|#|.|.|.|.|     the old ones only: it filled, then stopped
//                       churn      |.|.|.|.|.|.|.|#|     the newest only: freed soon
#pragma once
#include <string>
#include <vector>

#include "verdict/periods.h"

namespace millpond::verdict {

/// What the ages of live bytes say: that nearly all of them are old, or that some of every part of the time are left. The
/// oldest part holds everything from before the first period and is not asked for.
bool is_old(const Ages& age);
bool of_every_age(const Ages& age);

/// Sites with the same place of the user's code, or without any the same native function.
struct SiteGroup {
  Place place{};  // native: function and module
  bool user = false;
  std::vector<int> sites{};
  Series live{};     // at the periods with a snapshot
  Slope slope{};     // after warm-up, bytes for one of x
  double grown = 0;  // slope times length; never below 0
  Ages age{};
  double bytes = 0, blocks = 0;  // at the last snapshot
  double before = 0;             // alive when the model was made; 0 where no snapshot was taken then
  double begun = 0;              // alive when the first step was done; likewise
  double total = 0;              // ever allocated
  double block() const { return blocks > 0 ? bytes / blocks : 0; }
};

/// What one site gained after warm-up.
struct SiteGain {
  int site = 0;
  double bytes = 0;
};

struct LiveSites {
  std::vector<SiteGroup> groups;  // most grown first
  std::vector<SiteGain> gains;    // positive, most first
  Series total;                   // of all sampled bytes
  double gained = 0;              // sum of gains
  bool has_begun = false;         // there is a snapshot from between the first step and the first period
  bool empty() const { return total.empty(); }
};
LiveSites live_sites(const Evidence& evidence, const Periods& periods);

/// The user's own code, native code too: files that AutoGraph writes are not the user's.
bool is_own(const Frame& frame);
/// The user's own Python.
bool is_user(const Frame& frame);
/// The innermost such frame, or null.
const Frame* own_frame(const Site& site);
const Frame* user_frame(const Site& site);
Place place_of(const Frame& frame);
inline bool same_line(const Place& a, const Place& b) { return a.line == b.line && a.file == b.file; }
inline bool same_line(const Place& a, const Frame& b) { return a.line == b.line && a.file == b.file; }

/// A place and what it had.
struct SiteShare {
  Place place;
  bool user = false;
  Bytes bytes;
};
/// Places that allocate much and keep little, by bytes ever allocated.
std::vector<SiteShare> temporaries(const Evidence& evidence);

}  // namespace millpond::verdict
