#include "fs/bucket/verify_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/object_blocks.h"
#include "fs/bucket/parallel_steps.h"
#include "fs/records/epoch_floors.h"
#include "fs/shipping/segment_tails.h"
#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/segment_object.h"

namespace siltfs {
namespace {

class SegmentVerifier {
 public:
  SegmentVerifier(Verification& verification, const BucketListing& listing,
                  const RestoredKvStore* restored)
      : verification_(verification),
        findings_(verification.findings),
        listing_(listing),
        restored_(restored) {}

  Status Run() {
    if (verification_.local != nullptr) floors_ = verification_.local->floors;
    if (restored_ != nullptr) SILTFS_RETURN_IF_ERROR(CompareRestored());
    if (verification_.local != nullptr) CompareLocal();
    ListLeftovers();
    return CheckObjects();
  }

 private:
  using Object = BucketListing::SegmentObject;

  bool IsHidden(SegmentId id, const Object& object) const {
    if (verification_.local == nullptr) return false;
    const auto removed = verification_.local->removed.find(id);
    return removed != verification_.local->removed.end() && object.generation <= removed->second;
  }

  // The object with the highest generation; null if there is none.
  const Object* Current(SegmentId id, bool with_hidden) const {
    const auto found = listing_.segments.find(id);
    if (found == listing_.segments.end()) return nullptr;
    const Object* current = nullptr;
    for (const Object& object : found->second) {
      if (!with_hidden && IsHidden(id, object)) continue;
      if (IsForeign(id, object)) continue;
      if (current == nullptr || object.generation > current->generation) current = &object;
    }
    return current;
  }

  // Whether the tails have all bytes of the segment.
  Result<bool> HasTails(SegmentId id, uint64_t length) {
    const uint32_t epoch = restored_->state.data_epoch;
    const auto found = listing_.tails.find({epoch, id});
    if (found == listing_.tails.end()) return length == 0;
    std::vector<uint64_t> offsets = found->second;
    std::ranges::sort(offsets);
    uint64_t size = 0;
    for (const uint64_t offset : offsets) {
      if (size >= length || offset > size) break;
      const TailName name{epoch, id, offset};
      const auto object = verification_.objects.Get(TailKey(name), kMostTailObject, nullptr);
      const auto bytes =
          object.ok() ? DecodeTail(name, *object) : Result<std::string>(object.status());
      if (!bytes.ok()) {
        SILTFS_RETURN_IF_ERROR(findings_.Note(bytes.status(), TailKey(name)));
        return true;  // it is a finding already
      }
      size = std::max(size, offset + bytes->size());
    }
    return size >= length;
  }

  // The state of the last commit in the bucket must have all its bytes there.
  Status CompareRestored() {
    SILTFS_ASSIGN_OR_RETURN(floors_, ReadEpochFloors(*restored_->kv->Snapshot()));
    SILTFS_ASSIGN_OR_RETURN(const KnownSegments known,
                            ReadKnownSegments(*restored_->kv->Snapshot()));
    for (const auto& [id, segment] : known) {
      SILTFS_RETURN_IF_ERROR(verification_.GoOn());
      needed_.insert(id);
      const Object* const object = Current(id, /*with_hidden=*/true);
      // A fenced writer may have put an object before the last writer has put its own.
      if (segment.sealed && object != nullptr && HasSizeOf(segment, *object)) {
        Require(id, segment, *object);
        continue;
      }
      SILTFS_ASSIGN_OR_RETURN(const bool has_tails, HasTails(id, segment.length));
      if (has_tails) continue;
      if (segment.sealed && object != nullptr) {
        Require(id, segment, *object);
        continue;
      }
      const auto size = object == nullptr ? std::optional<uint32_t>() : SegmentBytes(object->bytes);
      if (size && *size >= segment.length) {
        wanted_.insert({{id, object->generation}, *size});
        continue;
      }
      if (const Object* const other = Fitting(id, segment); segment.sealed && other != nullptr) {
        Require(id, segment, *other);
        continue;
      }
      Missing(id);
    }
    return Status::Ok();
  }

  bool IsForeign(SegmentId id, const Object& object) const {
    return floors_.IsForeign(id, ContentId{id, object.generation}.epoch());
  }

  // A restore takes such an object, too, rather than none (restore_segments.h).
  const Object* Fitting(SegmentId id, const KnownSegment& segment) const {
    const auto found = listing_.segments.find(id);
    if (found == listing_.segments.end()) return nullptr;
    const auto fits = std::ranges::find_if(
        found->second, [&](const Object& object) { return HasSizeOf(segment, object); });
    return fits == found->second.end() ? nullptr : &*fits;
  }

