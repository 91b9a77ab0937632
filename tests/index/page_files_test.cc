#include "index/flash/page_files.h"

#include "index/buffer_hash/buffer_hash_engine.h"
#include "index/flash/partition_map.h"
#include "index/flash/put_log.h"
#include "store/base/aligned_buffer.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

struct Fixture {
  Fixture() { REQUIRE_OK(env.CreateDirectory(kDirectory)); }

  PageAddress Append(PageFiles& files, uint8_t kind, uint32_t count = 1, uint64_t stream = 0) {
    AlignedBuffer pages(size_t{count} * kPageSize);
    for (uint32_t i = 0; i < count; ++i) {
      SetPageKind(PageBytes(pages.data() + size_t{i} * kPageSize, kPageSize), kind,
                  static_cast<uint16_t>(i));
    }
    auto first = files.Append(0, stream, pages.view());
    REQUIRE_OK(first);
    return *first;
  }
  // The kinds of `count` pages; 0 for a damaged one.
  static std::vector<int> Kinds(const PageFiles& files, PageAddress first, uint32_t count) {
    std::vector<int> kinds;
    REQUIRE_OK(files.Read(first, count, [&](uint32_t i, std::optional<ConstPageBytes> page) {
      REQUIRE(i == kinds.size());
      kinds.push_back(page ? PageKindOf(*page) : 0);
      return Status::Ok();
    }));
    return kinds;
  }
  size_t FilesThere() {
    auto entries = env.ListDirectory(kDirectory);
    REQUIRE_OK(entries);
    return entries->size();
  }
  // A checkpoint without a manifest: returns what the manifest would record.
  static std::vector<std::pair<uint64_t, std::optional<std::string>>> Checkpoint(PageFiles& files) {
    REQUIRE_OK(files.Sync());
    auto changes = files.changes();
    REQUIRE_OK(files.Committed());
    return changes;
  }

  SimEnv env;
  std::vector<PageLogSpec> logs{{.directory = kDirectory, .pages_per_file = 4}};
};

}  // namespace

TEST_CASE("pages are read as they were appended, across files") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  std::vector<PageAddress> pages;
  for (uint8_t i = 1; i <= 10; ++i) pages.push_back(fixture.Append(files, i));
  CHECK(fixture.FilesThere() == 3);
  for (uint8_t i = 1; i <= 10; ++i) {
    CHECK(Fixture::Kinds(files, pages[i - 1U], 1) == std::vector<int>{i});
  }
  CHECK(Fixture::Kinds(files, pages[4], 4) == std::vector<int>{5, 6, 7, 8});
  // Several pages stay together, even if they are more than a file usually has.
  const PageAddress many = fixture.Append(files, 20, 70);
  CHECK(Fixture::Kinds(files, many, 70) == std::vector<int>(70, 20));
  CHECK(Fixture::Kinds(files, many, 71).back() == 0);
  CHECK(files.flash_bytes() == 80 * kPageSize);
}

TEST_CASE("a file is removed after the checkpoint at which none of its pages is in use") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  std::vector<PageAddress> pages;
  for (uint8_t i = 1; i <= 6; ++i) pages.push_back(fixture.Append(files, i));
  Fixture::Checkpoint(files);
  for (size_t i = 0; i < 3; ++i) files.Release(pages[i], 1);
  Fixture::Checkpoint(files);
  CHECK(fixture.FilesThere() == 2);
  CHECK(files.dead_pages(0) == 3);
  files.Release(pages[3], 1);
  CHECK(fixture.FilesThere() == 2);  // not before the checkpoint
  const PageFiles::FilePin pin = files.Pin();
  const auto changes = Fixture::Checkpoint(files);
  REQUIRE(changes.size() == 1);
  CHECK_FALSE(changes[0].second.has_value());
  CHECK(fixture.FilesThere() == 1);
  CHECK(files.flash_bytes() == 2 * kPageSize);
  // A reader with an older pin still reads it.
  CHECK(Fixture::Kinds(files, pages[0], 4) == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("a removed file is closed when no pin from before its removal is left") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const PageAddress first = fixture.Append(files, 1, 4);
  auto early = files.Pin();
  files.Release(first, 4);
  Fixture::Checkpoint(files);
  const auto late = files.Pin();  // must not keep it open
  CHECK(files.Resolve(first).has_value());
  Fixture::Checkpoint(files);
  CHECK(files.Resolve(first).has_value());
  early.reset();
  Fixture::Checkpoint(files);
  CHECK_FALSE(files.Resolve(first).has_value());
}

