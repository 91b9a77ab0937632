// An event that ends a request loop (request_loop.h).
//
// Thread-safety: Set from any thread.
#pragma once

#include <memory>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs::fuse {

class StopEvent {
 public:
  static Result<std::unique_ptr<StopEvent>> Make();
  explicit StopEvent(Descriptor event) : event_(std::move(event)) {}

  void Set();
  // Waits until a request can be read from `device` or the connection has ended; false once Set was
  // called.
  bool AwaitRequest(int device) const;

 private:
  const Descriptor event_;
};

}  // namespace siltfs::fuse
