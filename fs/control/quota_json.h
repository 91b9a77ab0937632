// Sets, removes and shows quotas on request, and returns the result as JSON. Only this code defines
// the keys of `siltfs quota ... --json`, a stable interface.
//
//   arguments                                              result
//   {"action":"set","directory":N,"bytes":B,"files":F}     the quota
//   {"action":"remove","directory":N}                      the quota as it was
//   {"action":"show","inode":N}                            the quota that this inode counts against
//   {"action":"list"}                                      {"quotas":[...]}
//
// A limit of 0 is no limit; a limit that "set" does not name stays as it is, and is none for a new
// quota. A quota is {"path","directory","bytes_limit","bytes","files_limit","files"}. The limits
// are null if there are none; "path" begins at the mount's root.
//
// Thread-safety: every call from any thread. Errors: those of DirectoryQuotas; kInvalidArgument for
// malformed arguments; kNoAttribute if there is no quota.
#pragma once

#include <functional>

#include <nlohmann/json.hpp>

#include "fs/interface/directory_quotas.h"
#include "store/base/result.h"

namespace siltfs {

// `check` is called at intervals while inodes are counted, which ends if it fails.
Result<nlohmann::json> RunQuotaCommand(DirectoryQuotas* quotas, const nlohmann::json& arguments,
                                       const std::function<Status()>& check);

}  // namespace siltfs
