#include "fs/bucket/verify_commits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/bucket_owner.h"
#include "fs/bucket/segment_records_kv.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/checkpoint.h"
#include "fs/shipping/log_object.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

class CommitVerifier {
 public:
  CommitVerifier(Verification& verification, const BucketListing& listing)
      : verification_(verification), findings_(verification.findings), listing_(listing) {}

  Result<std::optional<RestoredKvStore>> Run() {
    SILTFS_RETURN_IF_ERROR(CheckManifests());
    SILTFS_RETURN_IF_ERROR(ReadCommits());
    SILTFS_RETURN_IF_ERROR(CheckOwner());
    return std::move(restored_);
  }

 private:
  // A writer that was stopped leaves a manifest without the log object that makes it valid.
  Result<bool> IsUnfinished(uint64_t number) {
    const auto bytes = verification_.objects.Get(LogKey(number), kMostLogObjectBytes, nullptr);
    if (bytes.status().Is(StatusCode::kNotFound)) return true;
    if (!bytes.ok()) {
      if (!bytes.status().Is(StatusCode::kCorruption)) return bytes.status();
      bytes.status().IgnoreError("the log object is damaged, so the manifest is as good as lost");
      return false;
    }
    const auto object = DecodeLogObject(*bytes);
    if (object.ok()) return object->kind != LogKind::kCheckpoint;
    object.status().IgnoreError("the log object is damaged, so the manifest is as good as lost");
    return false;
  }

  Status CheckManifests() {
    std::set<std::string> needed;
    for (auto number = listing_.manifests.rbegin(); number != listing_.manifests.rend(); ++number) {
      SILTFS_RETURN_IF_ERROR(verification_.GoOn());
      const auto manifest = ReadValidManifest(verification_.objects, *number);
      if (manifest.ok()) {
        ++verification_.report.checkpoints;
        valid_.push_back(*number);
        for (const CheckpointPart& part : manifest->parts) {
          const std::string key = PartKey(part);
          if (!listing_.parts.contains(key) && !needed.contains(key))
            findings_.Add("missing-object", key, "the part of a checkpoint is missing");
          needed.insert(key);
        }
        continue;
      }
      const std::string key = ManifestKey(*number);
      invalid_.push_back(key);
      SILTFS_ASSIGN_OR_RETURN(const bool unfinished, IsUnfinished(*number));
      if (unfinished) {
        manifest.status().IgnoreError("the checkpoint was never valid");
        findings_.Leftover(key, "a checkpoint was interrupted");
        continue;
      }
      SILTFS_RETURN_IF_ERROR(findings_.Note(manifest.status(), key));
    }
    for (const std::string& key : listing_.parts) {
      if (!needed.contains(key)) findings_.Leftover(key, "no checkpoint has this part");
    }
    // Objects behind the newest checkpoint are read by the restore.
    if (valid_.size() < 2) return Status::Ok();
    for (uint64_t number = valid_.back(); number < valid_.front(); ++number) {
      if (!listing_.log.contains(number))
        findings_.Add("missing-object", LogKey(number), "the object of the log is missing");
    }
    return Status::Ok();
  }

  Status ReadCommits() {
    if (listing_.manifests.empty() && listing_.log.empty() && verification_.local != nullptr) {
      if (verification_.local->position.sequence > 0)
        findings_.Add("damaged-log", std::string(kLogPrefix), "the bucket has lost all commits");
      return Status::Ok();
    }
    RestoreOptions restore;
    restore.stop_at_damage = true;
    restore.interrupted = verification_.options.interrupted;
    restore.on_progress = [this](uint64_t done, uint64_t total) {
      verification_.Progress("commits", done, total);
    };
    restore.report = [this](const std::string& sentence) {
      const bool known = std::ranges::any_of(invalid_, [&](const std::string& key) {
        return sentence.find(key) != std::string::npos;
      });
      if (!known) findings_.Add("damaged-log", std::string(kLogPrefix), sentence);
    };
    auto restored = RestoreKvStore(
        verification_.objects,
        [](const Manifest&) -> Result<std::unique_ptr<KvStore>> {
          return std::unique_ptr<KvStore>(std::make_unique<SegmentRecordsKv>());
        },
        restore);
    if (restored.ok()) {
      restored_ = std::move(restored).value();
      verification_.report.commit = restored_->state.sequence;
      if (verification_.local != nullptr && verification_.local->position.sequence > 0) {
        verification_.report.commits_behind =
            verification_.local->position.sequence -
            std::min(verification_.report.commit, verification_.local->position.sequence);
      }
      return Status::Ok();
    }
    const Status& failed = restored.status();
    const bool in_use = verification_.local != nullptr || !valid_.empty();
    if (failed.Is(StatusCode::kCorruption) || (failed.Is(StatusCode::kNotFound) && in_use)) {
      findings_.Add("damaged-log", std::string(kLogPrefix), std::string(failed.cause()));
      failed.IgnoreError("it is a finding");
      return Status::Ok();
    }
    return failed;
  }

  Status CheckOwner() {
    std::optional<StoreUuid> uuid;
    if (verification_.local != nullptr) uuid = verification_.local->uuid;
    if (restored_ && !uuid) {
      const auto superblock = DecodeSuperblock(AsBytes(restored_->state.attachment));
      if (superblock.ok()) {
        uuid = superblock->uuid;
      } else {
        findings_.Add("damaged-log", std::string(kLogPrefix),
                      fmt::format("the superblock in the log: {}", superblock.status().cause()));
        superblock.status().IgnoreError("it is a finding");
      }
    }
    const auto owner = ReadBucketOwner(verification_.objects);
    if (!owner.ok()) return findings_.Note(owner.status(), kBucketOwnerKey);
    if (uuid && *uuid != *owner) {
      findings_.Add("foreign-owner", kBucketOwnerKey,
                    fmt::format("the prefix belongs to the store {}, and its objects to {}",
                                owner->ToText(), uuid->ToText()));
    }
    return Status::Ok();
  }

  Verification& verification_;
  BucketFindings& findings_;
  const BucketListing& listing_;
  std::vector<uint64_t> valid_;       // checkpoints, the newest first
  std::vector<std::string> invalid_;  // keys of manifests
  std::optional<RestoredKvStore> restored_;
};

}  // namespace

Result<std::optional<RestoredKvStore>> VerifyCommits(Verification& verification,
                                                     const BucketListing& listing) {
  return CommitVerifier(verification, listing).Run();
}

}  // namespace siltfs
