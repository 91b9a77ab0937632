// The messages with which a process hands a mount to the daemon that has the store open. They
// follow the greeting of the session "attach" (fs/control/protocol.h):
//
//   client  one line: {"snapshot":"NAME","mountpoint":"/PATH","xattrs":true,"max_read":N}
//   daemon  one line: {"ok":true,"result":null}, or the failure
//   client  makes the mount, and sends kMountBytes bytes: the mount's device number, together with
//           the descriptor of its connection to the kernel
//   daemon  the result of the session: null once the kernel has accepted the mount, or the failure
//
// "max_read" is left out if the mount does not have this option. Further keys like it are "uid",
// "gid" and "umask" (fs/fuse/owner_mapping.h).
//
// Thread-safety: pure functions. Errors: kInvalidArgument for a message that is malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fs/fuse/owner_mapping.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs::attach {

inline constexpr std::string_view kCommand = "attach";
// The session in which a daemon gets its own mount (mount_receiver.h), and the name that stands for
// the device in the abstract address of a daemon that waits for it.
inline constexpr std::string_view kMountCommand = "mount";
inline constexpr const char* kAwaited = "awaited";
inline constexpr uint64_t kVersion = 1;
inline constexpr size_t kMaxLineBytes = 16384;
inline constexpr size_t kMountBytes = 8;

struct Wanted {
  std::string snapshot;
  std::string mountpoint;  // absolute; for messages and to unmount
  bool xattrs = true;
  std::optional<uint32_t> max_read;
  OwnerMapping owners = {};
  bool operator==(const Wanted&) const = default;
};

std::string EncodeWanted(const Wanted& wanted);  // with the newline
Result<Wanted> DecodeWanted(std::string_view line);

// The major number is in the upper 32 bits. 0 if the client does not know it.
Bytes EncodeDevice(uint64_t device);
Result<uint64_t> DecodeDevice(ByteView message);

// As in the table of mounts: "0:53". Empty for 0.
std::string DeviceText(uint64_t device);

}  // namespace siltfs::attach
