// The raw bytes of all overlays in memory, and their limit.
//
// Thread-safety: every call from any thread. It must outlive the inodes, whose overlays count their
// bytes here.
#pragma once

#include <cstdint>

#include "fs/content/overlay.h"

namespace siltfs {

class OverlayMemory {
 public:
  // An empty overlay whose bytes are counted.
  Overlay NewOverlay() { return Overlay(&raw_bytes_); }
  // Whether overlays must be folded or dropped from memory.
  bool UnderPressure() const { return raw_bytes_ > kMaxRawBytes; }

 private:
  static constexpr uint64_t kMaxRawBytes = 8u << 20;

  PlainBytesTotal raw_bytes_ = 0;
};

}  // namespace siltfs
