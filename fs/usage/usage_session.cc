#include "fs/usage/usage_session.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "fs/interface/space_usage.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/transfer/caller_rights.h"
#include "fs/transfer/stop_watch.h"
#include "fs/usage/usage_message.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// A client that takes no line for this long is given up. It would delay garbage collection.
constexpr std::chrono::seconds kPatience{60};
// So often progress is sent at most.
constexpr std::chrono::milliseconds kProgressInterval{200};
// So many entries or groups are sent in a line. A group may name a hundred files.
constexpr size_t kEntriesInLine = 256;
constexpr size_t kGroupsInLine = 8;

class UsageSession {
 public:
  UsageSession(FileSystem& file_system, LocalStream& stream, const CallerRights& rights,
               const std::function<bool()>& stopped)
      : file_system_(file_system), stream_(stream), rights_(rights), stopped_(stopped) {}

  Result<Json> Run(usage::Wanted wanted) {
    UsageScope& scope =
        std::visit([](auto& request) -> UsageScope& { return request.scope; }, wanted);
    for (const UsagePath& path : scope.paths)
      SILTFS_RETURN_IF_ERROR(rights_.CheckReach(path.directory));
    if (!rights_.superuser()) {
      scope.admit = [this](const UsageInode& inode) {
        return rights_.MayRead(inode.attributes, inode.access_list);
      };
    }
    const StopWatch stop(stream_);
    scope.check = [&]() -> Status {
      if (stopped_()) return {StatusCode::kAborted, "the store is being closed"};
      if (stop.requested()) return {StatusCode::kInterrupted, "was interrupted"};
      return Status::Ok();
    };
    scope.on_progress = [this](const UsageProgress& progress) { return Report(progress); };
    if (const auto* const request = std::get_if<UsageRequest>(&wanted)) return Measure(*request);
    return FindDuplicates(std::get<DuplicateRequest>(wanted));
  }

 private:
  Status Report(const UsageProgress& progress) {
    const auto now = Clock::now();
    if (now < last_report_ + kProgressInterval) return Status::Ok();
    last_report_ = now;
    return stream_.WriteAll(usage::EncodeProgress(progress));
  }

  template <typename Item>
  Status SendItems(const std::vector<Item>& items, size_t in_line,
                   std::string (*encode)(const std::vector<Item>&)) {
    for (size_t at = 0; at < items.size(); at += in_line) {
      const auto begin = items.begin() + static_cast<ptrdiff_t>(at);
      const auto count = static_cast<ptrdiff_t>(std::min(in_line, items.size() - at));
      SILTFS_RETURN_IF_ERROR(stream_.WriteAll(encode(std::vector<Item>(begin, begin + count))));
    }
    return Status::Ok();
  }

  Result<Json> Measure(const UsageRequest& request) {
    SILTFS_ASSIGN_OR_RETURN(const UsageReport report, file_system_.usage().Measure(request));
    SILTFS_RETURN_IF_ERROR(SendItems(report.entries, kEntriesInLine, usage::EncodeEntries));
    Json result = usage::ToJson(report);
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, file_system_.maintenance().GetStats());
    result["stored_ratio"] = 1 / stats.CompressionRatio();
    return result;
  }

  Result<Json> FindDuplicates(const DuplicateRequest& request) {
    SILTFS_ASSIGN_OR_RETURN(const DuplicateReport report,
                            file_system_.usage().FindDuplicates(request));
    SILTFS_RETURN_IF_ERROR(SendItems(report.groups, kGroupsInLine, usage::EncodeGroups));
    SILTFS_RETURN_IF_ERROR(SendItems(report.pairs, kEntriesInLine, usage::EncodePairs));
    return usage::ToJson(report);
  }

  FileSystem& file_system_;
  LocalStream& stream_;
  const CallerRights& rights_;
  const std::function<bool()>& stopped_;
  Clock::time_point last_report_{};
};

}  // namespace

Result<Json> ServeUsage(FileSystem& file_system, LocalStream& stream,
                        const std::function<bool()>& stopped) {
  SILTFS_ASSIGN_OR_RETURN(const uint32_t uid, stream.PeerUid());
  SILTFS_ASSIGN_OR_RETURN(std::vector<uint32_t> groups, stream.PeerGroups());
  const CallerRights rights(file_system, uid, std::move(groups));
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kPatience));
  SILTFS_ASSIGN_OR_RETURN(const auto line, stream.ReadLine(usage::kMaxRequestBytes));
  if (!line) return Status(StatusCode::kInterrupted, "was interrupted");
  SILTFS_ASSIGN_OR_RETURN(usage::Wanted wanted, usage::DecodeWanted(*line));
  auto outcome = UsageSession(file_system, stream, rights, stopped).Run(std::move(wanted));
  // A missing path is no missing store, which has an exit code of its own.
  if (outcome.status().Is(StatusCode::kNotFound))
    return Status(StatusCode::kAborted, std::string(outcome.status().cause()));
  return outcome;
}

}  // namespace siltfs
