// A BucketSegmentStore on a simulated device and an object store in memory.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/bucket_segment_store.h"
#include "store/bucket/segment_object.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline constexpr uint64_t kKiB = 1024;
inline constexpr std::chrono::seconds kPatience{60};  // for what must happen, on a slow machine

template <typename T>
T Must(Result<T> result) {
  REQUIRE_OK(result);
  return std::move(result).value();
}

// Bytes that depend on the seed and on the place.
inline std::string RandomContent(uint64_t seed, size_t size) {
  std::string content(size, '\0');
  Random random(seed);
  random.Fill({reinterpret_cast<uint8_t*>(content.data()), content.size()});
  return content;
}

inline Result<std::string> ReadWhole(const ReadableFile& file, size_t piece = 64 * kKiB) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  std::string content;
  Bytes bytes(piece);
  while (content.size() < size) {
    SILTFS_ASSIGN_OR_RETURN(const size_t got, file.Read(content.size(), bytes));
    if (got == 0) return Status(StatusCode::kCorruption, "the file is shorter than its size");
    content += AsText(ByteView(bytes).first(got));
  }
  return content;
}

// Not thread-safe, except for the calls of `store()`.
class BucketBench {
 public:
  static BucketOptions Options() {
    return {.directory = "/cache",
            .cache_bytes = uint64_t{64} << 20,
            .upload_threads = 0,
            .fetch_threads = 0,
            .bucket_timeout = std::chrono::nanoseconds(0),
            .room_timeout = std::chrono::nanoseconds(0)};
  }

  explicit BucketBench(BucketOptions options = Options(), MemoryObjectOptions bucket = {})
      : options_(std::move(options)), objects_(std::make_unique<MemoryObjectStore>(bucket)) {
    REQUIRE_OK(env_.CreateDirectory("/cache"));
    REQUIRE_OK(env_.CreateDirectory("/built"));
    REQUIRE_OK(env_.SyncDirectory("/"));
    Reopen();
  }

  BucketSegmentStore& store() { return *store_; }
  SimEnv& env() { return env_; }
  MemoryObjectStore& objects() { return *objects_; }
  BucketOptions& options() { return options_; }

  SegmentSource Source(const std::string& content) {
    const std::string path = fmt::format("/built/{}", ++sources_);
    REQUIRE_OK(ReplaceFile(env_, path, AsBytes(content)));
    return {env_, path};
  }
  void Put(SegmentId id, const std::string& content) {
    REQUIRE_OK(store().Put(id, Source(content)));
  }
  void Replace(SegmentId id, const std::string& content) {
    REQUIRE_OK(store().Replace(id, Source(content)));
  }
  void Work() { REQUIRE_OK(store().RunBackground()); }
  void PutUploaded(SegmentId id, const std::string& content) {
    Put(id, content);
    Work();
  }
  Result<std::string> Read(SegmentId id, size_t piece = 64 * kKiB) {
    SILTFS_ASSIGN_OR_RETURN(const auto file, store().Open(id));
    return ReadWhole(*file, piece);
  }

  // Opens the store again, as after the process was killed.
  void Reopen() {
    store_ = nullptr;
    store_ = std::make_unique<BucketSegmentStore>(env_, *objects_, options_);
  }
  void PowerCut(const CrashPolicy& policy = {}) {
    env_.PowerIsOn() ? env_.PowerCut(policy) : env_.Reboot(policy);
    Reopen();
  }
  // Opens the bucket with an empty directory, as another machine.
  void LoseMachine() {
    store_ = nullptr;
    for (const auto& path : Files("/cache/files")) REQUIRE_OK(env_.RemoveFile(path));
    for (const auto& path : Files("/cache/removed")) REQUIRE_OK(env_.RemoveFile(path));
    Reopen();
  }

  std::vector<std::string> Files(const std::string& directory) {
    std::vector<std::string> paths;
    const auto entries = env_.ListDirectory(directory);
    if (!entries.ok()) return paths;
    for (const DirectoryEntry& entry : *entries) paths.push_back(JoinPath(directory, entry.name));
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  std::vector<std::string> Images() { return FilesThatEnd(".obj"); }
  std::vector<std::string> Waiting() { return FilesThatEnd(".put"); }
  // Removes the images from the local disk, so that reads need the bucket.
  void DropImages() {
    store_ = nullptr;
    for (const auto& path : Images()) REQUIRE_OK(env_.RemoveFile(path));
    Reopen();
  }

 private:
  std::vector<std::string> FilesThatEnd(std::string_view suffix) {
    std::vector<std::string> paths = Files("/cache/files");
    std::erase_if(paths, [&](const std::string& path) { return !path.ends_with(suffix); });
    return paths;
  }

  BucketOptions options_;
  SimEnv env_;
  std::unique_ptr<MemoryObjectStore> objects_;
  std::unique_ptr<BucketSegmentStore> store_;
  int sources_ = 0;
};

}  // namespace siltfs::testing
