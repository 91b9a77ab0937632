#include "store/env/page_allocator.h"

#include <malloc.h>
#include <sys/mman.h>

namespace siltfs {

// With AddressSanitizer, memory comes from the heap, because the sanitizer checks only heap memory.
#if defined(__SANITIZE_ADDRESS__)

void* AllocatePages(size_t bytes) { return ::operator new(bytes); }
void FreePages(void* pages, size_t) { ::operator delete(pages); }

#else

void* AllocatePages(size_t bytes) {
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

void FreePages(void* pages, size_t bytes) { munmap(pages, bytes); }

#endif

void ReleaseFreePages() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace siltfs
