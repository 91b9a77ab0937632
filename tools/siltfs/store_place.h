// Finding stores by what people type: the store's directory, or where it is mounted. A mount is
// found in the kernel's list, without asking it for anything, as its daemon may not answer.
#pragma once

#include <optional>
#include <string>

#include "fs/control/client.h"
#include "store/base/result.h"

namespace siltfs {

// The siltfs mount on this directory; empty if there is none, or something else is mounted over it.
// A mount whose daemon has crashed counts.
Result<std::optional<control::DaemonAddress>> FindMount(const std::string& path);

// The directory of the store mounted on `path`, or else `path` itself, made absolute.
Result<std::string> StoreAt(const std::string& path);

// The same with all that is known of its daemon.
Result<control::DaemonAddress> AddressAt(const std::string& path);

// The same for any path within a mount, too, as df(1) takes it.
Result<control::DaemonAddress> AddressAround(const std::string& path);

// Of the store in this directory (an absolute path), with its mount if there is one here.
control::DaemonAddress AddressOfStore(const std::string& store);

}  // namespace siltfs
