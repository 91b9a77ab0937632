#include "fs/kv/kv_store.h"

namespace siltfs {

void PassTo(MutationSink& sink, const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    if (mutation.value) {
      sink.Put(mutation.key, *mutation.value);
    } else {
      sink.Remove(mutation.key);
    }
  }
}

Result<std::optional<KvEntry>> KvSnapshot::FirstIn(std::string_view begin,
                                                   std::string_view end) const {
  const auto iterator = NewIteratorBelow(end);
  iterator->Seek(begin);
  if (iterator->Valid())
    return std::optional(KvEntry{std::string(iterator->key()), std::string(iterator->value())});
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return std::optional<KvEntry>();
}

Result<std::optional<KvEntry>> KvSnapshot::LastIn(std::string_view begin,
                                                  std::string_view end) const {
  std::optional<KvEntry> last;
  const auto iterator = NewIteratorBelow(end);
  for (iterator->Seek(begin); iterator->Valid(); iterator->Next())
    last = KvEntry{std::string(iterator->key()), std::string(iterator->value())};
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return last;
}

Status KvStore::Write(const std::vector<Mutation>& mutations) {
  return WriteFrom([&mutations](MutationSink& sink) { PassTo(sink, mutations); });
}

}  // namespace siltfs
