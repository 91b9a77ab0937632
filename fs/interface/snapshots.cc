#include "fs/interface/snapshots.h"

#include <fmt/format.h>

namespace siltfs {

Status CheckSnapshotName(std::string_view name) {
  if (IsName(name)) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("\"{}\" cannot be the name of a snapshot, because no file can have this name",
                      name)};
}

}  // namespace siltfs
