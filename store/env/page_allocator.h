// An allocator for long-lived containers of a few pages, such as filters, that are freed in another
// order than they were allocated. The memory comes from the system in whole pages, and returns to
// the system when it is freed. On the heap, freed containers would leave holes that do not fit the
// sizes of later allocations.
//
// Thread-safety: any thread. When not to use it: for frequent allocations, because each one costs
// two system calls and one page fault per page. Small allocations gain nothing: they come from the
// heap.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace siltfs {

// Returns page-aligned memory. Throws std::bad_alloc.
void* AllocatePages(size_t bytes);
void FreePages(void* pages, size_t bytes);

// Returns whole free pages of the heap to the system, if the C library can; takes some
// milliseconds.
void ReleaseFreePages();

// Allocations below `kLeastBytes` come from the heap.
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
  PageAllocator(const PageAllocator<Other, kLeastBytes>&) {}  // NOLINT: must be implicit

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
