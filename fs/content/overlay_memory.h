// The raw bytes of all overlays in memory, and their limit.
//
// Thread-safety: every call from any thread. The object must outlive the inodes, because their
// overlays add their raw bytes to its count.
#pragma once

#include <cstdint>

#include "fs/content/overlay.h"

namespace siltfs {

class OverlayMemory {
 public:
  // Returns an empty overlay, which adds its raw bytes to the count.
  Overlay NewOverlay() { return Overlay(&raw_bytes_); }
  // Whether overlays must be folded or dropped from memory.
  bool UnderPressure() const { return raw_bytes_ > kMaxRawBytes; }

 private:
  static constexpr uint64_t kMaxRawBytes = 8u << 20;

  PlainBytesTotal raw_bytes_ = 0;
};

}  // namespace siltfs
