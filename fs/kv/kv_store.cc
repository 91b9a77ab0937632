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

Status KvStore::Write(const std::vector<Mutation>& mutations) {
  return WriteFrom([&mutations](MutationSink& sink) { PassTo(sink, mutations); });
}

}  // namespace siltfs
