// Opens the metadata's key-value store with the engine that the superblock names, and holds the
// table of metadata engines. A new engine adds one row to open_kv_store.cc.
//
// Thread-safety: any thread. Rows live as long as the program; a row for tests lives as long as its
// MetadataEngineForTest.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/kv/metadata_engine.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// All engines, the default first, and those of tests last.
std::vector<const MetadataEngine*> MetadataEngines();

// Finds an engine by its name in the superblock; an empty name is the default engine. kNeedsNewer,
// with one sentence, for an engine that this version does not know.
Result<const MetadataEngine*> FindMetadataEngine(std::string_view name);

// Opens a store with the engine of this name. Errors: FindMetadataEngine's and MetadataEngine's.
Result<std::unique_ptr<KvStore>> OpenKvStore(Env& env, std::string_view engine,
                                             const KvStoreOptions& options);

// For tests: adds an engine to the table while this object exists. Make and destroy it while no
// other thread uses the table.
class MetadataEngineForTest {
 public:
  explicit MetadataEngineForTest(const MetadataEngine& engine);
  ~MetadataEngineForTest();
  MetadataEngineForTest(const MetadataEngineForTest&) = delete;
  MetadataEngineForTest& operator=(const MetadataEngineForTest&) = delete;

 private:
  const MetadataEngine& engine_;
};

}  // namespace siltfs
