#include "store/object/object_store_probe.h"

#include <algorithm>

namespace siltfs {
namespace {

constexpr std::string_view kFirst = "probe 1";
constexpr std::string_view kSecond = "probe 2";

Status Unsupported(const ObjectStore& store, std::string_view what) {
  return Status(StatusCode::kUnsupported,
                "the service " + std::string(what) + ", so it cannot keep a store")
      .At(store.name());
}

// A Put that must be refused with this code.
Status MustBeRefused(ObjectStore& store, const std::string& key, const PutCondition& condition,
                     StatusCode code, std::string_view otherwise) {
  const auto put = store.Put(key, AsBytes(kSecond), condition);
  if (put.ok()) return Unsupported(store, otherwise);
  if (!put.status().Is(code)) return put.status();
  return Status::Ok();
}

Status MustHold(ObjectStore& store, const std::string& key, std::string_view content) {
  SILTFS_ASSIGN_OR_RETURN(const Bytes found, store.Get(key, 1000, nullptr));
  if (AsText(found) != content) return Unsupported(store, "returns old contents of an object");
  SILTFS_ASSIGN_OR_RETURN(const ObjectPage page, store.List(key, "", 1));
  if (page.objects.size() != 1 || page.objects[0].key != key) {
    return Unsupported(store, "does not list a new object");
  }
  return Status::Ok();
}

}  // namespace

Status ProbeObjectStore(ObjectStore& store, const std::string& key) {
  SILTFS_ASSIGN_OR_RETURN(const std::string first,
                          store.Put(key, AsBytes(kFirst), PutCondition::IfAbsent()));
  SILTFS_RETURN_IF_ERROR(MustHold(store, key, kFirst));
  SILTFS_RETURN_IF_ERROR(MustBeRefused(store, key, PutCondition::IfAbsent(),
                                       StatusCode::kAlreadyExists,
                                       "replaces an object although If-None-Match forbids it"));
  SILTFS_ASSIGN_OR_RETURN(const std::string second,
                          store.Put(key, AsBytes(kSecond), PutCondition::IfVersion(first)));
  if (second == first) return Unsupported(store, "gives the same ETag to different contents");
  SILTFS_RETURN_IF_ERROR(MustHold(store, key, kSecond));
  SILTFS_RETURN_IF_ERROR(MustBeRefused(store, key, PutCondition::IfVersion(first),
                                       StatusCode::kStale,
                                       "replaces an object although If-Match forbids it"));
  SILTFS_RETURN_IF_ERROR(store.Remove(key));
  const auto removed = store.Stat(key);
  if (removed.ok()) return Unsupported(store, "returns removed objects");
  return removed.status().Is(StatusCode::kNotFound) ? Status::Ok() : removed.status();
}

}  // namespace siltfs
