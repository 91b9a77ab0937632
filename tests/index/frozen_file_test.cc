#include "index/flash/frozen_file.h"

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"
#include "store_maker.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

SlotEntry EntryOf(uint64_t number) { return StoreMaker().Stored(NumberedEntry(number)); }

constexpr StoreFileId kId{StoreKind::kHash, 3, 12};

std::string Path() { return "/" + StoreFileName(kId); }

// Writes a file with entries in all slots except every seventh.
void Write(Env& env, uint64_t slots, const std::string& payload) {
  Throttle throttle(env, 0);
  auto writer = FrozenFileWriter::Create(env, "/", kId, throttle);
  REQUIRE_OK(writer);
  FrozenFileInfo info;
  info.bucket_bits = 9;
  for (uint64_t i = 0; i < slots; ++i) {
    if (i % 7 == 6) {
      REQUIRE_OK((*writer)->AppendEmpty());
      continue;
    }
    REQUIRE_OK((*writer)->Append(EntryOf(i)));
    ++info.entries;
  }
  CHECK((*writer)->slots() == slots);
  REQUIRE_OK((*writer)->Finish(info, AsBytes(payload)));
  REQUIRE_OK((*writer)->Sync());
}

std::shared_ptr<const FrozenFile> Open(Env& env) {
  auto file = FrozenFile::Open(env, "/", kId);
  REQUIRE_OK(file);
  return *file;
}

// Returns the numbers of the damaged pages; all other pages are REQUIREd to be as Write writes
// them.
std::vector<uint32_t> DamagedPages(const FrozenFile& file, uint64_t slots) {
  FrozenFileScan scan(file);
  std::vector<uint32_t> damaged;
  for (uint32_t number = 0;; ++number) {
    auto page = scan.Next();
    REQUIRE_OK(page);
    if (!*page) {
      REQUIRE(number == file.info().pages);
      return damaged;
    }
    REQUIRE((*page)->number == number);
    if ((*page)->damaged) {
      damaged.push_back(number);
      continue;
    }
    for (uint64_t i = 0; i < kChunkSlots.slots_per_page(); ++i) {
      const uint64_t slot = number * kChunkSlots.slots_per_page() + i;
      const bool empty = slot >= slots || slot % 7 == 6;
      const SlotEntry entry = DecodeSlot(SlotOfPage(kChunkSlots, (*page)->bytes, i));
      REQUIRE(entry.hash == (empty ? 0 : EntryOf(slot).hash));
      REQUIRE(entry.location == (empty ? Location{} : EntryOf(slot).location));
    }
  }
}

std::string Contents(Env& env) {
  auto contents = ReadWholeFile(env, Path(), 1U << 30);
  REQUIRE_OK(contents);
  return *contents;
}

void Replace(Env& env, const std::string& contents) {
  auto file = CreateStoreFile(env, "/", kId);
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Write(0, AsBytes(contents)));
}

}  // namespace

