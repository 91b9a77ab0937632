// Free memory between buffers in use is returned to the system.
#include <cstring>
#include <memory>
#include <vector>

#include "store/env/heap_trimmer.h"
#include "store/env/resources.h"
#include "tests/support/catch.h"

// The sanitizers replace the heap, so this test does not run with them.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace siltfs::testing {

TEST_CASE("Free memory between buffers in use is returned once when the process has grown") {
  constexpr size_t kSize = 48U << 10;  // below the heap's mmap threshold
  constexpr size_t kCount = 1024;
  HeapTrimmer heap(0);
  heap.Trim();  // memory freed before this test
  const uint64_t before = ResidentBytes().value();
  std::vector<std::unique_ptr<uint8_t[]>> buffers;
  for (size_t i = 0; i < kCount; ++i) {
    buffers.push_back(std::make_unique_for_overwrite<uint8_t[]>(kSize));
    std::memset(buffers.back().get(), 1, kSize);
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (i % 8 != 7) buffers[i].reset();
  }
  REQUIRE(ResidentBytes().value() >= before + kSize * kCount / 4 * 3);
  REQUIRE(heap.Trim());
  CHECK(ResidentBytes().value() <= before + kSize * kCount / 4);
  CHECK_FALSE(heap.Trim());
}

TEST_CASE("A small process keeps the free memory of its heap") {
  HeapTrimmer heap(UINT64_MAX);
  std::vector<std::unique_ptr<uint8_t[]>> buffers;
  for (size_t i = 0; i < 256; ++i) {
    buffers.push_back(std::make_unique_for_overwrite<uint8_t[]>(48U << 10));
    std::memset(buffers.back().get(), 1, 48U << 10);
  }
  for (size_t i = 0; i < buffers.size(); i += 2) buffers[i].reset();
  CHECK_FALSE(heap.Trim());
}

TEST_CASE("A heap in use is left alone") {
  HeapTrimmer heap(0);
  heap.Trim();
  std::vector<uint8_t> small(HeapTrimmer::kStep / 4, 1);
  CHECK_FALSE(heap.Trim());
}

}  // namespace siltfs::testing

#endif
