// The daemon's side of a mount that another process hands over (attach_message.h): one call serves
// one client.
//
// Thread-safety: every call from any thread. Errors: kNotFound if there is no such snapshot; those
// of AttachedMounts::Add; kInvalidArgument if the client does not follow the protocol; kInterrupted
// if it leaves or is silent for too long. After an error the daemon keeps nothing of the mount.
#pragma once

#include <functional>

#include <nlohmann/json.hpp>

#include "fs/attach/attached_mounts.h"
#include "fs/interface/file_system.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs {

// Returns when the mount is served, or has failed.
Result<nlohmann::json> ServeAttach(FileSystem& file_system, AttachedMounts& mounts,
                                   LocalStream& stream, const std::function<bool()>& stopped);

}  // namespace siltfs
