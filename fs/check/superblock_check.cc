#include "fs/check/superblock_check.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "chunker/polynomial.h"
#include "fs/open/segment_check.h"

namespace siltfs {
namespace {

// Whether two copies are equal in the fields that mkfs sets and that never change.
bool SameStore(const Superblock& a, const Superblock& b) {
  return a.uuid == b.uuid && a.tag_secret == b.tag_secret &&
         a.rabin_polynomial == b.rabin_polynomial && a.created_ns == b.created_ns;
}

void CheckAgreement(CheckContext& context, const Superblock& a, const Superblock& b) {
  if (SameStore(a, b)) return;
  context.Report({.code = "superblock-mismatch",
                  .path = context.store(),
                  .message = "the two copies of the superblock belong to different stores"});
}

}  // namespace

Result<bool> CheckSuperblock(CheckContext& context) {
  std::array<std::optional<Superblock>, 2> copies;
  std::array<Status, 2> faults;
  for (int i = 0; i < 2; ++i) {
    auto copy = ReadSuperblockCopy(context.env, context.store(), i);
    const auto at = static_cast<size_t>(i);
    if (copy.ok()) {
      copies[at] = *copy;
    } else {
      faults[at] = std::move(copy).status();
    }
  }
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!faults[i].Is(StatusCode::kNeedsNewer)) continue;
    faults[1 - i].IgnoreError("a newer siltfs checks both copies");
    return faults[i];
  }
  const bool none = !copies[0] && !copies[1];
  auto absent = [](const Status& fault) {
    return fault.Is(StatusCode::kNotFound) || fault.Is(StatusCode::kNotADirectory);
  };
  if (none && absent(faults[0]) && absent(faults[1])) {
    return NoStoreAt(context.env, context.store());
  }
  // True if mkfs was interrupted between writing the first copy and writing the second one.
  const bool unfinished = copies[0] && copies[0]->generation == 1 && absent(faults[1]);
  for (const Status& fault : faults) {
    if (!fault.ok() && !unfinished) context.Report(none ? "superblock" : "superblock-copy", fault);
  }
  if (none) return false;
  if (copies[0] && copies[1]) CheckAgreement(context, *copies[0], *copies[1]);
  context.superblock = !copies[1] || (copies[0] && copies[0]->generation >= copies[1]->generation)
                           ? *copies[0]
                           : *copies[1];
  for (const auto& copy : copies) {
    if (copy) context.highest_commit = std::max(context.highest_commit, copy->last_commit);
  }
  SILTFS_RETURN_IF_ERROR(
      CheckFeatures(context.superblock, StoreAccess::kReadOnly).At(context.store()));
  SILTFS_RETURN_IF_ERROR(
      CheckPlaceIsKnown(context.superblock, context.options.segments, context.store()));
  const auto polynomial = RabinPolynomial::Parse(context.superblock.rabin_polynomial);
  if (!polynomial.ok()) context.Report("superblock", polynomial.status());
  return true;
}

}  // namespace siltfs
