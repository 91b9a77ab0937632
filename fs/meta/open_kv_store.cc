#include "fs/meta/open_kv_store.h"

#include <fmt/format.h>

#include "fs/rocksdb/rocksdb_engine.h"
#include "store/base/thread_annotations.h"

namespace siltfs {
namespace {

class EngineTable {
 public:
  std::vector<const MetadataEngine*> All() const {
    MutexLock lock(mutex_);
    return rows_;
  }
  void Add(const MetadataEngine& engine) {
    MutexLock lock(mutex_);
    rows_.push_back(&engine);
  }
  void Remove(const MetadataEngine& engine) {
    MutexLock lock(mutex_);
    std::erase(rows_, &engine);
  }

 private:
  mutable Mutex mutex_;
  std::vector<const MetadataEngine*> rows_ SILTFS_GUARDED_BY(mutex_) = {
      &kRocksDbEngine,
  };
};

EngineTable& Table() {
  static EngineTable table;
  return table;
}

}  // namespace

std::vector<const MetadataEngine*> MetadataEngines() { return Table().All(); }

Result<const MetadataEngine*> FindMetadataEngine(std::string_view name) {
  const auto engines = MetadataEngines();
  if (name.empty()) return engines.front();
  for (const MetadataEngine* engine : engines) {
    if (engine->name == name) return engine;
  }
  return Status(
      StatusCode::kNeedsNewer,
      fmt::format("metadata is kept by engine \"{}\", which this version does not know", name));
}

Result<std::unique_ptr<KvStore>> OpenKvStore(Env& env, std::string_view engine,
                                             const KvStoreOptions& options) {
  const auto found = FindMetadataEngine(engine);
  if (!found.ok()) return Status(found.status()).At(options.path);
  return (*found)->open(env, options);
}

MetadataEngineForTest::MetadataEngineForTest(const MetadataEngine& engine) : engine_(engine) {
  Table().Add(engine_);
}
MetadataEngineForTest::~MetadataEngineForTest() { Table().Remove(engine_); }

}  // namespace siltfs
