#include "fs/bucket/bucket_owner.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "fs/open/store_layout.h"
#include "store/env/files.h"
#include "store/object/object_store_probe.h"
#include "store/s3/bucket_address.h"

namespace siltfs {
namespace {

constexpr std::string_view kOwnerText = "siltfs store ";
constexpr size_t kMostOwnerBytes = 4096;
constexpr size_t kProbesListed = 100;

std::string OwnerText(const StoreUuid& uuid) {
  return fmt::format("{}{}\n", kOwnerText, uuid.ToText());
}

// The claim made the object, although its answer was lost or another answer came.
Result<bool> IsOwner(ObjectStore& objects, const StoreUuid& uuid) {
  const auto owner = ReadBucketOwner(objects);
  if (owner.ok()) return *owner == uuid;
  if (owner.status().Is(StatusCode::kNotFound) || owner.status().Is(StatusCode::kCorruption)) {
    owner.status().IgnoreError("the prefix is not claimed for this store");
    return false;
  }
  return owner.status();
}

Status Refuse(ObjectStore& objects, const std::string& key) {
  const auto owner = ReadBucketOwner(objects);
  const std::string whose = owner.ok() ? fmt::format("belongs to the store {}", owner->ToText())
                                       : fmt::format("has objects, such as \"{}\"", key);
  return Status(StatusCode::kAlreadyExists,
                fmt::format("the bucket {}; choose another prefix, or remove what is there; "
                            "nothing was changed",
                            whose))
      .At(objects.name());
}

// Tests the service with an object that no other claim uses.
Status Probe(ObjectStore& objects, const StoreUuid& uuid) {
  const std::string key = fmt::format("{}-{}", kBucketProbePrefix, uuid.ToText());
  SILTFS_RETURN_IF_ERROR(objects.Remove(key));
  Status probed = ProbeObjectStore(objects, key);
  if (!probed.ok()) objects.Remove(key).IgnoreError("later claims ignore the object");
  return probed;
}

Status PutOwner(ObjectStore& objects, const StoreUuid& uuid) {
  const auto put = objects.Put(kBucketOwnerKey, AsBytes(OwnerText(uuid)), PutCondition::IfAbsent());
  if (put.ok()) return Status::Ok();
  const auto ours = IsOwner(objects, uuid);
  if (!ours.ok()) {
    return Status(put.status().code(),
                  fmt::format("{}; if the bucket has the object \"siltfs\" with the UUID {} "
                              "afterwards, remove it by hand",
                              put.status().ToString(), uuid.ToText()))
        .At(objects.name());
  }
  if (*ours) return Status::Ok();
  if (!put.status().Is(StatusCode::kAlreadyExists)) return put.status();
  return Status(StatusCode::kAlreadyExists,
                "another mkfs has claimed the bucket at the same time; nothing was changed")
      .At(objects.name());
}

}  // namespace

Result<StoreUuid> ReadBucketOwner(ObjectStore& objects) {
  const auto text = objects.Get(kBucketOwnerKey, kMostOwnerBytes, nullptr);
  SILTFS_RETURN_IF_ERROR(text.status());
  std::string_view line = AsText(*text);
  std::optional<StoreUuid> uuid;
  if (line.starts_with(kOwnerText) && line.ends_with('\n')) {
    line.remove_prefix(kOwnerText.size());
    line.remove_suffix(1);
    uuid = StoreUuid::FromText(line);
  }
  if (uuid) return *uuid;
  return Status(StatusCode::kCorruption, "the object does not name a store")
      .At(objects.name() + "/siltfs");
}

Status CheckBucketOwner(ObjectStore& objects, const StoreUuid& uuid) {
  const auto owner = ReadBucketOwner(objects);
  if (owner.status().Is(StatusCode::kNotFound)) {
    return Status(
               StatusCode::kNotFound,
               fmt::format("the bucket does not have the store ({}): see that the bucket file of "
                           "the store names the right bucket and endpoint",
                           owner.status().cause()))
        .At(objects.name());
  }
  SILTFS_RETURN_IF_ERROR(owner.status());
  if (*owner == uuid) return Status::Ok();
  return Status(
             StatusCode::kInvalidArgument,
             fmt::format("the bucket belongs to the store {}, not to {}: see that the bucket file "
                         "of the store names the right bucket",
                         owner->ToText(), uuid.ToText()))
      .At(objects.name());
}

Status ClaimBucket(ObjectStore& objects, const StoreUuid& uuid) {
  SILTFS_ASSIGN_OR_RETURN(const ObjectPage page, objects.List("", "", kProbesListed));
  std::vector<std::string> probes;
  for (const ObjectInfo& object : page.objects) {
    if (!object.key.starts_with(kBucketProbePrefix)) return Refuse(objects, object.key);
    probes.push_back(object.key);
  }
  SILTFS_RETURN_IF_ERROR(Probe(objects, uuid));
  SILTFS_RETURN_IF_ERROR(PutOwner(objects, uuid));
  // A claim that still tests the service fails in any case now.
  for (const std::string& probe : probes)
    objects.Remove(probe).IgnoreError("later commands ignore the object");
  return Status::Ok();
}

Status ReleaseBucket(ObjectStore& objects) { return objects.Remove(kBucketOwnerKey); }

Status CheckNoOuterStore(
    const std::string& address,
    const std::function<Result<std::unique_ptr<ObjectStore>>(const std::string& address)>& open) {
  SILTFS_ASSIGN_OR_RETURN(BucketAddress outer, ParseBucketUrl(address));
  while (!outer.prefix.empty()) {
    const size_t slash = outer.prefix.rfind('/');
    outer.prefix.resize(slash == std::string::npos ? 0 : slash);
    SILTFS_ASSIGN_OR_RETURN(const auto objects, open(outer.ToUrl()));
    const auto owner = ReadBucketOwner(*objects);
    if (owner.status().Is(StatusCode::kIoError) || owner.status().Is(StatusCode::kInterrupted))
      return owner.status();
    if (!owner.ok()) {
      owner.status().IgnoreError("no store owns this prefix, as far as it may be read");
      continue;
    }
    return Status(StatusCode::kAlreadyExists,
                  fmt::format("the store {} owns {} with everything below it; choose a prefix that "
                              "is not below that of another store",
                              owner->ToText(), outer.ToUrl()))
        .At(address);
  }
  return Status::Ok();
}

Result<std::array<uint8_t, 16>> ReadBucketWriter(Env& env, const std::string& store) {
  std::array<uint8_t, 16> id{};
  SILTFS_ASSIGN_OR_RETURN(const auto file,
                          env.OpenFile(BucketWriterPath(store), {.mode = OpenMode::kRead}));
  SILTFS_RETURN_IF_ERROR(ReadExactly(*file, 0, id));
  return id;
}

Result<std::array<uint8_t, 16>> BucketWriterOf(Env& env, const std::string& store) {
  auto known = ReadBucketWriter(env, store);
  if (!known.status().Is(StatusCode::kNotFound)) return known;
  std::array<uint8_t, 16> id{};
  SILTFS_RETURN_IF_ERROR(env.FillRandom(id));
  SILTFS_RETURN_IF_ERROR(ReplaceFile(env, BucketWriterPath(store), id));
  return id;
}

}  // namespace siltfs