  // The store needs the objects of all sealed segments that are not local files.
  void CompareLocal() {
    for (const auto& [id, segment] : verification_.local->segments) {
      if (!segment.sealed) continue;
      const Object* const object = Current(id, /*with_hidden=*/false);
      const auto waiting = verification_.local->waiting.find(id);
      const bool waits = waiting != verification_.local->waiting.end() &&
                         (object == nullptr || object->generation < waiting->second);
      if (waits || verification_.local->files.contains(id)) {
        needed_.insert(id);
        ++verification_.report.waiting_segments;
      } else if (object == nullptr) {
        Missing(id);
      } else {
        needed_.insert(id);
        Require(id, segment, *object);
      }
    }
  }

  void Missing(SegmentId id) {
    if (missing_.insert(id).second)
      findings_.Add("missing-object", SegmentObjectStem(id),
                    "the object of the segment is missing");
  }

  static bool HasSizeOf(const KnownSegment& segment, const Object& object) {
    const auto size = SegmentBytes(object.bytes);
    return size && (*size == segment.length || segment.intended == *size);
  }

  void Require(SegmentId id, const KnownSegment& segment, const Object& object) {
    const ContentId content{id, object.generation};
    if (HasSizeOf(segment, object)) {
      wanted_.insert({content, *SegmentBytes(object.bytes)});
    } else if (wrong_.insert(content).second) {
      findings_.Add("wrong-size", SegmentObjectKey(content),
                    fmt::format("the object has {} bytes instead of {}", object.bytes,
                                ObjectBytes(static_cast<uint32_t>(segment.length))));
    }
  }

  void ListLeftovers() {
    for (const auto& [id, all] : listing_.segments) {
      const Object* const current = Current(id, /*with_hidden=*/false);
      for (const Object& object : all) {
        const ContentId content{id, object.generation};
        if (wanted_.contains(content) || wrong_.contains(content)) continue;
        const std::string key = SegmentObjectKey(content);
        if (!needed_.contains(id)) {
          findings_.Leftover(key, "metadata does not know the segment");
        } else if (IsHidden(id, object)) {
          findings_.Leftover(key, "it will be deleted");
        } else if (IsForeign(id, object)) {
          findings_.Leftover(key, "a writer that was fenced has put it");
        } else if (&object != current) {
          findings_.Leftover(key, "the segment has a newer object");
        }
      }
    }
  }

  Status CheckObjects() {
    const std::vector<std::pair<ContentId, uint32_t>> wanted(wanted_.begin(), wanted_.end());
    std::atomic<uint64_t> done{0};
    return RunSteps(wanted.size(), verification_.options.threads, [&](size_t number) -> Status {
      SILTFS_RETURN_IF_ERROR(verification_.GoOn());
      const SegmentContent content{wanted[number].first, wanted[number].second};
      SILTFS_RETURN_IF_ERROR(CheckObject(content));
      verification_.Progress("segments", ++done, wanted.size());
      return Status::Ok();
    });
  }

  Status CheckObject(const SegmentContent& content) {
    uint64_t read = 0;
    Status verified = verification_.options.data
                          ? ReadObjectBlocks(verification_.objects, content, nullptr,
                                             [&](uint64_t, ByteView bytes) {
                                               read += bytes.size();
                                               return verification_.GoOn();
                                             })
                          : ReadTrailer(verification_.objects, content).status();
    if (!verified.ok())
      SILTFS_RETURN_IF_ERROR(findings_.Note(verified, SegmentObjectKey(content.id)));
    MutexLock lock(mutex_);
    verification_.report.data_bytes += read;
    ++verification_.report.segments;
    verification_.report.segment_bytes += content.size;
    return Status::Ok();
  }

  Verification& verification_;
  BucketFindings& findings_;
  const BucketListing& listing_;
  const RestoredKvStore* const restored_;
  EpochFloors floors_;
  std::map<ContentId, uint32_t> wanted_;  // objects whose bytes are verified, and their sizes
  std::set<ContentId> wrong_;             // those with a wrong size
  std::set<SegmentId> needed_;
  std::set<SegmentId> missing_;
  Mutex mutex_;  // for the report, in the threads of CheckObjects
};

}  // namespace

Status VerifySegments(Verification& verification, const BucketListing& listing,
                      const RestoredKvStore* restored) {
  return SegmentVerifier(verification, listing, restored).Run();
}

}  // namespace siltfs
