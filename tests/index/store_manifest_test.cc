#include "index/silt/store_manifest.h"

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr size_t kHeaderSize = 56;

StoreManifest Example() {
  return {.name_hash = {0x0123456789abcdef},
          .bucket_bits = 11,
          .partition_bits = 1,
          .generation = 5,
          .complete_sequence = 77,
          .next_id = 112,
          .entries_lost = false,
          .partitions = {{.first_log_id = 103,
                          .first_page = 4000,
                          .durable_page = 4010,
                          .complete_sequence = 70,
                          .hash_ids = {98, 100, 102},
                          .sorted_id = 99},
                         {.first_log_id = 0,
                          .first_page = 0,
                          .durable_page = 3,
                          .complete_sequence = 0,
                          .hash_ids = {},
                          .sorted_id = 0}}};
}

// Returns the bytes with a valid checksum, as an attacker would craft them.
std::string Resealed(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  Encoder checksum;
  checksum.U64(Checksum(AsBytes(bytes)));
  return bytes + checksum.text();
}

}  // namespace

TEST_CASE("a manifest reads as it was written") {
  StoreManifest manifest = Example();
  for (const bool lost : {false, true}) {
    manifest.entries_lost = lost;
    auto read = DecodeStoreManifest(AsBytes(EncodeStoreManifest(manifest)));
    REQUIRE_OK(read);
    CHECK(*read == manifest);
  }
}

TEST_CASE("a manifest that is cut or flipped anywhere is refused") {
  const std::string good = EncodeStoreManifest(Example());
  for (size_t length = 0; length < good.size(); ++length) {
    REQUIRE_CODE(DecodeStoreManifest(AsBytes(good.substr(0, length))), kCorruption);
  }
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    REQUIRE_CODE(DecodeStoreManifest(AsBytes(bad)), kCorruption);
  }
}

TEST_CASE("bytes accepted as a manifest, even crafted ones, encode to the same bytes") {
  Random random(1);
  const std::string good = EncodeStoreManifest(Example());
  int passed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (uint64_t flips = 1 + random.Below(4); flips-- > 0;) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Next());
    }
    bad = Resealed(bad);
    auto read = DecodeStoreManifest(AsBytes(bad));
    if (!read.ok()) continue;
    ++passed;
    REQUIRE(EncodeStoreManifest(*read) == bad);
    REQUIRE(read->partitions.size() == size_t{1} << read->partition_bits);
    for (const PartitionRecord& partition : read->partitions) {
      REQUIRE(partition.sorted_id < read->next_id);
      for (const uint64_t id : partition.hash_ids) REQUIRE(id < read->next_id);
    }
  }
  CHECK(passed > 1000);
}

TEST_CASE("counts beyond the end of a manifest are refused before anything is allocated") {
  std::string bytes = EncodeStoreManifest(Example());
  const size_t count = kHeaderSize + 32;  // of the first partition's HashStores
  bytes[count] = bytes[count + 1] = bytes[count + 2] = bytes[count + 3] = '\xff';
  REQUIRE_CODE(DecodeStoreManifest(AsBytes(Resealed(bytes))), kCorruption);
}

TEST_CASE("stores that are out of order or were never made are refused") {
  const auto refused = [](auto change) {
    StoreManifest manifest = Example();
    change(manifest);
    return DecodeStoreManifest(AsBytes(EncodeStoreManifest(manifest)));
  };
  REQUIRE_CODE(refused([](auto& m) { m.partitions[0].hash_ids = {100, 98}; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.partitions[0].hash_ids = {98, 98}; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.partitions[0].hash_ids = {98, 112}; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.partitions[1].sorted_id = 112; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.partitions[1].first_log_id = 113; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.bucket_bits = 0; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.bucket_bits = 16; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.partition_bits = 2; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.partition_bits = 0; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.partition_bits = 13; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.name_hash.bits = 7; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.name_hash.bits = 65; }), kCorruption);
  REQUIRE_CODE(refused([](auto& m) { m.generation = 0; }), kCorruption);
  REQUIRE_OK(refused([](auto&) {}));
}

TEST_CASE("a manifest of a later version is named as such") {
  std::string bytes = EncodeStoreManifest(Example());
  bytes[8] = 3;
  REQUIRE_CODE(DecodeStoreManifest(AsBytes(Resealed(bytes))), kNeedsNewer);
}

// The owner rebuilds a damaged index from the segments.
TEST_CASE("a manifest of an earlier version counts as damage") {
  std::string bytes = EncodeStoreManifest(Example());
  bytes[8] = 1;
  REQUIRE_CODE(DecodeStoreManifest(AsBytes(Resealed(bytes))), kCorruption);
}

}  // namespace siltfs