TEST_CASE("files are opened again as the last checkpoint described them") {
  Fixture fixture;
  std::map<uint64_t, std::string> manifest;
  std::vector<PageAddress> pages;
  {
    PageFiles files(fixture.env, fixture.logs, false);
    for (uint8_t i = 1; i <= 6; ++i) pages.push_back(fixture.Append(files, i));
    for (auto& [id, state] : Fixture::Checkpoint(files)) manifest[id] = *state;
    for (uint8_t i = 7; i <= 12; ++i) fixture.Append(files, i);  // after the checkpoint
  }
  PageFiles files(fixture.env, fixture.logs, false);
  for (const auto& [id, state] : manifest) REQUIRE_OK(files.Enter(id, AsBytes(state)));
  REQUIRE_OK(files.Open());
  REQUIRE_OK(files.RemoveLeftovers());
  CHECK(fixture.FilesThere() == 2);
  CHECK(files.flash_bytes() == 6 * kPageSize);
  for (uint8_t i = 1; i <= 6; ++i) {
    CHECK(Fixture::Kinds(files, pages[i - 1U], 1) == std::vector<int>{i});
  }
  // The last file goes on where the checkpoint left it.
  CHECK(fixture.Append(files, 30) == pages[5] + 1);
  CHECK(Fixture::Kinds(files, pages[4], 3) == std::vector<int>{5, 6, 30});
}

TEST_CASE("invalid states of files are refused") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  fixture.Append(files, 1);
  const std::string state = *Fixture::Checkpoint(files)[0].second;
  for (size_t length = 0; length < state.size(); ++length) {
    PageFiles again(fixture.env, fixture.logs, true);
    REQUIRE_CODE(again.Enter(1, AsBytes(state.substr(0, length))), kCorruption);
  }
  PageFiles again(fixture.env, fixture.logs, true);
  REQUIRE_CODE(again.Enter(0, AsBytes(state)), kCorruption);
  REQUIRE_CODE(again.Enter(PageAddress::kMostFile + 1, AsBytes(state)), kCorruption);
  std::string foreign = state;
  foreign[0] = 1;  // a log that does not exist
  REQUIRE_CODE(again.Enter(1, AsBytes(foreign)), kCorruption);
  REQUIRE_OK(again.Enter(1, AsBytes(state)));
  REQUIRE_CODE(again.Enter(2, AsBytes(state)), kCorruption);  // two last files
}

TEST_CASE("an append that failed on a full disk is repeated at the same place") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const PageAddress first = fixture.Append(files, 1);
  fixture.env.FailCall({.calls = SimCall::kWrite,
                        .nth = 1,
                        .code = StatusCode::kNoSpace,
                        .path_part = "",
                        .bytes_written = 1000});
  AlignedBuffer page(kPageSize);
  REQUIRE_CODE(files.Append(0, 0, page.view()), kNoSpace);
  CHECK(files.live_pages(0) == 1);
  CHECK(fixture.Append(files, 2) == first + 1);
  CHECK(Fixture::Kinds(files, first, 2) == std::vector<int>{1, 2});
}

