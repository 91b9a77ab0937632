#include "fs/bucket/verify_bucket.h"

#include <atomic>
#include <optional>
#include <utility>

#include "fs/bucket/bucket_listing.h"
#include "fs/bucket/interruption_poll.h"
#include "fs/bucket/verification.h"
#include "fs/bucket/verify_commits.h"
#include "fs/bucket/verify_segments.h"
#include "fs/open/store_layout.h"
#include "fs/shipping/bucket_log.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr int kMostAttempts = 3;
constexpr uint64_t kProgressStep = 1000;  // listed objects

Result<BucketVerifyReport> VerifyOnce(ObjectStore& objects, const BucketVerifyOptions& options,
                                      const LocalStore* local) {
  Verification verification{objects, options, local};
  BucketVerifyReport& report = verification.report;
  SILTFS_ASSIGN_OR_RETURN(const BucketListing listing,
                          ListBucket(objects, verification.findings, [&](const ObjectInfo& object) {
                            if (++report.objects % kProgressStep == 0)
                              verification.Progress("objects", report.objects, 0);
                            report.bytes += object.size;
                            return verification.GoOn();
                          }));
  report.log_objects = listing.log.size();
  for (const auto& [place, offsets] : listing.tails) report.tails += offsets.size();
  SILTFS_ASSIGN_OR_RETURN(const auto restored, VerifyCommits(verification, listing));
  SILTFS_RETURN_IF_ERROR(VerifySegments(verification, listing, restored ? &*restored : nullptr));
  verification.findings.TakeInto(report);
  return std::move(report);
}

Result<uint64_t> NextOfLog(ObjectStore& objects) {
  for (int attempt = 1;; ++attempt) {
    const auto end = ReadLogEnd(objects);
    if (end.ok()) return end->next;
    // A checkpoint has removed the object since it was listed.
    if (!end.status().Is(StatusCode::kNotFound) || attempt == kMostAttempts) return end.status();
  }
}

Result<BucketVerifyReport> VerifyUntilStable(ObjectStore& objects,
                                             const BucketVerifyOptions& options,
                                             const LocalStore* local) {
  for (int attempt = 1;; ++attempt) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t before, NextOfLog(objects));
    SILTFS_ASSIGN_OR_RETURN(BucketVerifyReport report, VerifyOnce(objects, options, local));
    SILTFS_ASSIGN_OR_RETURN(const uint64_t after, NextOfLog(objects));
    if (report.errors == 0 || before == after || attempt == kMostAttempts) return report;
  }
}

// An interruption also ends requests that wait for a silent bucket.
template <typename Run>
Result<BucketVerifyReport> Interruptibly(ObjectStore& objects, const BucketVerifyOptions& options,
                                         const Run& run) {
  std::atomic<bool> interrupted{false};
  std::optional<InterruptionPoll> poll;
  if (options.interrupted) {
    poll.emplace(options.interrupted, [&] {
      interrupted = true;
      objects.Interrupt();
    });
  }
  Result<BucketVerifyReport> report = run();
  poll.reset();
  if (report.ok() || !interrupted) return report;
  report.status().IgnoreError("the interruption is its cause");
  return Status(StatusCode::kInterrupted, "was interrupted").At(objects.name());
}

}  // namespace

Result<BucketVerifyReport> VerifyBucket(ObjectStore& objects, const BucketVerifyOptions& options) {
  return Interruptibly(objects, options,
                       [&] { return VerifyUntilStable(objects, options, nullptr); });
}

Result<BucketVerifyReport> VerifyBucketOfStore(Env& env, ObjectStore& objects,
                                               const std::string& store,
                                               const BucketVerifyOptions& options) {
  SILTFS_RETURN_IF_ERROR(ReadSuperblock(env, store, StoreAccess::kReadOnly).status());
  SILTFS_ASSIGN_OR_RETURN(const auto lock, env.LockFile(LockPath(store)));
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state,
                          ReadSuperblock(env, store, StoreAccess::kReadOnly));
  if (!state.superblock.in_bucket()) {
    return Status(StatusCode::kInvalidArgument,
                  "the segments of the store are in its directory: check it with siltfs fsck, or "
                  "name the bucket, as s3://NAME/PREFIX")
        .At(store);
  }
  SILTFS_ASSIGN_OR_RETURN(const LocalStore local, ReadLocalStore(env, store, state.superblock));
  return Interruptibly(objects, options,
                       [&] { return VerifyUntilStable(objects, options, &local); });
}

}  // namespace siltfs
