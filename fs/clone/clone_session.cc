#include "fs/clone/clone_session.h"

#include <chrono>
#include <vector>

#include "fs/clone/clone_message.h"
#include "fs/interface/entry_store.h"
#include "fs/transfer/caller_rights.h"
#include "fs/transfer/stop_watch.h"

namespace siltfs {
namespace {

// A client that takes no progress for this long is given up. It would delay garbage collection.
constexpr std::chrono::seconds kPatience{60};

Result<CloneOutcome> MakeClone(FileSystem& file_system, const CallerRights& rights,
                               const clone::Wanted& wanted, LocalStream& stream,
                               const std::function<bool()>& stopped) {
  CloneRequest request{.source = wanted.source, .parent = wanted.parent, .name = wanted.name};
  if (!rights.superuser()) {
    request.admit = [&rights](const ClonedInode& inode) { return rights.CheckClone(inode); };
    request.admit_xattr = [&rights](std::string_view name) { return rights.CheckXattrName(name); };
  }
  const StopWatch stop(stream);
  request.on_progress = [&](const CloneTotals& totals) -> Status {
    if (stopped()) return {StatusCode::kAborted, "the store is being closed"};
    if (stop.requested()) return {StatusCode::kInterrupted, "was interrupted"};
    return stream.WriteAll(clone::EncodeProgress(totals));
  };
  return file_system.entries().Clone(request);
}

}  // namespace

Result<nlohmann::json> ServeClone(FileSystem& file_system, KernelCache& cache, LocalStream& stream,
                                  const std::function<bool()>& stopped) {
  SILTFS_ASSIGN_OR_RETURN(const uint32_t uid, stream.PeerUid());
  SILTFS_ASSIGN_OR_RETURN(std::vector<uint32_t> groups, stream.PeerGroups());
  const CallerRights rights(file_system, uid, std::move(groups));
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kPatience));
  SILTFS_ASSIGN_OR_RETURN(const auto line, stream.ReadLine(clone::kMaxLineBytes));
  if (!line) return Status(StatusCode::kInterrupted, "was interrupted");
  SILTFS_ASSIGN_OR_RETURN(const clone::Wanted wanted, clone::DecodeWanted(*line));
  SILTFS_RETURN_IF_ERROR(rights.CheckReach(wanted.parent));
  SILTFS_RETURN_IF_ERROR(rights.CheckChange(wanted.parent, wanted.name));
  SILTFS_ASSIGN_OR_RETURN(const CloneOutcome outcome,
                          MakeClone(file_system, rights, wanted, stream, stopped));
  if (file_system.entries().MayBeCached(wanted.parent)) {
    cache.ForgetName(wanted.parent, wanted.name);
    cache.ForgetInode(wanted.parent, /*listing=*/true);
  }
  return clone::ToJson(outcome.totals);
}

}  // namespace siltfs
