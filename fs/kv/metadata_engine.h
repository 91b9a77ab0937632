// What a metadata engine offers: one row of the table of metadata engines (open_kv_store.h). The
// store's metadata is an ordered key-value store (kv_store.h); an engine keeps its files, checks
// them and salvages them. docs/extending.md lists the steps to add one.
//
// A plain value. Its functions may be called from any thread. `env` must outlive the objects that
// these functions return.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/kv/salvage_loss.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct MetadataEngine {
  // The name in the superblock. It satisfies IsEngineWord and has at most kEngineNameSize bytes.
  std::string_view name;

  // Opens the store. Returns kNotFound if kOpen or kReadOnly finds no store, kAlreadyExists if
  // kCreate finds one, kCorruption for damage that opening notices, and Env's errors. After
  // kNoSpace the call may be repeated.
  Result<std::unique_ptr<KvStore>> (*open)(Env& env, const KvStoreOptions& options);

  // Looks for damage that `open` tolerates, and reports each place with its path and offset. Writes
  // nothing to disk. Fails only if the files cannot be examined.
  Status (*find_tolerated_damage)(Env& env, const KvStoreOptions& options,
                                  const std::function<void(const Status&)>& report);

  // Whether the directory has files of a store, at least one of them not empty.
  Result<bool> (*has_files)(Env& env, const std::string& directory);

  // Calls `visit` with each entry that can be read from a damaged store, in key order; writes
  // nothing. Damaged or missing files are losses in the result, never errors.
  Result<MetadataSalvage> (*salvage)(
      Env& env, const KvStoreOptions& options,
      const std::function<Status(std::string_view key, std::string_view value)>& visit);

  // The most bytes that one Write should have on a disk of this size.
  uint64_t (*most_write_bytes)(uint64_t disk_bytes);
};

}  // namespace siltfs
