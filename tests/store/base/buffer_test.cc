// Buffers and their pool.
#include "store/base/buffer.h"

#include <optional>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

using namespace siltfs;

TEST_CASE("A returned buffer's memory is reused for the next one of its capacity") {
  BufferPool pool(1U << 20);
  const uint8_t* memory;
  {
    const Buffer buffer = pool.Take(100'000);
    CHECK(buffer.size() == 100'000);
    CHECK(buffer.capacity() == 128U << 10);
    memory = buffer.data();
    CHECK(pool.idle_bytes() == 0);
  }
  CHECK(pool.idle_bytes() == 128U << 10);
  const Buffer other = pool.Take(300'000);
  CHECK(other.data() != memory);
  Buffer again = pool.Take(128U << 10);
  CHECK(again.data() == memory);
  CHECK(pool.idle_bytes() == 0);
  again.SetSize(5);
  CHECK(again.size() == 5);
  CHECK(again.capacity() == 128U << 10);
}

TEST_CASE("A pool keeps at most its limit of idle bytes") {
  BufferPool pool(256U << 10);
  {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 10; ++i) buffers.push_back(pool.Take(100'000));
  }
  CHECK(pool.idle_bytes() == 256U << 10);
}

TEST_CASE("Small and huge buffers do not come from the pool") {
  BufferPool pool(64U << 20);
  {
    const Buffer small = pool.Take(BufferPool::kStep - 1);
    CHECK(small.capacity() == BufferPool::kStep - 1);
    const Buffer huge = pool.Take(BufferPool::kMaxPooled + 1);
    CHECK(huge.size() == BufferPool::kMaxPooled + 1);
  }
  CHECK(pool.idle_bytes() == 0);
}

TEST_CASE("A buffer outlives its pool, and a moved one is returned once") {
  std::optional<BufferPool> pool(std::in_place, 1U << 20);
  Buffer buffer = pool->Take(50'000);
  Buffer moved = std::move(buffer);
  CHECK(pool->idle_bytes() == 0);
  Buffer replaced = pool->Take(50'000);
  replaced = std::move(moved);
  CHECK(pool->idle_bytes() == 64U << 10);
  pool.reset();
  replaced.begin()[49'999] = 1;
  CHECK(replaced.size() == 50'000);
}
