// What lies free between buffers in use goes back to the system.
#include <cstring>
#include <memory>
#include <vector>

#include "store/env/idle_heap.h"
#include "store/env/resources.h"
#include "tests/support/catch.h"

// The heap is theirs there.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace siltfs::testing {

TEST_CASE(
    "What is free between buffers in use is given back when the process has grown, and once") {
  constexpr size_t kSize = 48U << 10;  // below what the heap maps by itself
  constexpr size_t kCount = 1024;
  IdleHeap heap(0);
  heap.Trim();  // what others have left
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

TEST_CASE("A small process keeps what lies free on its heap") {
  IdleHeap heap(UINT64_MAX);
  std::vector<std::unique_ptr<uint8_t[]>> buffers;
  for (size_t i = 0; i < 256; ++i) {
    buffers.push_back(std::make_unique_for_overwrite<uint8_t[]>(48U << 10));
    std::memset(buffers.back().get(), 1, 48U << 10);
  }
  for (size_t i = 0; i < buffers.size(); i += 2) buffers[i].reset();
  CHECK_FALSE(heap.Trim());
}

TEST_CASE("A heap in use is left alone") {
  IdleHeap heap(0);
  heap.Trim();
  std::vector<uint8_t> small(IdleHeap::kStep / 4, 1);
  CHECK_FALSE(heap.Trim());
}

}  // namespace siltfs::testing

#endif
