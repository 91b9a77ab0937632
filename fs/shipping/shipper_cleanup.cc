// Shipper: removes what is no longer needed after a checkpoint.
#include <set>
#include <string>

#include "fs/shipping/object_keys.h"
#include "fs/shipping/shipper.h"

namespace siltfs {

void Shipper::RemoveOld() {
  if (older_manifest_.number == 0) return;
  Status removed =
      RemoveBelow(std::string(kManifestPrefix), older_manifest_.number, &ParseManifestKey);
  if (removed.ok()) removed = RemoveParts();
  if (removed.ok())
    removed = RemoveBelow(std::string(kLogPrefix), older_manifest_.number, &ParseLogKey);
  removed.IgnoreError("the next checkpoint removes what is left");
}

// Removes in ascending order (bucket_log.h).
Status Shipper::RemoveBelow(const std::string& prefix, uint64_t number,
                            uint64_t (*parse)(std::string_view)) {
  return ForEachObject(objects_, prefix, [&](const ObjectInfo& info) {
    const uint64_t its = parse(info.key);
    return its > 0 && its < number ? objects_.Remove(info.key) : Status::Ok();
  });
}

Status Shipper::RemoveParts() {
  std::set<std::string> needed;
  for (const Manifest* manifest : {&newest_manifest_, &older_manifest_}) {
    for (const CheckpointPart& part : manifest->parts) needed.insert(PartKey(part));
  }
  // Parts of later epochs sort behind those of this one.
  const std::string end = PartKey({log_.epoch() + 1, {}, 0});
  return ForEachObject(objects_, std::string(kPartPrefix), [&](const ObjectInfo& info) {
    const bool old = info.key < end && !needed.contains(info.key);
    return old ? objects_.Remove(info.key) : Status::Ok();
  });
}

}  // namespace siltfs
