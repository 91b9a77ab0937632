#include "fs/fuse/stop_event.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace siltfs::fuse {

Result<std::unique_ptr<StopEvent>> StopEvent::Make() {
  Descriptor event(eventfd(0, EFD_CLOEXEC));
  if (!event.valid()) {
    return Status(StatusCode::kIoError,
                  std::string("no descriptor is free: ") + std::strerror(errno));
  }
  return std::make_unique<StopEvent>(std::move(event));
}

void StopEvent::Set() { eventfd_write(event_.get(), 1); }

bool StopEvent::AwaitRequest(int device) const {
  pollfd polled[2] = {{.fd = event_.get(), .events = POLLIN, .revents = 0},
                      {.fd = device, .events = POLLIN, .revents = 0}};
  RetryInterrupted([&] { return poll(polled, 2, -1); });
  return polled[0].revents == 0;
}

}  // namespace siltfs::fuse
