// Case: the evidence as detectors ask it. Everything is worked out once; nothing here decides.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "verdict/account.h"
#include "verdict/growth.h"
#include "verdict/leaks.h"
#include "verdict/notes.h"
#include "verdict/periods.h"
#include "verdict/sites.h"

namespace millpond::verdict {

struct Case {
  explicit Case(const Evidence& evidence);
  const Evidence& evidence;
  Notes notes;
  Periods periods;
  LiveSites sites;
  std::vector<Leak> leaks;
  std::optional<Account> account;  // nothing where no round was seen, or resident memory was not
  Growth growth;

  /// What is in use grows until the end; `leaking`: by enough to set the verdict.
  bool leaking() const { return growth.outcome == Outcome::kLeak; }
  bool growing() const { return leaking() || growth.little; }

  /// Parts of the account; none without one.
  const std::vector<AccountPart>& parts() const;
  /// Who counts what is in use, in words: "allocators have"; of a device "the pool has".
  const char* counted() const { return evidence.space == "host" ? "allocators have" : "the pool has"; }

  /// At least so many bytes, and this share of resident memory.
  double least(double bytes, double share) const { return std::max(bytes, share * growth.level); }

  /// How much a counter rose after warm-up; 0 when it was not reported.
  double rose(const std::string& counter) const;
  /// A counter rose in the later half of the time in which memory grows too: what it counted only before is no part of
  /// that.
  bool still_rises(const std::string& counter) const;
  /// How often something counted happened after warm-up: by the units at the marks, otherwise by the user's lines.
  double times(std::string_view what, std::optional<Unit> unit = {}) const;

  /// Share of the sampled growth whose stack has a frame like this; nothing when nothing was sampled.
  std::optional<double> growth_share(const std::function<bool(const Frame&)>& like) const;
  std::optional<double> growth_share(const Place& place) const;
  /// Of the sampled growth: what lies in blocks of at least so many bytes.
  double grown_in_blocks(double block) const;
  /// Share of the growth that a container's items explain, at most 1.
  double share(const Container& container) const;
  /// The share of what was counted and not weighed: what the user's own containers explain is not its.
  double beside_data() const { return 1 - kTable.data * data_share(); }
  double by_count() const { return kTable.by_count * beside_data(); }
  /// The largest share of any container with the user's own data in it: models and tensors with graphs have causes of
  /// their own.
  double data_share() const;

  /// Bytes alive at the end, in large blocks, taken since the model was made (or since the start, where that was not
  /// seen), under this line.
  double reserved_at(const Place& place) const;
  /// The same without any frame of the user's: memory that libraries' own threads took.
  double reserved_natively(bool large = false) const;
  /// Under an import statement: modules and their tables.
  bool imports(const SiteGroup& group) const;
  /// Of what a group has alive at the end: born well before the last period began, but not early either.
  double outlived(const SiteGroup& group) const;
  /// What the user's own lines took early and keep, from the start of the program on, imports left out.
  double kept_by_user() const;
  /// Memory now less memory when the first phase began.
  double jump() const { return growth.level - growth.baseline; }

  /// The user's line that grows most.
  std::optional<Place> growing_place() const;
  /// The line in the function where the growing loop is, from which `inner` is reached: "model = build_model()", not a
  /// line of build_model.
  Place loop_place(const Place& inner) const;
  /// That line of what grows most; of what makes models, where that was counted.
  std::optional<Place> growing_loop() const;
  std::optional<Place> made_at() const;
  /// With the text of the line where a note knows it.
  Place with_text(Place place) const;
};

}  // namespace millpond::verdict
