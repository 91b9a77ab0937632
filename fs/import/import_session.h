// The daemon's side of `siltfs import`: one call serves one client.
//
// Thread-safety: every call from any thread. Errors: those of transfer::RunLanes; kReadOnly if the
// store cannot be changed; kNotPermitted if the client's user is not known. Durability: the
// imported entries are durable with the next commit (fs/interface/file_system.h).
#pragma once

#include <functional>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs {

// Serves the client until it has ended the import. Returns its totals: "bytes_new", the plain bytes
// of chunks that the store did not have before. (Other programs may have stored some of them.)
Result<nlohmann::json> ServeImport(FileSystem& file_system, KernelCache& cache, LocalStream& stream,
                                   const std::function<bool()>& stopped);

}  // namespace siltfs
