// Shows and changes the parameters of a store that can be changed after mkfs, for `siltfs tune`.
//
// Thread-safety: from any thread. The store must not be mounted while it is changed: TuneStore
// takes the store's lock. Durability: the change is durable on return. Each copy of the superblock
// is replaced atomically (store/superblock/superblock.h). So after a crash the store has all
// changes of a call or none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/store_uuid.h"
#include "store/superblock/superblock.h"

namespace siltfs {

struct UuidChoice {
  enum class Kind : uint8_t {
    kGiven,
    kRandom,
    kOriginal,  // the one that mkfs has drawn
  };
  Kind kind = Kind::kGiven;
  StoreUuid given;
};

// An empty field leaves the parameter as it is.
struct StoreChanges {
  std::optional<int> compression_level = {};  // as in MakeStoreOptions
  std::optional<uint64_t> index_memory = {};  // bytes
  std::optional<std::string> label = {};      // an empty label removes the store's label
  std::optional<UuidChoice> uuid = {};

  bool empty() const { return !compression_level && !index_memory && !label && !uuid; }
};

struct TunedStore {
  Superblock before;
  Superblock after;
};

// kInvalidArgument for a value that the store cannot have; nothing is changed then. kInUse if
// another process has the store open. Other errors: those of ReadSuperblock and WriteSuperblock.
// If all values are those that the store has, nothing is written.
Result<TunedStore> TuneStore(Env& env, const std::string& store, const StoreChanges& changes);

}  // namespace siltfs
