#include "tools/siltfs/small_disk.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/size_text.h"
#include "store/env/space_reserve.h"

namespace siltfs {

Status CheckDiskSize(Env& env, const std::string& store) {
  auto disk = env.GetDiskSpace(store);
  if (!disk.ok()) disk = env.GetDiskSpace(store.substr(0, std::max<size_t>(store.rfind('/'), 1)));
  if (!disk.ok()) {
    disk.status().IgnoreError("making the store reports the cause");
    return Status::Ok();
  }
  if (disk->total_bytes >= SpaceReserve::kLeastDisk) return Status::Ok();
  return Status(StatusCode::kNoSpace,
                fmt::format("the disk has {}, and a store needs a disk of {} at least",
                            FormatSize(disk->total_bytes), FormatSize(SpaceReserve::kLeastDisk)))
      .At(store);
}

std::optional<std::string> WarnOfSmallDisk(Env& env, const std::string& store) {
  const auto disk = env.GetDiskSpace(store);
  if (!disk.ok() || disk->total_bytes >= SpaceReserve::kLeastUsefulDisk) return std::nullopt;
  const auto reserve = SpaceReserve::For(disk->total_bytes);
  return fmt::format(
      "{}: the disk has {}, of which {} are kept for deleting files when it is full; a store needs "
      "a disk of {} at least to be of use",
      store, FormatSize(disk->total_bytes), FormatSize(reserve.pieces * reserve.piece_bytes),
      FormatSize(SpaceReserve::kLeastUsefulDisk));
}

}  // namespace siltfs
