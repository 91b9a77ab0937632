// The file of a SortedStore's filter: slices are read back as written, and no other bytes are
// accepted.
#include "index/silt/ribbon_file.h"

#include "index/silt/memory_plan.h"
#include "store/env/files.h"
#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kKeys = 90'000;  // 13 blocks: one write of eight, and one of five
constexpr StoreFileId kStore{StoreKind::kSorted, 3, 12};
constexpr StoreFileId kFile{StoreKind::kFilter, 3, 12};
constexpr uint64_t kStoreChecksum = 0x1234;

uint64_t KeyHash(uint64_t i) {
  return i * (UINT64_MAX / kKeys) + NameHash{1}.Of(NameOf(i)) % 1'000'000;
}

struct Written {
  explicit Written(uint64_t keys = kKeys) {
    auto writer = RibbonFileWriter::Create(env, "/", kStore, 0, keys, throttle);
    REQUIRE_OK(writer);
    for (uint64_t i = 0; i < keys; ++i) REQUIRE_OK((*writer)->Add(KeyHash(i)));
    REQUIRE_OK((*writer)->Finish(kStoreChecksum));
  }
  auto Open(const StoreFileId& store = kStore, unsigned partition_bits = 0,
            uint64_t checksum = kStoreChecksum) {
    return RibbonFile::Open(env, "/", store, partition_bits, checksum);
  }
  std::string path() const { return "/" + StoreFileName(kFile); }
  uint64_t size() { return env.GetFileInfo(path())->size; }

  SimEnv env;
  Throttle throttle{env, 0};
};

}  // namespace

TEST_CASE("each slice read from a filter's file denies no key, and half of the other names") {
  Written written;
  auto file = written.Open();
  REQUIRE_OK(file);
  REQUIRE((*file)->shape().blocks > RibbonFileWriter::kBlocksAtOnce);
  CHECK((*file)->size() == written.size());
  CHECK((*file)->id() == kFile);
  RibbonFilter filter((*file)->shape());
  for (unsigned number = 0; number < kRibbonSlices; ++number) {
    auto slice = (*file)->ReadSlice(number);
    REQUIRE_OK(slice);
    CHECK((*slice)->size() == (*file)->shape().slice_words());
    filter = filter.With(*slice);
    uint64_t denied = 0;
    uint64_t passed = 0;
    for (uint64_t i = 0; i < kKeys; ++i) {
      denied += filter.MayContain(KeyHash(i)) ? 0 : 1;
      passed += filter.MayContain(NameHash{2}.Of(NameOf(i))) ? 1 : 0;
    }
    INFO(number + 1 << " slices pass " << passed << " of " << kKeys);
    CHECK(denied == 0);
    const double expected = static_cast<double>(kKeys) / static_cast<double>(2U << number);
    CHECK(static_cast<double>(passed) < 1.15 * expected);
    CHECK(static_cast<double>(passed) > 0.85 * expected);
  }
}

TEST_CASE("an unfinished filter file is removed, and one without keys is whole") {
  SimEnv env;
  Throttle throttle(env, 0);
  {
    auto writer = RibbonFileWriter::Create(env, "/", kStore, 0, 100, throttle);
    REQUIRE_OK(writer);
    REQUIRE_OK((*writer)->Add(1));
  }
  REQUIRE_CODE(RibbonFile::Open(env, "/", kStore, 0, kStoreChecksum), kNotFound);
  Written none(0);
  REQUIRE_OK(none.Open());
}

TEST_CASE("the filter of another store, partition or opening is refused") {
  Written written;
  REQUIRE_CODE(written.Open(kStore, 0, kStoreChecksum + 1), kCorruption);
  REQUIRE_CODE(written.Open(kStore, 1), kCorruption);
  const StoreFileId other{StoreKind::kSorted, 3, 13};
  REQUIRE_CODE(written.Open(other), kNotFound);
  REQUIRE_OK(written.env.Rename(written.path(), "/" + StoreFileName({StoreKind::kFilter, 3, 13})));
  REQUIRE_CODE(written.Open(other), kCorruption);
}

TEST_CASE("every flipped byte of a filter is noticed") {
  Written written(2000);
  const uint64_t size = written.size();
  const uint64_t step = GENERATE(uint64_t{1}, uint64_t{97});
  // Damages every byte of the footer, and some of the slices.
  for (uint64_t at = step == 1 ? size - 120 : 0; at < size; at += step) {
    INFO("byte " << at << " of " << size);
    FlipByte(written.env, written.path(), at);
    auto file = written.Open();
    unsigned damaged = 0;
    for (unsigned number = 0; file.ok() && number < kRibbonSlices; ++number) {
      auto slice = (*file)->ReadSlice(number);
      if (slice.ok()) continue;
      REQUIRE_CODE(slice, kCorruption);
      ++damaged;
    }
    if (file.ok()) {
      CHECK(damaged == 1);
    } else {
      REQUIRE_CODE(file, kCorruption);
    }
    FlipByte(written.env, written.path(), at);
  }
  REQUIRE_OK(written.Open());
}

TEST_CASE("a filter that is cut short or extended is refused") {
  Written written(2000);
  auto contents = ReadWholeFile(written.env, written.path(), 1U << 20);
  REQUIRE_OK(contents);
  for (const size_t size : {size_t{0}, size_t{119}, size_t{120}, contents->size() / 2,
                            contents->size() - 1, contents->size() + 1, contents->size() + 4096}) {
    INFO(size);
    std::string changed = *contents;
    changed.resize(size, '\x5a');
    auto file = CreateStoreFile(written.env, "/", kFile);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(0, AsBytes(changed)));
    REQUIRE_CODE(written.Open(), kCorruption);
  }
}

}  // namespace siltfs::testing
