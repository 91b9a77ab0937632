#include <malloc.h>

#include "store/env/heap_trimmer.h"
#include "store/env/page_allocator.h"
#include "store/env/resources.h"

namespace siltfs {
namespace {

uint64_t Resident() {
  const auto resident = ResidentBytes();
  return resident.ok() ? *resident : 0;
}

// The free bytes of the heap, including pages returned to the system earlier.
uint64_t FreeOnHeap() {
#if defined(__GLIBC__)
  return mallinfo2().fordblks;
#else
  return 0;
#endif
}

}  // namespace

bool HeapTrimmer::Trim() {
  if (trimming_.exchange(true)) return false;
  const uint64_t now = Resident();
  uint64_t before = resident_;
  if (now < before) resident_ = before = now;
  const bool trims = now >= small_ && now >= before + kStep && FreeOnHeap() >= kStep;
  if (trims) {
    ReleaseFreePages();
    resident_ = Resident();
  }
  trimming_ = false;
  return trims;
}

}  // namespace siltfs
