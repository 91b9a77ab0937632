// Whether the daemon of a store serves a mount that the mount table has.
//
// Thread-safety: from any thread.
#pragma once

#include "fs/control/client.h"
#include "store/base/result.h"

namespace siltfs {

// Asks the daemon of a mount which process it is. kStale if the daemon serves the store, but not
// this mount: that of an earlier daemon, which has crashed. Other errors: those of
// control::Identify.
Result<control::Identity> IdentifyServer(const control::DaemonAddress& address,
                                         const control::Patience& patience);

}  // namespace siltfs
