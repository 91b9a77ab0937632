// The daemon's side of `siltfs clone`: one call serves one client.
//
// The superuser may clone everything. Another user may clone what belongs to this user and to one
// of the user's groups, because the copies have the same owners. Device nodes, and attributes that
// only the superuser may set, are refused.
//
// Thread-safety: every call from any thread. Errors: those of EntryStore::Clone and CallerRights;
// kReadOnly if the store cannot be changed; kInterrupted if the client or `stopped` has ended the
// clone. Durability: the clone is durable with the next commit (fs/interface/file_system.h).
#pragma once

#include <functional>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs {

// Reads the client's request and makes the clone. Returns its totals (clone_message.h).
Result<nlohmann::json> ServeClone(FileSystem& file_system, KernelCache& cache, LocalStream& stream,
                                  const std::function<bool()>& stopped);

}  // namespace siltfs
