#include "fs/versions/version_walk.h"

#include <memory>
#include <string>

namespace siltfs {

Status ForEachVersion(
    const KvSnapshot& metadata, std::string_view begin, std::string_view end,
    const std::function<Status(const VersionKeyParts& version, std::string_view value)>& visit,
    MalformedVersions malformed) {
  const std::string last = FirstVersionKey(end);
  const auto iterator = metadata.NewIteratorBelow(last);
  for (iterator->Seek(FirstVersionKey(begin)); iterator->Valid(); iterator->Next()) {
    const auto parts = ParseVersionKey(iterator->key());
    const auto value = DecodeVersion(iterator->value());
    if (!parts || !value) {
      if (malformed == MalformedVersions::kSkip) continue;
      return {StatusCode::kCorruption, "a version of a record is malformed"};
    }
    if (*value) SILTFS_RETURN_IF_ERROR(visit(*parts, **value));
  }
  return iterator->status();
}

}  // namespace siltfs