TEST_CASE("an append that failed on a full disk leaves nothing on it") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  fixture.Append(files, 1);
  const auto before = fixture.env.GetDiskSpace(kDirectory);
  REQUIRE_OK(before);
  fixture.env.SetCapacity(before->total_bytes - before->free_bytes + 5 * kPageSize);
  AlignedBuffer pages(3 * kPageSize);
  REQUIRE_OK(files.Append(0, 0, pages.view()));
  REQUIRE_CODE(files.Append(0, 0, pages.view()), kNoSpace);
  const auto after = fixture.env.GetDiskSpace(kDirectory);
  REQUIRE_OK(after);
  CHECK(after->free_bytes == 2 * kPageSize);
}

TEST_CASE("pages that were appended for nothing are cut off again") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const uint32_t kept = GENERATE(1, 3, 4);
  const uint32_t more = GENERATE(0, 1, 9);
  std::vector<PageAddress> pages;
  for (uint32_t i = 0; i < kept; ++i) pages.push_back(fixture.Append(files, 1));
  const PageFiles::Mark mark = files.MarkEnds();
  const size_t files_there = fixture.FilesThere();
  std::vector<PageAddress> useless;
  for (uint32_t i = 0; i < more; ++i) useless.push_back(fixture.Append(files, 2, 1, i % 2));
  for (const PageAddress page : useless) files.Release(page, 1);
  files.CutBack(mark);
  CHECK(fixture.FilesThere() == files_there);
  CHECK(files.flash_bytes() == kept * kPageSize);
  CHECK(files.live_pages(0) == kept);
  CHECK(files.FilesOf(0, 1).empty());
  auto info = fixture.env.GetFileInfo(files.Resolve(pages[0])->file->path());
  REQUIRE_OK(info);
  CHECK(info->size == kept * kPageSize);
  // The stream goes on as if nothing had been appended.
  const PageAddress next = fixture.Append(files, 3);
  if (kept < 4) CHECK(next == pages.back() + 1);
  std::map<uint64_t, std::string> manifest;
  for (auto& [id, state] : Fixture::Checkpoint(files)) manifest[id] = *state;
  PageFiles again(fixture.env, fixture.logs, false);
  for (const auto& [id, state] : manifest) REQUIRE_OK(again.Enter(id, AsBytes(state)));
  REQUIRE_OK(again.Open());
  REQUIRE_OK(again.RemoveLeftovers());
  CHECK(Fixture::Kinds(again, pages[0], kept) == std::vector<int>(kept, 1));
  CHECK(Fixture::Kinds(again, next, 1) == std::vector<int>{3});
}

TEST_CASE("a reader that verifies keeps files that are cut off") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  fixture.Append(files, 1);
  const PageFiles::Mark mark = files.MarkEnds();
  const PageAddress more = fixture.Append(files, 2, 5);
  const auto pin = files.Pin();
  const auto place = files.Resolve(more);
  REQUIRE(place);
  files.Release(more, 5);
  files.CutBack(mark);
  alignas(kPageSize) std::array<uint8_t, kPageSize> page;
  REQUIRE_OK(place->file->Read(place->offset, page));
  CHECK(PageKindOf(page) == 2);
  CHECK_FALSE(files.Resolve(more).has_value());
  REQUIRE_OK(files.Verify([](const std::string& path, uint64_t) { FAIL(path); }));
}

TEST_CASE("files that are removed while a reader verifies are not read") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const PageAddress first = fixture.Append(files, 1, 4);
  const PageAddress second = fixture.Append(files, 2, 4);
  Fixture::Checkpoint(files);
  // Damages a page of each file.
  auto entries = fixture.env.ListDirectory(kDirectory);
  REQUIRE_OK(entries);
  REQUIRE(entries->size() == 2);
  for (const auto& entry : *entries) {
    auto file = fixture.env.OpenFile(std::string(kDirectory) + "/" + entry.name,
                                     {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(kPageSize + 100, Bytes{1}));
  }
  size_t reported = 0;
  REQUIRE_OK(files.Verify([&](const std::string&, uint64_t) {
    if (++reported > 1) return;
    files.Release(second, 4);
    Fixture::Checkpoint(files);  // the reader still uses the first file
  }));
  CHECK(reported == 1);
  CHECK(Fixture::Kinds(files, first, 1) == std::vector<int>{1});
}

