// The daemon's side of `siltfs du` and `siltfs find-duplicates`: one call serves one client.
//
// The control socket serves the superuser and the user of the daemon only. The superuser may ask
// about everything. The other user learns nothing about files that this user cannot read: the
// directories above a path must be searchable, a directory must be readable and searchable, and a
// file must be readable. What is not is left out and counted. How many bytes are shared with all
// other files together does not depend on rights.
//
// Thread-safety: every call from any thread. Errors: those of UsageMeasures and CallerRights;
// kInterrupted if the client or `stopped` has ended the work.
#pragma once

#include <functional>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs {

// Reads the client's request and answers it. Returns the result (usage_message.h).
Result<nlohmann::json> ServeUsage(FileSystem& file_system, LocalStream& stream,
                                  const std::function<bool()>& stopped);

}  // namespace siltfs
