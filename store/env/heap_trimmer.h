// Heap trimming: returns free heap pages to the system before they add up. Several threads allocate
// and free buffers of all sizes, and free pages between used ones would stay resident permanently.
//
// Thread-safety: any thread; of concurrent calls only one does the work. Acts on the whole
// process's heap. Units: bytes. When not to use it: after every call; it scans the whole heap,
// which takes about 1 ms.
#pragma once

#include <atomic>
#include <cstdint>

namespace siltfs {

class HeapTrimmer {
 public:
  // If less memory than this is free, it is not returned. The process soon uses so little memory
  // again, and each returned page would cost a page fault at that time.
  static constexpr uint64_t kStep = 2U << 20;

  // A process with a smaller resident size returns nothing: for so little memory, the later page
  // faults cost more than the returned pages are worth.
  static constexpr uint64_t kSmall = 80U << 20;

  explicit HeapTrimmer(uint64_t small = kSmall) : small_(small) {}

  // Gives whole free pages back to the system if the process has reached `small`, has grown by
  // kStep since the last trim (or construction), and has kStep free on the heap. Returns whether it
  // has done so.
  bool Trim();

 private:
  const uint64_t small_;  // resident bytes
  // Resident bytes after the last trim, or a smaller value that a call has found since.
  std::atomic<uint64_t> resident_{0};
  std::atomic<bool> trimming_{false};
};

}  // namespace siltfs
