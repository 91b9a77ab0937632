// Finds the store that the user's argument names: by the store's directory or by its mountpoint. A
// mount is found in the kernel's mount table, without a request to the mount, because its daemon
// may not answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fs/control/client.h"
#include "store/base/result.h"

namespace siltfs {

// Returns the siltfs mount on this directory, also if its daemon has crashed. Returns an empty
// value if there is none, or if another file system is mounted over it.
Result<std::optional<control::DaemonAddress>> FindMount(const std::string& path);

// Returns the directory of the store mounted on `path`; if no store is mounted there, returns
// `path` itself, made absolute.
Result<std::string> StoreAt(const std::string& path);

// Like StoreAt, but with the address of the store's daemon.
Result<control::DaemonAddress> AddressAt(const std::string& path);

// Like AddressAt, but accepts any path within a mount, as df(1) does.
Result<control::DaemonAddress> AddressAround(const std::string& path);

// Returns the address with the mountpoint of the live files, if the daemon serves such a mount and
// this process sees it: the address may be that of a mounted snapshot. Otherwise returns `address`.
// Errors: those of control::Identify.
Result<control::DaemonAddress> LiveMountOf(const control::DaemonAddress& address);

// The mount of this address by the daemon's report. Empty if the daemon does not report it.
std::optional<control::ServedMount> ServedMountOf(const control::DaemonAddress& address,
                                                  const control::Identity& daemon);

// A siltfs mount in the kernel's mount table.
struct StoreMount {
  control::DaemonAddress address;
  bool read_only = false;  // by the options of the mount
};
// Returns all siltfs mounts in this mount namespace, in the order in which they were made, also if
// their daemons have crashed.
Result<std::vector<StoreMount>> FindStoreMounts();

// Returns for each mounted store the address of one of its mounts. Any user can make a mount that
// names any store. So a mount of root or of the calling user comes before mounts of other users,
// and otherwise a later one before earlier ones, which may be left from daemons that have crashed.
std::map<std::string, control::DaemonAddress> StoresOf(const std::vector<StoreMount>& mounts);

// Returns the address of the daemon for the store in this directory (an absolute path). The address
// includes the mount (of several, as StoresOf) if the store is mounted in this mount namespace.
control::DaemonAddress AddressOfStore(const std::string& store);

}  // namespace siltfs
