// Lookups while another thread puts and a third reclaims space.
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "key_value_history.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kKeys = 300;

// A value that contains its key's number and its version.
Bytes ValueOf(uint64_t number, uint64_t version) {
  Random random(number * 1000 + version);
  Bytes value(20 + random.Below(3000));
  random.Fill(value);
  value[0] = static_cast<uint8_t>(number);
  value[1] = static_cast<uint8_t>(number >> 8);
  value[2] = static_cast<uint8_t>(version);
  return value;
}

bool IsValueOf(uint64_t number, const Bytes& value) {
  return value.size() > 2 && value == ValueOf(number, value[2]);
}

}  // namespace

TEST_CASE("lookups find every key while values are replaced and moved") {
  TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  KeyValueOptions options = TinyKeyValueOptions(GENERATE(32, 128));
  options.directory = directory.path();
  options.index.background = true;
  options.values.segment_bytes = 100'000;
  auto opened = KeyValueStore::Open(*env, options);
  REQUIRE_OK(opened);
  KeyValueStore& store = **opened;
  for (uint64_t i = 0; i < kKeys; ++i) REQUIRE_OK(store.Put(AsBytes(KeyOf(i)), ValueOf(i, 0)));

  std::atomic<bool> over{false};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> failed{0};
  const auto read = [&](uint64_t seed) {
    Random random(seed);
    while (!over) {
      const uint64_t number = random.Below(kKeys);
      const auto got = store.Get(AsBytes(KeyOf(number)));
      if (!got.ok()) {
        ++failed;
      } else if (!*got || !IsValueOf(number, **got)) {
        ++wrong;
      }
    }
  };
  const auto reclaim = [&] {
    while (!over) {
      if (!store.Reclaim({.most_in_use = 0.6}).ok()) ++failed;
    }
  };
  std::thread readers[] = {std::thread(read, 1), std::thread(read, 2)};
  std::thread reclaimer(reclaim);
  Random random(3);
  for (uint64_t version = 1; version <= 20; ++version) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const uint64_t number = random.Below(kKeys);
      if (!store.Put(AsBytes(KeyOf(number)), ValueOf(number, version)).ok()) ++failed;
    }
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  reclaimer.join();
  CHECK(wrong == 0);
  CHECK(failed == 0);
  CheckVerifies(store);
  REQUIRE_OK(store.Close());
}

TEST_CASE("puts during Close are refused, or present after reopening") {
  constexpr uint64_t kThreads = 4;
  for (int round = 0; round < 20; ++round) {
    TemporaryDirectory directory;
    const auto env = NewPosixEnv();
    KeyValueOptions options = TinyKeyValueOptions(64);
    options.directory = directory.path();
    options.index.background = round % 2 == 0;
    auto opened = KeyValueStore::Open(*env, options);
    REQUIRE_OK(opened);
    std::array<std::atomic<uint64_t>, kThreads> done{};  // of each thread's own keys
    std::vector<std::thread> writers;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      writers.emplace_back([&, thread] {
        for (uint64_t i = 0;; ++i) {
          const uint64_t number = thread + i * kThreads;
          if (!(*opened)->Put(AsBytes(KeyOf(number)), ValueOf(number, 0)).ok()) return;
          done[thread] = i + 1;
        }
      });
    }
    while (done[0] < 20) std::this_thread::yield();
    REQUIRE_OK((*opened)->Close());
    for (std::thread& writer : writers) writer.join();
    opened = KeyValueStore::Open(*env, options);
    REQUIRE_OK(opened);
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      for (uint64_t i = 0; i < done[thread]; ++i) {
        const uint64_t number = thread + i * kThreads;
        const auto got = (*opened)->Get(AsBytes(KeyOf(number)));
        REQUIRE_OK(got);
        REQUIRE(*got == ValueOf(number, 0));
      }
    }
  }
}

}  // namespace siltfs::testing
