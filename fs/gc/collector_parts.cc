#include "fs/gc/collector_parts.h"

namespace siltfs {

MoreReferences CollectorParts::Bases() const {
  return [this](const std::function<Status(const ChunkName&)>& visit) {
    for (const SegmentId segment : bases.All()) {
      SILTFS_RETURN_IF_ERROR(ForEachBase(
          segments, segment, [&visit](const BaseRef& base) { return visit(base.name); }));
    }
    return Status::Ok();
  };
}

}  // namespace siltfs
