// Lookups that read the pages of many stores together have the same result as with sequential
// reads, in whatever order the reads complete.
#include "index/flash/read_ahead.h"

#include <set>

#include "index/silt/lookup.h"
#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Reads the last request first.
class BackwardQueue : public ReadQueue {
 public:
  std::string_view mechanism() const override { return "backward"; }

  uint64_t calls = 0;
  uint64_t reads = 0;
  std::set<const File*> broken;  // files that can't be read

 private:
  void DoReadAll(std::span<ReadRequest> requests, const Again* /*again*/) override {
    ++calls;
    for (size_t i = requests.size(); i-- > 0;) {
      ++reads;
      ReadRequest& request = requests[i];
      request.status.IgnoreError("left from an earlier use");
      if (broken.contains(request.file)) {
        request.status = {StatusCode::kIoError, "broken"};
        continue;
      }
      auto got = request.file->Read(request.offset, request.out);
      REQUIRE_OK(got);
      request.bytes_read = *got;
    }
  }
};

constexpr uint64_t kStores = 7;
constexpr uint64_t kNumbers = 200;

// HashStore s has the multiples of s + 1 below kNumbers, in version s + 1, but HashStore 0 has only
// kNumbers + 1. In HashStore 5 the number 30 has a tombstone. The SortedStore has the even numbers
// below 20,000 in version 0, and the active store has only 199.
struct Stores : StoreMaker {
  explicit Stores(bool filters_too = false) {
    for (uint64_t s = 0; s < kStores; ++s) {
      std::vector<IndexEntry> entries;
      for (uint64_t n = s == 0 ? kNumbers : 0; n < kNumbers; n += s + 1) {
        entries.push_back(n == 30 && s == 5 ? NumberedTombstone(n) : NumberedEntry(n, Version(s)));
      }
      if (s == 0) entries.push_back(NumberedEntry(kNumbers + 1, Version(s)));
      const auto store = HashStoreOf(entries);
      version.hashes.push_back(filters_too && s % 2 == 1 ? store : store->WithoutFilter());
    }
    std::vector<IndexEntry> entries;
    for (uint64_t n = 0; n < 20'000; n += 2) entries.push_back(NumberedEntry(n));
    version.sorted = Sorted(entries);
    if (!filters_too) version.sorted = version.sorted->WithoutIndex();
    const std::vector<IndexEntry> newest{NumberedEntry(199, 77)};
    active = Log(newest);
  }

  static uint32_t Version(uint64_t s) { return static_cast<uint32_t>(s + 1); }

  Lookup Begin(const ChunkName& name) const {
    Lookup lookup(Key(name));
    lookup.Begin(*active, &version);
    return lookup;
  }
  LookupReader NewReader(size_t pages, BackwardQueue*& queue) const {
    auto made = std::make_unique<BackwardQueue>();
    queue = made.get();
    return {.queue = std::move(made), .pages = AlignedBuffer(pages * kPageSize)};
  }

  PartitionVersion version;
  std::shared_ptr<LogStore> active;
};

std::optional<Location> FoundBy(const Lookup& lookup) {
  if (!lookup.found()) return std::nullopt;
  return lookup.found()->location;
}

}  // namespace

TEST_CASE("a lookup with read-ahead gives the same result as with sequential reads") {
  const Stores stores(GENERATE(false, true));
  const size_t pages = GENERATE(1, 2, 5, 128);
  BackwardQueue* queue = nullptr;
  LookupReader reader = stores.NewReader(pages, queue);
  uint64_t in_vain = 0;
  uint64_t needed = 0;
  for (uint64_t n = 0; n < 2 * kNumbers; ++n) {
    INFO("number " << n << ", " << pages << " pages");
    const ChunkName name = NameOf(n);
    Lookup one_by_one = stores.Begin(name);
    FinishLookup(one_by_one);
    Lookup lookup = stores.Begin(name);
    in_vain += FinishLookupAhead(lookup, reader);
    needed += lookup.pages_read();
    REQUIRE_OK(lookup.status());
    REQUIRE(FoundBy(lookup) == FoundBy(one_by_one));
    REQUIRE(lookup.pages_read() == one_by_one.pages_read());
    REQUIRE(lookup.active_slot() == one_by_one.active_slot());
  }
  CHECK(queue->reads == needed + in_vain);
  if (pages == 1) CHECK(in_vain == 0);
  if (pages == 128) CHECK(queue->calls * 3 < needed);
}

TEST_CASE("a newer store's entry counts even if older stores answer first") {
  const Stores stores;
  BackwardQueue* queue = nullptr;
  LookupReader reader = stores.NewReader(128, queue);
  for (uint64_t n = 0; n < kNumbers; ++n) {
    INFO("number " << n);
    const ChunkName name = NameOf(n);
    Lookup lookup = stores.Begin(name);
    FinishLookupAhead(lookup, reader);
    std::optional<Location> expected;
    if (n % 2 == 0) expected = NumberedEntry(n).location;
    for (uint64_t s = 1; s < kStores; ++s) {
      if (n % (s + 1) == 0) expected = NumberedEntry(n, Stores::Version(s)).location;
    }
    if (n == 30) expected = NumberedTombstone(n).location;
    if (n == 199) expected = NumberedEntry(n, 77).location;
    REQUIRE(FoundBy(lookup) == expected);
  }
}

TEST_CASE("an unreadable page fails only the lookups that need it") {
  const Stores stores;
  BackwardQueue* queue = nullptr;
  LookupReader reader = stores.NewReader(128, queue);
  queue->broken.insert(&stores.version.hashes[4]->file().file());
  const auto look_up = [&](uint64_t n) {
    const ChunkName name = NameOf(n);
    Lookup lookup = stores.Begin(name);
    FinishLookupAhead(lookup, reader);
    CHECK(lookup.found().has_value() == lookup.status().ok());
    return lookup.status().code();
  };
  CHECK(look_up(7) == StatusCode::kOk);  // found in a store newer than the broken one
  CHECK(look_up(35) == StatusCode::kOk);
  CHECK(look_up(5) == StatusCode::kIoError);  // in the broken store
  CHECK(look_up(4) == StatusCode::kIoError);  // in an older store
  CHECK(look_up(2) == StatusCode::kIoError);
}

TEST_CASE("only stores without filters are read ahead") {
  const Stores stores;
  CHECK(WantsReadAhead(stores.version));
  PartitionVersion version = stores.version;
  for (size_t s = 1; s < kStores; ++s) {
    auto filtered = version.hashes[s]->WithFilter();
    REQUIRE_OK(filtered);
    version.hashes[s] = *filtered;
  }
  CHECK_FALSE(WantsReadAhead(version));
}

}  // namespace siltfs::testing
