// Gives what lies free on the heap back to the system before it adds up: buffers of all sizes come
// and go on several threads, and what is free between those that are in use is resident for good.
//
// Thread-safety: any; of calls at once one does the work. The heap is the whole process's. Units:
// bytes. When not to use it: after each call; it looks at the whole heap, for a millisecond or so.
#pragma once

#include <atomic>
#include <cstdint>

namespace siltfs {

class IdleHeap {
 public:
  // Below it, what is free is soon used again, and each page that is given back costs a fault then.
  static constexpr uint64_t kStep = 2U << 20;

  // Where nothing is given back: as long as the process is small, faults cost more than pages that
  // lie idle.
  static constexpr uint64_t kSmall = 80U << 20;

  explicit IdleHeap(uint64_t small = kSmall) : small_(small) {}

  // Gives whole free pages back if the process is not small and has grown by kStep since the last
  // time (or since this was made), and if so much is free. True if it did.
  bool Trim();

 private:
  const uint64_t small_;               // resident bytes
  std::atomic<uint64_t> resident_{0};  // after the last time; less if it has become less
  std::atomic<bool> trimming_{false};
};

}  // namespace siltfs
