// A SegmentStore of each kind on a simulated device, for the conformance tests.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "store/bucket/bucket_segment_store.h"
#include "store/object/memory_object_store.h"
#include "store/segment/memory_segment_store.h"
#include "store/segment/segment_store.h"
#include "tests/store/segment/segment_test_support.h"

namespace siltfs::testing {

// kBucketWaiting: no segment is ever uploaded. kBucket: each segment is uploaded at once, and the
// cache has room for some of them only.
enum class StoreKind : uint8_t { kDirectory, kMemory, kStaged, kBucketWaiting, kBucket };

inline const char* NameOfKind(StoreKind kind) {
  constexpr const char* kNames[] = {"directory", "memory", "staged", "bucket, waiting", "bucket"};
  return kNames[static_cast<size_t>(kind)];
}

// Content in which each 8 bytes hold the seed. So a mix of two contents can be detected.
inline std::string ContentOf(uint64_t seed, size_t words) {
  std::string content;
  for (size_t i = 0; i < words; ++i) content += fmt::format("{:08x}", seed);
  return content;
}

// Not thread-safe, except for the calls of `store()`.
class SegmentStoreBench {
 public:
  explicit SegmentStoreBench(StoreKind kind) : kind_(kind) { Reopen(); }

  SegmentStore& store() { return *store_; }
  SimEnv& env() { return device_.env; }
  const std::string& path() const { return device_.path; }
  // Holds the sealed segments of the kinds kMemory and kStaged.
  MemorySegmentStore& memory() { return memory_; }
  StoreKind kind() const { return kind_; }
  bool in_bucket() const {
    return kind_ == StoreKind::kBucketWaiting || kind_ == StoreKind::kBucket;
  }

  // Makes a synced file with this content, which is no segment yet.
  SegmentSource Source(const std::string& content) {
    const std::string path = fmt::format("{}/source {}", device_.path, ++sources_);
    REQUIRE_OK(ReplaceFile(device_.env, path, AsBytes(content)));
    return {device_.env, path};
  }
  // Makes the synced file of a segment, at the path of this segment in the store's directory.
  SegmentSource Built(SegmentId id, const std::string& content) {
    device_.SetFileBytes(id, content);
    return BuiltSegment(device_.env, device_.path, id);
  }
  SegmentSource Replacement(SegmentId id, const std::string& content) {
    auto file = Must(CreateTemporarySegment(device_.env, device_.path, id));
    REQUIRE_OK(file->Write(0, AsBytes(content)));
    REQUIRE_OK(file->Sync());
    return BuiltReplacement(device_.env, device_.path, id);
  }
  void Put(SegmentId id, const std::string& content) {
    REQUIRE_OK(store().Put(id, Source(content)));
    FinishChange();
  }
  void Replace(SegmentId id, const std::string& content) {
    REQUIRE_OK(store().Replace(id, Replacement(id, content)));
    FinishChange();
  }

  Result<std::string> Read(SegmentId id) {
    SILTFS_ASSIGN_OR_RETURN(const auto file, store().Open(id));
    return ReadAll(*file);
  }
  static Result<std::string> ReadAll(const ReadableFile& file) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
    Bytes bytes(size);
    SILTFS_ASSIGN_OR_RETURN(const size_t got, file.Read(0, bytes));
    bytes.resize(got);
    return std::string(AsText(bytes));
  }

  // Opens the store again, as after the process was killed.
  void Reopen() {
    if (kind_ == StoreKind::kMemory) {
      store_ = std::make_unique<Borrowed>(memory_);
    } else if (in_bucket()) {
      store_ = nullptr;
      bucket_ = std::make_unique<BucketSegmentStore>(
          device_.env, objects_,
          BucketOptions{.directory = device_.path,
                        .cache_bytes = uint64_t{kind_ == StoreKind::kBucket ? 40U : 1024U} << 10,
                        .upload_threads = 0,
                        .fetch_threads = 0,
                        .bucket_timeout = std::chrono::nanoseconds(0)});
      store_ = OpenSegmentStore(device_.env, device_.path, bucket_.get());
    } else {
      store_ = OpenSegmentStore(device_.env, device_.path,
                                kind_ == StoreKind::kStaged ? &memory_ : nullptr);
    }
  }
  // Loses everything that is not durable.
  void PowerCut(const CrashPolicy& policy = {}) {
    device_.env.PowerIsOn() ? device_.env.PowerCut(policy) : device_.env.Reboot(policy);
    Reopen();
  }
  // From now on, reads of segments that were put fail.
  void FailReads() {
    if (kind_ == StoreKind::kBucket) {
      device_.env.FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = "files/"});
      objects_.FailCall({.call = ObjectCall::kGet, .permanent = true});
    } else if (kind_ == StoreKind::kBucketWaiting) {
      device_.env.FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = ".put"});
    } else if (kind_ == StoreKind::kDirectory) {
      device_.env.FailCall({.calls = SimCall::kRead, .sticky = true, .path_part = ".seg"});
    } else {
      memory_.FailCall({.call = SegmentCall::kRead, .permanent = true});
    }
  }

 private:
  // Passes all calls on to a store that it does not own.
  class Borrowed final : public SegmentStore {
   public:
    explicit Borrowed(SegmentStore& store) : to_(store) {}
    const std::string& name() const override { return to_.name(); }
    std::string NameOf(SegmentId id) const override { return to_.NameOf(id); }
    std::optional<SegmentId> IdOf(std::string_view name) const override { return to_.IdOf(name); }
    Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override { return to_.Open(id); }
    uint64_t UnansweredReads() const override { return to_.UnansweredReads(); }
    Status Put(SegmentId id, const SegmentSource& from) override { return to_.Put(id, from); }
    Status Replace(SegmentId id, const SegmentSource& from) override {
      return to_.Replace(id, from);
    }
    Status Remove(SegmentId id) override { return to_.Remove(id); }
    Result<SegmentListing> List() override { return to_.List(); }
    Result<SegmentListing> Recover() override { return to_.Recover(); }

   private:
    SegmentStore& to_;
  };

  void FinishChange() {
    if (kind_ == StoreKind::kBucket) REQUIRE_OK(bucket_->RunBackground());
  }

  const StoreKind kind_;
  TestStore device_;
  MemorySegmentStore memory_;
  MemoryObjectStore objects_;
  std::unique_ptr<BucketSegmentStore> bucket_;
  std::unique_ptr<SegmentStore> store_;
  int sources_ = 0;
};

}  // namespace siltfs::testing
