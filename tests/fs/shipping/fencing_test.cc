// Two writers of one bucket.
#include "tests/fs/shipping/shipping_bench.h"

namespace siltfs::testing {
namespace {

TEST_CASE("fencing: a second writer ends the epoch of the first") {
  MemoryObjectStore objects;
  Machine first(objects, 1);
  first.options.wait_for_bucket = true;
  REQUIRE_OK(first.Open());
  REQUIRE_OK(first.Write({{"a", "1"}}));
  Machine second(objects, 2);
  REQUIRE_OK(second.Restore());
  REQUIRE_OK(second.Open());
  CHECK(second.shipper->epoch() == first.shipper->epoch() + 1);
  CHECK(first.Write({{"a", "2"}}).Is(StatusCode::kReadOnly));
  CHECK(first.fenced == 1);
  CHECK(first.Write({{"a", "3"}}).Is(StatusCode::kReadOnly));
  CHECK(first.fenced == 1);
  // The local store takes no writes either.
  CHECK(first.kv->Write({{"a", "4"}}).Is(StatusCode::kReadOnly));
  CHECK(ContentsOf(*first.kv) == Contents{{"a", "2"}});
  CHECK(first.shipper->lag().fenced);
  CHECK(!first.shipper->MayDelete(0));
  // Its commits after the takeover are not in the bucket, so it cannot come back with them.
  CHECK(first.Open().Is(StatusCode::kStale));
  REQUIRE_OK(second.Write({{"b", "1"}}));
  REQUIRE_OK(second.shipper->Ship());
  REQUIRE_OK(first.Restore());
  CHECK(first.contents == Contents{{"a", "1"}, {"b", "1"}});
  REQUIRE_OK(first.Open());
}

TEST_CASE("fencing: a writer that slept while its log objects were removed does not count") {
  MemoryObjectStore objects;
  Machine first(objects, 1);
  first.options.wait_for_bucket = true;
  REQUIRE_OK(first.Open());
  REQUIRE_OK(first.Write({{"a", "1"}}));
  Machine second(objects, 2);
  REQUIRE_OK(second.Restore());
  REQUIRE_OK(second.Open());
  for (int i = 0; i < 3; ++i) {  // two checkpoints remove the log below
    REQUIRE_OK(second.Write({{"b", fmt::format("{}", i)}}));
    second.shipper->NeedCheckpoint(second.shipper->Position());
    REQUIRE_OK(second.shipper->Ship());
  }
  CHECK(first.Write({{"a", "2"}}).Is(StatusCode::kReadOnly));
  CHECK(first.fenced == 1);
  Machine third(objects, 3);
  REQUIRE_OK(third.Restore());
  CHECK(third.contents == Contents{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("fencing: a checkpoint of a writer that was fenced is not valid") {
  MemoryObjectStore objects;
  Machine first(objects, 1);
  REQUIRE_OK(first.Open());
  REQUIRE_OK(first.Write({{"a", "1"}}));
  REQUIRE_OK(first.shipper->Ship());
  Machine second(objects, 2);
  REQUIRE_OK(second.Restore());
  REQUIRE_OK(second.Open());
  REQUIRE_OK(first.Write({{"a", "lost"}}));
  first.shipper->NeedCheckpoint(first.shipper->Position());
  CHECK(!first.shipper->Ship().ok());
  CHECK(first.fenced == 1);
  Machine third(objects, 3);
  REQUIRE_OK(third.Restore());
  CHECK(third.contents == Contents{{"a", "1"}});
}

TEST_CASE("fencing: an old copy of the disk cannot write to the bucket") {
  MemoryObjectStore objects;
  Machine machine(objects, 1);
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "1"}}));
  REQUIRE_OK(machine.shipper->Ship());
  machine.Crash();
  const auto old = machine.disk->contents();
  REQUIRE_OK(machine.Open());
  REQUIRE_OK(machine.kv->Write({{"a", "2"}}));
  REQUIRE_OK(machine.shipper->Ship());
  machine.Crash();
  machine.disk = std::make_unique<MemoryDisk>();
  std::vector<Mutation> mutations;
  for (const auto& [key, value] : old) mutations.push_back({key, value});
  REQUIRE_OK(OpenMemoryKvStore(*machine.disk)->Write(mutations));
  CHECK(machine.Open().Is(StatusCode::kStale));
  // The refused writer has not ended the epoch of another one.
  REQUIRE_OK(machine.Restore());
  CHECK(machine.contents == Contents{{"a", "2"}});
  REQUIRE_OK(machine.Open());
}

}  // namespace
}  // namespace siltfs::testing
