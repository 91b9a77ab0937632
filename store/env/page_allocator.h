// For containers that are a few pages large, live long and go in another order than they came, such
// as filters: their memory comes from the system in whole pages and goes back when it is freed,
// where on the heap they would leave holes that other sizes don't fit.
//
// Thread-safety: any. When not to use it: for what comes and goes often, as each time costs two
// system calls and a page fault a page; or for what is small, which comes from the heap after all.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace siltfs {

// Begins at a page. Throws std::bad_alloc.
void* AllocatePages(size_t bytes);
void FreePages(void* pages, size_t bytes);

// What was freed on the heap may still be the process's. Gives whole free pages of it back to the
// system, where it can; takes some milliseconds.
void ReleaseFreePages();

// Less than `kLeastBytes` comes from the heap.
template <typename T, size_t kLeastBytes = 16 << 10>
class PageAllocator {
 public:
  using value_type = T;
  template <typename Other>
  struct rebind {
    using other = PageAllocator<Other, kLeastBytes>;
  };

  PageAllocator() = default;
  template <typename Other>
  PageAllocator(const PageAllocator<Other, kLeastBytes>&) {}  // NOLINT: as allocators are

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    return static_cast<T*>(bytes < kLeastBytes ? ::operator new(bytes) : AllocatePages(bytes));
  }
  void deallocate(T* memory, size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kLeastBytes) return ::operator delete(memory);
    FreePages(memory, bytes);
  }

  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }
};

template <typename T>
using PageVector = std::vector<T, PageAllocator<T>>;

}  // namespace siltfs