TEST_CASE("a removed file gives its space back when its last reader has ended") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const PageAddress first = fixture.Append(files, 1, 4);
  auto pin = files.Pin();
  files.Release(first, 4);
  Fixture::Checkpoint(files);
  const auto before = fixture.env.GetDiskSpace(kDirectory);
  REQUIRE_OK(before);
  CHECK_FALSE(files.ReapRetired());
  pin.reset();
  CHECK_FALSE(files.AnyUnneeded());
  CHECK(files.ReapRetired());
  CHECK_FALSE(files.ReapRetired());
  const auto after = fixture.env.GetDiskSpace(kDirectory);
  REQUIRE_OK(after);
  CHECK(after->free_bytes == before->free_bytes + 4 * kPageSize);
}

TEST_CASE("the pages that a file has are read, and others count as damaged") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const PageAddress first = fixture.Append(files, 1, 3);
  CHECK(Fixture::Kinds(files, first, 5) == std::vector<int>{1, 1, 1, 0, 0});
  CHECK(Fixture::Kinds(files, first + 3, 2) == std::vector<int>{0, 0});
}

TEST_CASE("files whose pages are no longer in use are removed, whatever the manifest says") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const PageAddress first = fixture.Append(files, 1, 4);
  const PageAddress second = fixture.Append(files, 1, 4);
  Fixture::Checkpoint(files);
  CHECK_FALSE(files.AnyUnneeded());
  REQUIRE_CODE(files.SetUses({{first.file(), 5}}), kCorruption);
  REQUIRE_CODE(files.SetUses({{first.file(), 1}, {77, 1}}), kCorruption);
  REQUIRE_OK(files.SetUses({{second.file(), 3}}));
  CHECK(files.live_pages(0) == 3);
  CHECK(files.AnyUnneeded());
  Fixture::Checkpoint(files);
  CHECK(fixture.FilesThere() == 1);
  CHECK(files.dead_pages(0) == 1);
}

TEST_CASE("a file with the greatest number is the last one") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  // A file that a forged directory has.
  const uint64_t number = GENERATE(kMaxStoreId, PageAddress::kMostFile);
  const StoreFileId forged{.kind = StoreKind::kPages, .id = number};
  REQUIRE_OK(CreateStoreFile(fixture.env, kDirectory, forged));
  REQUIRE_OK(files.RemoveLeftovers());
  CHECK(fixture.FilesThere() == 0);
  CHECK(fixture.Append(files, 1).file() == 1);
  const std::string state = *Fixture::Checkpoint(files)[0].second;
  PageFiles last(fixture.env, fixture.logs, false);
  REQUIRE_OK(last.Enter(PageAddress::kMostFile, AsBytes(state)));
  AlignedBuffer page(kPageSize);
  REQUIRE_CODE(last.Append(0, 1, page.view()), kIoError);
}

TEST_CASE("streams do not share files") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  for (uint8_t i = 0; i < 6; ++i) fixture.Append(files, 1, 1, i % 2);
  CHECK(files.FilesOf(0, 0).size() == 1);
  CHECK(files.FilesOf(0, 1).size() == 1);
  CHECK(files.FilesOf(0, 0) != files.FilesOf(0, 1));
  files.EndFile(0, 1);
  fixture.Append(files, 1, 1, 1);
  CHECK(files.FilesOf(0, 1).size() == 2);
}

