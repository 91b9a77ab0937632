#include "fs/kv/kv_store.h"

namespace siltfs {
namespace {

// Writes each run at once.
class WrittenLoad final : public KvLoad {
 public:
  explicit WrittenLoad(KvStore& store) : store_(store) {}

  Status Add(const KvRun& run) override {
    return store_.WriteFrom([&run](MutationSink& sink) {
      for (const KvRecord& record : run) sink.Put(record.key, record.value);
    });
  }
  Status Load() override { return Status::Ok(); }

 private:
  KvStore& store_;
};

}  // namespace

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

Result<std::unique_ptr<KvLoad>> KvStore::NewLoad() {
  return std::unique_ptr<KvLoad>(std::make_unique<WrittenLoad>(*this));
}

}  // namespace siltfs
