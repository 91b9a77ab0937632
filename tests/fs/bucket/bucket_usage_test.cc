// The file STORE/bucket.usage: the requests of a store over its whole life.
#include "fs/bucket/bucket_usage.h"

#include <string>

#include "fs/open/store_layout.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

const std::string kStore = "/store";

BucketUsage SomeUsage() {
  BucketUsage usage;
  usage.requests = {.puts = 1,
                    .gets = 20,
                    .stats = 300,
                    .lists = 4000,
                    .removes = 50'000,
                    .retries = 600'000,
                    .failures = 7,
                    .sent_bytes = uint64_t{1} << 63,
                    .received_bytes = 8};
  usage.since_ns = 1'700'000'000'000'000'000;
  return usage;
}

struct Bench {
  SimEnv env;
  MemoryObjectStore objects;

  Bench() {
    REQUIRE_OK(env.CreateDirectory(kStore));
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  void Put(int times) {
    for (int i = 0; i < times; ++i)
      REQUIRE_OK(objects.Put("a", AsBytes("abc"), PutCondition::Always()));
  }
  BucketUsage Read() {
    auto usage = ReadBucketUsage(env, kStore, 5);
    REQUIRE_OK(usage);
    return *usage;
  }
};

TEST_CASE("the usage of a bucket is read as it was written, and each change of a byte is found") {
  const std::string text = EncodeBucketUsage(SomeUsage());
  const auto read = DecodeBucketUsage(text);
  REQUIRE_OK(read);
  CHECK(*read == SomeUsage());
  for (size_t at = 0; at < text.size(); ++at) {
    CAPTURE(at);
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    CHECK_FALSE(DecodeBucketUsage(damaged).ok());
    CHECK_FALSE(DecodeBucketUsage(text.substr(0, at)).ok());
  }
  REQUIRE_CODE(DecodeBucketUsage("siltfs bucket usage 2\n"), kNeedsNewer);
}

TEST_CASE("each run adds its requests to those of earlier runs") {
  Bench bench;
  bench.env.SetClock(100);
  {
    BucketUsageRecorder recorder(bench.env, kStore, bench.objects);
    recorder.Start();
    bench.Put(3);
    CHECK(recorder.Total().requests.puts == 3);
    REQUIRE_OK(recorder.Save());
    bench.Put(2);
    CHECK(recorder.Total().requests.puts == 5);
    CHECK(bench.Read().requests.puts == 3);
  }
  CHECK(bench.Read().requests.puts == 5);
  CHECK(bench.Read().requests.sent_bytes == 15);
  CHECK(bench.Read().since_ns == 100);
  bench.env.PowerCut();
  bench.env.SetClock(200);
  // Another process: its object store counts from zero.
  MemoryObjectStore later;
  BucketUsageRecorder recorder(bench.env, kStore, later);
  REQUIRE_OK(later.Put("a", AsBytes("x"), PutCondition::Always()));
  CHECK(recorder.Total().requests.puts == 6);
  CHECK(recorder.Total().since_ns == 100);
}

TEST_CASE("a run that only reads changes no file") {
  Bench bench;
  {
    BucketUsageRecorder recorder(bench.env, kStore, bench.objects);
    bench.Put(1);
    CHECK(recorder.Total().requests.puts == 1);
  }
  auto names = bench.env.ListDirectory(kStore);
  REQUIRE_OK(names);
  CHECK(names->empty());
}

TEST_CASE("two runs that overlap lose no requests of each other") {
  Bench bench;
  MemoryObjectStore other;
  BucketUsageRecorder first(bench.env, kStore, bench.objects);
  BucketUsageRecorder second(bench.env, kStore, other);
  bench.Put(2);
  REQUIRE_OK(other.Put("a", AsBytes("x"), PutCondition::Always()));
  REQUIRE_OK(first.Save());
  REQUIRE_OK(second.Save());
  bench.Put(1);
  REQUIRE_OK(first.Save());
  CHECK(bench.Read().requests.puts == 4);
}

TEST_CASE("a damaged file is replaced, and one of a newer version stays") {
  Bench bench;
  const auto write = [&bench](const std::string& text) {
    REQUIRE_OK(ReplaceFile(bench.env, BucketUsagePath(kStore), AsBytes(text)));
  };
  SECTION("damaged") {
    write(GENERATE(std::string("x"), std::string(), std::string(100'000, 'x')));
    BucketUsageRecorder recorder(bench.env, kStore, bench.objects);
    bench.Put(1);
    CHECK(recorder.Total().requests.puts == 1);
    REQUIRE_OK(recorder.Save());
    CHECK(bench.Read().requests.puts == 1);
  }
  SECTION("newer") {
    write("siltfs bucket usage 2\n");
    BucketUsageRecorder recorder(bench.env, kStore, bench.objects);
    bench.Put(1);
    CHECK(recorder.Total().requests.puts == 1);
    REQUIRE_CODE(recorder.Save(), kNeedsNewer);
    auto text = ReadWholeFile(bench.env, BucketUsagePath(kStore), 100);
    REQUIRE_OK(text);
    CHECK(*text == "siltfs bucket usage 2\n");
  }
}

TEST_CASE("a save that fails loses nothing") {
  Bench bench;
  BucketUsageRecorder recorder(bench.env, kStore, bench.objects);
  bench.Put(1);
  REQUIRE_OK(recorder.Save());
  bench.Put(1);
  bench.env.FailCall({.calls = SimCall::kMutating});
  CHECK_FALSE(recorder.Save().ok());
  CHECK(recorder.Total().requests.puts == 2);
  CHECK(bench.Read().requests.puts == 1);
}

}  // namespace
}  // namespace siltfs
