// The daemon's side of `siltfs export`: one call serves one client.
//
// Thread-safety: every call from any thread. Errors: those of transfer::RunLanes. Changes nothing.
#pragma once

#include <functional>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs {

// Serves the client until it has ended the export.
Result<nlohmann::json> ServeExport(FileSystem& file_system, LocalStream& stream,
                                   const std::function<bool()>& stopped);

}  // namespace siltfs
