#include "fs/ops/damage_reporter.h"

#include <fmt/format.h>

#include <functional>
#include <string>

namespace siltfs {
namespace {

// The most reported places that are remembered. Each takes about 50 bytes.
constexpr size_t kMostReported = 4096;

}  // namespace

void DamageReporter::ReportRead(InodeNumber inode, uint64_t offset, uint64_t length,
                                const Status& damage) {
  if (!report_) return;
  // A damaged block is identified by its segment's path and its offset. If the segment is gone, the
  // error has no offset. Then many chunks of the inode may be gone, so the inode is reported only
  // once.
  const std::string place = damage.offset() ? fmt::format("{} {}", damage.path(), *damage.offset())
                                            : fmt::format("inode {}", inode);
  bool last = false;
  {
    MutexLock lock(reported_mutex_);
    if (reported_.size() >= kMostReported ||
        !reported_.insert(std::hash<std::string>()(place)).second)
      return;
    last = reported_.size() == kMostReported;
  }
  report_({fmt::format("inode {} cannot be read between bytes {} and {}: {}", inode, offset,
                       offset + length, damage.ToString()),
           damage});
  if (last) report_("more damage is not logged; run `siltfs scrub`");
}

}  // namespace siltfs
