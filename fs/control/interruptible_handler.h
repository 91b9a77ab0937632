// Makes handlers of calls that take long and have a way to interrupt them.
#pragma once

#include <functional>
#include <memory>

#include "fs/control/server.h"

namespace siltfs::control {

// What ends the calls of some handlers, such as those of "gc" and "gc dry run". It ends all of them
// together, so it is used only if none of their clients wants its answer any more.
class Interruption;

// `interrupt` makes the work of the handlers that share the interruption end soon. It must not wait
// for that work.
std::shared_ptr<Interruption> MakeInterruption(std::function<void()> interrupt);

// Returns a handler that runs `work`. The client of a call no longer wants the answer after it has
// left, or has said so (Patience::interrupted), or the server is stopped. Once that is true of all
// calls that run now, the interruption is called on another thread. That is repeated until the work
// has returned, because the work may not have begun yet what the interruption ends. A call that
// comes meanwhile waits until the interrupted ones have ended. kIoError if no thread is available.
HandlerWithArguments Interruptible(Handler work, std::shared_ptr<Interruption> interruption);

}  // namespace siltfs::control
