// How long the answer to a request may take, as far as the request tells.
#pragma once

#include <cstdint>

namespace siltfs::fuse {

enum class RequestPace : uint8_t {
  kQuick,      // neither waits for the device nor computes for long
  kUncertain,  // quick if the data is in memory
  kSlow,
  kUnawaited,  // may be slow, and no program waits for the answer
};

}  // namespace siltfs::fuse
