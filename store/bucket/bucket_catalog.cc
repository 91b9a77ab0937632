#include "store/bucket/bucket_catalog.h"

#include <algorithm>
#include <map>
#include <utility>

#include "store/bucket/bucket_retry.h"
#include "store/bucket/segment_object.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr size_t kPageSize = 1000;
constexpr size_t kMostStrays = 1000;

class Loader {
 public:
  Loader(Env& env, ObjectStore& objects, StopSignal& stop, const std::string& directory,
         std::chrono::nanoseconds timeout)
      : env_(env), objects_(objects), stop_(stop), directory_(directory), timeout_(timeout) {}

  Result<BucketCatalog> Load() {
    // The files come first: a content that is uploaded meanwhile is then in both lists.
    SILTFS_RETURN_IF_ERROR(ListTombstones());
    SILTFS_RETURN_IF_ERROR(ListFiles());
    SILTFS_RETURN_IF_ERROR(ListObjects());
    for (const SegmentContent& content : files_) AddWaiting(content);
    std::ranges::sort(catalog_.waiting, {},
                      [](const WaitingContent& one) { return one.content.id.generation; });
    for (const SegmentContent& content : images_) SILTFS_RETURN_IF_ERROR(AddImage(content));
    return std::move(catalog_);
  }

 private:
  Result<std::vector<DirectoryEntry>> Entries(const std::string& directory) {
    auto entries = env_.ListDirectory(directory);
    if (entries.status().Is(StatusCode::kNotFound)) return std::vector<DirectoryEntry>();
    return entries;
  }

  void AddStray(std::string name) {
    if (catalog_.strays.size() < kMostStrays) catalog_.strays.push_back(std::move(name));
  }

  void See(const ContentId& id) {
    catalog_.last_generation = std::max(catalog_.last_generation, id.generation);
    catalog_.is_empty = false;
  }

  bool IsRemoved(const ContentId& id) const {
    const auto found = removed_.find(id.segment);
    return found != removed_.end() && id.generation <= found->second;
  }

  Status ListTombstones() {
    const std::string directory = RemovedDirectory(directory_);
    SILTFS_ASSIGN_OR_RETURN(const auto entries, Entries(directory));
    for (const DirectoryEntry& entry : entries) {
      const auto tombstone = ParseTombstoneName(entry.name);
      if (!tombstone) {
        AddStray(JoinPath(directory, entry.name));
        continue;
      }
      See(tombstone->id);
      uint64_t& generation = removed_[tombstone->id.segment];
      generation = std::max(generation, tombstone->id.generation);
      catalog_.tombstones.push_back(*tombstone);
    }
    return Status::Ok();
  }

  Status ListFiles() {
    const std::string directory = FilesDirectory(directory_);
    SILTFS_ASSIGN_OR_RETURN(const auto entries, Entries(directory));
    for (const DirectoryEntry& entry : entries) {
      const auto name = ParseLocalFileName(entry.name);
      if (!name || entry.type != FileType::kRegular) {
        AddStray(JoinPath(directory, entry.name));
        continue;
      }
      See(name->content.id);
      (name->kind == LocalFileKind::kWaiting ? files_ : images_).push_back(name->content);
    }
    return Status::Ok();
  }

  Status ListObjects() {
    ObjectPage page{.objects = {}, .more = true};
    std::string after;
    while (page.more) {
      SILTFS_RETURN_IF_ERROR(RepeatRequest(stop_, timeout_, [&] {
        SILTFS_ASSIGN_OR_RETURN(page,
                                objects_.List(std::string(kSegmentKeyPrefix), after, kPageSize));
        return Status::Ok();
      }));
      for (const ObjectInfo& object : page.objects) AddObject(object);
      if (page.objects.empty()) break;
      after = page.objects.back().key;
    }
    return Status::Ok();
  }

  void AddObject(const ObjectInfo& object) {
    const auto id = ParseSegmentObjectKey(object.key);
    const auto size = SegmentBytes(object.size);
    if (!id || !size) {
      AddStray(objects_.name() + "/" + object.key);
      return;
    }
    See(*id);
    const auto current = catalog_.table.Find(id->segment);
    if (IsRemoved(*id) || (current && current->id.generation > id->generation)) {
      catalog_.old_objects.push_back(*id);
      return;
    }
    if (current) catalog_.old_objects.push_back(current->id);
    catalog_.table.Set({*id, *size});
  }

  void AddWaiting(const SegmentContent& content) {
    const auto current = catalog_.table.Find(content.id.segment);
    if (IsRemoved(content.id) || (current && current->id.generation > content.id.generation)) {
      catalog_.old_files.push_back(LocalFilePath(directory_, content, LocalFileKind::kWaiting));
      return;
    }
    const bool may_exist = current && current->id == content.id;
    const auto other =
        std::ranges::find(catalog_.waiting, content.id.segment,
                          [](const WaitingContent& one) { return one.content.id.segment; });
    bool replaces = false;
    if (other != catalog_.waiting.end()) {  // an older file of the same segment
      replaces = other->replaces || other->may_exist;
      if (other->may_exist) catalog_.old_objects.push_back(other->content.id);
      catalog_.old_files.push_back(
          LocalFilePath(directory_, other->content, LocalFileKind::kWaiting));
      catalog_.waiting.erase(other);
    } else if (current && !may_exist) {
      replaces = true;
      catalog_.old_objects.push_back(current->id);
    }
    // An object of this key may be damaged, so the file's size counts.
    catalog_.table.Set(content);
    catalog_.waiting.push_back({content, may_exist, replaces});
  }

  Status AddImage(const SegmentContent& content) {
    const std::string path = LocalFilePath(directory_, content, LocalFileKind::kImage);
    const auto current = catalog_.table.Find(content.id.segment);
    const bool waits = std::ranges::any_of(
        catalog_.waiting, [&](const WaitingContent& one) { return one.content.id == content.id; });
    if (!current || *current != content || waits) {
      catalog_.old_files.push_back(path);
      return Status::Ok();
    }
    const auto info = env_.GetFileInfo(path);
    if (!info.ok()) return info.status();
    catalog_.images.push_back({content, info->allocated_bytes});
    return Status::Ok();
  }

  Env& env_;
  ObjectStore& objects_;
  StopSignal& stop_;
  const std::string directory_;
  const std::chrono::nanoseconds timeout_;
  std::map<SegmentId, uint64_t> removed_;
  std::vector<SegmentContent> files_;
  std::vector<SegmentContent> images_;
  BucketCatalog catalog_;
};

}  // namespace

Result<BucketCatalog> LoadBucketCatalog(Env& env, ObjectStore& objects, StopSignal& stop,
                                        const std::string& directory,
                                        std::chrono::nanoseconds timeout) {
  return Loader(env, objects, stop, directory, timeout).Load();
}

}  // namespace siltfs
