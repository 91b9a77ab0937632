// Finds stores by the user's argument: the store's directory or its mountpoint. A mount is found in
// the kernel's list without any request to it, as its daemon may not answer.
#pragma once

#include <optional>
#include <string>

#include "fs/control/client.h"
#include "store/base/result.h"

namespace siltfs {

// The siltfs mount on this directory; empty if there is none, or something else is mounted over it.
// A mount with a crashed daemon counts.
Result<std::optional<control::DaemonAddress>> FindMount(const std::string& path);

// The directory of the store mounted on `path`, or else `path` itself, made absolute.
Result<std::string> StoreAt(const std::string& path);

// The same, with the address of its daemon.
Result<control::DaemonAddress> AddressAt(const std::string& path);

// The same, and accepts any path within a mount, as df(1) does.
Result<control::DaemonAddress> AddressAround(const std::string& path);

// The address for the store in this directory (an absolute path), with its mount if there is one in
// this mount namespace.
control::DaemonAddress AddressOfStore(const std::string& store);

}  // namespace siltfs
