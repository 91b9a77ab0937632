// Makes a handler of a call that takes long and has a way to interrupt it.
#pragma once

#include <functional>

#include "fs/control/server.h"

namespace siltfs::control {

// Returns a handler that runs `work`. Once the client has left or no longer wants the answer
// (Patience::interrupted), or the server is stopped, it calls `interrupt` on another thread, and
// repeats that until `work` has returned, because `work` may not have begun yet what `interrupt`
// ends.
HandlerWithArguments Interruptible(Handler work, std::function<void()> interrupt);

}  // namespace siltfs::control