TEST_CASE("the log of puts is replayed in order, with the numbers of its entries") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  const size_t entries = GENERATE(0, 1, 203, 204, 5000);
  std::map<uint64_t, std::string> manifest;
  {
    PutLog log(files, 0);
    for (size_t i = 0; i < entries; ++i) {
      REQUIRE_OK(log.MakeRoom());
      CHECK(log.next_number() == i + 1);
      log.Add({.hash = i + 7, .location = {.segment = static_cast<SegmentId>(i + 1)}});
      if (i == entries / 2) REQUIRE_OK(log.Seal());
    }
    REQUIRE_OK(log.Seal());
  }
  PutLog log(files, 0);
  uint64_t next = 1;
  REQUIRE_OK(log.Replay([&](uint64_t number, const FlashEntry& entry) {
    REQUIRE(number == next);
    REQUIRE(entry.hash == number + 6);
    REQUIRE(entry.location.segment == number);
    ++next;
    return Status::Ok();
  }));
  CHECK(next == entries + 1);
  CHECK(log.next_number() == entries + 1);
}

TEST_CASE("a log of puts that was begun for nothing leaves the old one as it was") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  {
    PutLog log(files, 0);
    const auto add = [&](uint64_t hash) {
      REQUIRE_OK(log.MakeRoom());
      log.Add({.hash = hash, .location = {.segment = 1}});
    };
    for (uint64_t i = 1; i <= 1000; ++i) add(i);
    REQUIRE_OK(log.Seal());
    const uint64_t pages = log.pages();
    const PageFiles::Mark mark = files.MarkEnds();
    log.BeginNewLog();
    for (uint64_t i = 1; i <= 5000; ++i) add(i);  // some are still in memory
    log.KeepOldLog();
    files.CutBack(mark);
    CHECK(log.pages() == pages);
    CHECK(files.live_pages(0) == pages);
    add(1001);
    REQUIRE_OK(log.Seal());
  }
  PutLog log(files, 0);
  uint64_t next = 1;
  REQUIRE_OK(log.Replay([&](uint64_t, const FlashEntry& entry) {
    REQUIRE(entry.hash == next++);
    return Status::Ok();
  }));
  CHECK(next == 1002);
}

TEST_CASE("a few partitions with long prefixes need a small map, and every hash is found") {
  Fixture fixture;
  PageFiles files(fixture.env, fixture.logs, false);
  FlashContext context{.files = files, .read_only = false};
  const auto engine = MakeBufferHashEngine({});
  const unsigned depth = GENERATE(0, 1, 6, 24);
  const bool side = GENERATE(false, true);
  PartitionMap::Partitions partitions;
  HashPrefix rest;
  for (unsigned i = 0; i < depth; ++i) {
    partitions.push_back(engine->Make(context, i + 1, rest.Child(!side)));
    rest = rest.Child(side);
  }
  partitions.push_back(engine->Make(context, depth + 1, rest));
  const PartitionMap map(partitions);
  CHECK(map.memory_bytes() < 10'000);
  Random random(depth);
  for (int i = 0; i < 2000; ++i) {
    // Hashes near the long prefixes, too.
    const uint64_t spread = random.Next() >> random.Below(30);
    const uint64_t hash = side ? ~spread : spread;
    REQUIRE(map.Find(hash).prefix().Has(hash));
  }
  for (const auto& partition : map.all()) {
    REQUIRE(&map.Find(partition->prefix().first) == partition.get());
    REQUIRE(&map.Find(partition->prefix().last()) == partition.get());
  }
}

TEST_CASE("prefixes of different lengths cover all hashes, or are refused") {
  const HashPrefix all;
  CHECK(PartitionMap::Covers({all}));
  CHECK(PartitionMap::Covers({all.Child(true), all.Child(false)}));
  const HashPrefix low = all.Child(false);
  CHECK(PartitionMap::Covers({all.Child(true), low.Child(true), low.Child(false)}));
  CHECK_FALSE(PartitionMap::Covers({}));
  CHECK_FALSE(PartitionMap::Covers({low}));
  CHECK_FALSE(PartitionMap::Covers({all, all}));
  CHECK_FALSE(PartitionMap::Covers({all, low}));
  CHECK_FALSE(PartitionMap::Covers({all.Child(true), low.Child(false)}));
  CHECK(low.Child(true).last() + 1 == all.Child(true).first);
  CHECK(all.Child(true).last() == UINT64_MAX);
}

}  // namespace siltfs::testing
