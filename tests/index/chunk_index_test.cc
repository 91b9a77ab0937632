// Tests the checks that the interface itself makes before it calls an engine.
#include "engines.h"
#include "history.h"
#include "index/open_index.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Fixture {
  Fixture() {
    REQUIRE_OK(env.CreateDirectory("/index"));
    auto opened = OpenIndex(env, {.engine = IndexEngine::kMap, .directory = "/index"});
    REQUIRE_OK(opened);
    index = std::move(*opened);
  }
  Status Put(uint64_t sequence, Location location = {1, 1, 1}) {
    const IndexEntry entry{NameOf(sequence), location};
    return index->Put({&entry, 1}, sequence);
  }
  SimEnv env;
  std::unique_ptr<ChunkIndex> index;
};

// Lists three entries, one of them out of order.
class DisorderedIndex final : public ChunkIndex {
 private:
  Status GetImpl(std::span<const ChunkName>, std::span<std::optional<Location>>) override {
    return Status::Ok();
  }
  Status PutImpl(std::span<const IndexEntry>, uint64_t) override { return Status::Ok(); }
  Status DeleteImpl(const ChunkName&) override { return Status::Ok(); }
  Status FlushImpl(uint64_t) override { return Status::Ok(); }
  uint64_t DurableSequenceImpl() const override { return 0; }
  Status ForEachImpl(const Visit& visit) override {
    SILTFS_RETURN_IF_ERROR(visit({7, {1, 1, 1}}));
    SILTFS_RETURN_IF_ERROR(visit({7, {1, 1, 1}}));
    return visit({6, {1, 1, 1}});
  }
  uint64_t OrderOfImpl(const ChunkName& name) const override { return name.Prefix64(); }
  Status VerifyImpl(const std::function<void(const IndexFinding&)>&) override {
    return Status::Ok();
  }
  IndexStats StatsImpl() const override { return {}; }
  Status CloseImpl(uint64_t) override { return Status::Ok(); }
};

}  // namespace

TEST_CASE("a listing fails at an entry that is out of order") {
  DisorderedIndex index;
  int visits = 0;
  REQUIRE_CODE(index.ForEach([&](const OrderedEntry&) {
    ++visits;
    return Status::Ok();
  }),
               kCorruption);
  CHECK(visits == 2);
}

TEST_CASE("a lookup is refused unless it has one result for each name") {
  Fixture fixture;
  const ChunkName names[2] = {};
  Answer results[1];
  REQUIRE_CODE(fixture.index->Get(names, results), kInvalidArgument);
}

TEST_CASE("results of a lookup that fails are empty") {
  Fixture fixture;
  REQUIRE_OK(fixture.index->Close());
  const ChunkName names[1] = {};
  Answer results[1] = {Location{1, 1, 1}};
  REQUIRE_CODE(fixture.index->Get(names, results), kInvalidArgument);
  CHECK_FALSE(results[0].has_value());
}

TEST_CASE("sequences never decrease, and begin above the durable sequence") {
  Fixture fixture;
  REQUIRE_CODE(fixture.Put(0), kInvalidArgument);
  REQUIRE_OK(fixture.Put(5));
  REQUIRE_OK(fixture.Put(5));
  REQUIRE_CODE(fixture.Put(4), kInvalidArgument);
  REQUIRE_OK(fixture.Put(6));
  REQUIRE_OK(fixture.index->Close());
  auto again = OpenIndex(fixture.env, {.engine = IndexEngine::kMap, .directory = "/index"});
  REQUIRE_OK(again);
  fixture.index = std::move(*again);
  REQUIRE(fixture.index->durable_sequence() == 6);
  REQUIRE_CODE(fixture.Put(6), kInvalidArgument);
  REQUIRE_OK(fixture.Put(7));
}

TEST_CASE("a location must name a segment and fit its 12 bytes") {
  Fixture fixture;
  REQUIRE_CODE(fixture.Put(1, {kNoSegment, 1, 1}), kInvalidArgument);
  REQUIRE_CODE(fixture.Put(1, {1, Location::kMaxOrdinal + 1, 1}), kInvalidArgument);
  REQUIRE_CODE(fixture.Put(1, {1, 1, Location::kMaxBlockOffset + 1}), kInvalidArgument);
  REQUIRE_OK(fixture.Put(1, {UINT32_MAX, Location::kMaxOrdinal, Location::kMaxBlockOffset}));
  auto got = fixture.index->Get(NameOf(1));
  REQUIRE_OK(got);
  CHECK(*got == Location{UINT32_MAX, Location::kMaxOrdinal, Location::kMaxBlockOffset});
}

TEST_CASE("neither the sequence of a failed put nor a later one becomes durable") {
  Fixture fixture;
  REQUIRE_OK(fixture.Put(4));
  REQUIRE_CODE(fixture.Put(5, {kNoSegment, 1, 1}), kInvalidArgument);
  REQUIRE_OK(fixture.Put(6));
  REQUIRE_OK(fixture.index->Flush());
  CHECK(fixture.index->durable_sequence() == 4);
  REQUIRE_OK(fixture.index->Close());
  CHECK(fixture.index->durable_sequence() == 4);
}

TEST_CASE("a closed index answers only stats()") {
  Fixture fixture;
  REQUIRE_OK(fixture.Put(1));
  REQUIRE_OK(fixture.index->Close());
  REQUIRE_CODE(fixture.Put(2), kInvalidArgument);
  REQUIRE_CODE(fixture.index->Delete(NameOf(1)), kInvalidArgument);
  REQUIRE_CODE(fixture.index->Flush(), kInvalidArgument);
  REQUIRE_CODE(fixture.index->Close(), kInvalidArgument);
  REQUIRE_CODE(fixture.index->Get(NameOf(1)), kInvalidArgument);
  REQUIRE_CODE(fixture.index->ForEach([](const OrderedEntry&) { return Status::Ok(); }),
               kInvalidArgument);
  CHECK(fixture.index->stats().entries == 1);
}

TEST_CASE("an engine of a later version is refused") {
  SimEnv env;
  REQUIRE_CODE(OpenIndex(env, {.engine = static_cast<IndexEngine>(200), .directory = "/"}),
               kNeedsNewer);
}

}  // namespace siltfs::testing