TEST_CASE("a frozen file of any size reads as it was written") {
  const uint64_t slots =
      GENERATE(0, 1, 203, 204, 205, 64 * 204 - 1, 64 * 204, 64 * 204 + 1, 3 * 64 * 204 + 5);
  const std::string payload = GENERATE(std::string(), std::string(10'001, 'x'));
  SimEnv env;
  Write(env, slots, payload);
  const auto file = Open(env);
  CHECK(file->info().file == kId);
  CHECK(file->info().pages == (slots + 203) / 204);
  CHECK(file->info().entries == slots - slots / 7);
  CHECK(file->info().tombstones == 0);
  CHECK(file->info().bucket_bits == 9);
  CHECK(file->size() == Contents(env).size());
  auto read = file->ReadPayload();
  REQUIRE_OK(read);
  CHECK(AsText(*read) == payload);
  CHECK(DamagedPages(*file, slots).empty());
}

TEST_CASE("every flipped byte of a frozen file is found and damages at most one page") {
  constexpr uint64_t kSlots = 500;
  SimEnv env;
  Write(env, kSlots, "a filter");
  const size_t size = Contents(env).size();
  // Each byte of the end, whose parts are smaller than a step.
  const size_t whole_from = size - 256;
  for (size_t offset = 0; offset < size; offset += offset < whole_from ? SanitizedStep() : 1) {
    FlipByte(env, Path(), offset);
    auto file = FrozenFile::Open(env, "/", kId);
    if (offset >= size - 80) {
      REQUIRE_CODE(file, kCorruption);
    } else {
      REQUIRE_OK(file);
      const bool payload_is_whole = (*file)->ReadPayload().ok();
      const auto damaged = DamagedPages(**file, kSlots);
      const bool in_payload = offset >= size - 80 - 8;
      REQUIRE(payload_is_whole == !in_payload);
      REQUIRE(damaged.size() == (in_payload ? 0 : 1));
      if (offset < 3 * kPageSize) REQUIRE(damaged[0] == offset / kPageSize);
    }
    FlipByte(env, Path(), offset);
  }
}

TEST_CASE("a frozen file that is cut short or extended is refused") {
  SimEnv env;
  Write(env, 130, "a filter");
  const std::string good = Contents(env);
  for (const size_t cut : {size_t{1}, size_t{79}, size_t{80}, size_t{81}, size_t{4096},
                           good.size() - 79, good.size()}) {
    Replace(env, good.substr(0, good.size() - cut));
    REQUIRE_CODE(FrozenFile::Open(env, "/", kId), kCorruption);
  }
  for (const size_t more : {size_t{1}, size_t{4096}}) {
    Replace(env, good + std::string(more, '\0'));
    REQUIRE_CODE(FrozenFile::Open(env, "/", kId), kCorruption);
  }
  Replace(env, good.substr(1));
  REQUIRE_CODE(FrozenFile::Open(env, "/", kId), kCorruption);
}

TEST_CASE("a frozen file under another's name is refused") {
  SimEnv env;
  Write(env, 130, "a filter");
  const std::string good = Contents(env);
  for (const StoreFileId& other :
       {StoreFileId{StoreKind::kHash, 3, 13}, StoreFileId{StoreKind::kHash, 4, 12},
        StoreFileId{StoreKind::kSorted, 3, 12}}) {
    auto file = CreateStoreFile(env, "/", other);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(0, AsBytes(good)));
    REQUIRE_CODE(FrozenFile::Open(env, "/", other), kCorruption);
  }
  REQUIRE_CODE(FrozenFile::Open(env, "/", {StoreKind::kHash, 3, 14}), kNotFound);
}

TEST_CASE("a crafted footer with a good checksum over bad fields is refused") {
  SimEnv env;
  Write(env, 130, "a filter");
  const std::string good = Contents(env);
  const auto with = [&](size_t offset, const std::string& field) {
    std::string bad = good;
    bad.replace(bad.size() - 80 + offset, field.size(), field);
    Encoder checksum;
    checksum.U64(Checksum(AsBytes(bad).subspan(bad.size() - 80, 72)));
    bad.replace(bad.size() - 8, 8, checksum.text());
    Replace(env, bad);
    return FrozenFile::Open(env, "/", kId);
  };
  const auto u32 = [](uint32_t value) { return Encoder().U32(value).Take(); };
  const auto u64 = [](uint64_t value) { return Encoder().U64(value).Take(); };
  REQUIRE_OK(with(0, "SILTFRZ\n"));
  REQUIRE_CODE(with(0, "SILTFRX\n"), kCorruption);
  REQUIRE_CODE(with(8, u32(3)), kNeedsNewer);
  REQUIRE_CODE(with(8, u32(1)), kCorruption);     // an earlier version
  REQUIRE_CODE(with(12, "\x07"), kCorruption);    // the kind
  REQUIRE_CODE(with(14, "\x08"), kCorruption);    // the layout
  REQUIRE_CODE(with(15, "\x02"), kCorruption);    // the page index
  REQUIRE_CODE(with(20, u32(2)), kCorruption);    // pages
  REQUIRE_CODE(with(32, u64(205)), kCorruption);  // entries
  REQUIRE_CODE(with(40, u64(131)), kCorruption);  // tombstones
  REQUIRE_CODE(with(48, u64(7)), kCorruption);    // bytes of the payload
  REQUIRE_CODE(with(48, u64(UINT64_MAX)), kCorruption);
  // The footer claims more pages, and a payload so long that the sum of sizes wraps to the right
  // size.
  const uint64_t wrapped = uint64_t{8} - 1000 * kPageSize;
  const std::string pages = u32(1001);
  const std::string rest = good.substr(good.size() - 80 + 24, 24) + u64(wrapped);
  REQUIRE_CODE(with(20, pages + rest), kCorruption);
}

TEST_CASE("an unfinished file is removed") {
  SimEnv env;
  Throttle throttle(env, 0);
  {
    auto writer = FrozenFileWriter::Create(env, "/", kId, throttle);
    REQUIRE_OK(writer);
    for (uint64_t i = 0; i < 70 * 204; ++i) REQUIRE_OK((*writer)->Append(EntryOf(i)));
  }
  CHECK(ListStoreFiles(env, "/")->empty());
  Write(env, 5, "a filter");
  CHECK(ListStoreFiles(env, "/")->size() == 1);
}

TEST_CASE("a frozen file is written in large pieces") {
  SimEnv env;
  const uint64_t writes = env.Calls(SimCall::kWrite);
  Write(env, 3 * 64 * 204, "a filter");
  CHECK(env.Calls(SimCall::kWrite) - writes == 3 * 64 / 32 + 1);
}

}  // namespace siltfs::testing
