#include "index/silt/store_manifest.h"

#include "index/silt/log_files.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

StoreManifest Example() {
  return {.hash_secret = 0x0123456789abcdef,
          .complete_sequence = 77,
          .next_log_id = 12,
          .logs = {{.id = 3, .bucket_bits = 15, .page_count = 900, .damaged_pages = {1, 700}},
                   {.id = 9, .bucket_bits = 4, .page_count = 2},
                   {.id = 11, .bucket_bits = 15}}};
}

// With a checksum that fits, as a hostile hand would make it.
std::string Resealed(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  Encoder checksum;
  checksum.U64(Checksum(AsBytes(bytes)));
  return bytes + checksum.text();
}

}  // namespace

TEST_CASE("a manifest reads as it was written") {
  auto read = DecodeStoreManifest(AsBytes(EncodeStoreManifest(Example())));
  REQUIRE_OK(read);
  CHECK(*read == Example());
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

TEST_CASE("a manifest with a good checksum over bad fields is refused or harmless") {
  Random random(1);
  const std::string good = EncodeStoreManifest(Example());
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (uint64_t flips = 1 + random.Below(4); flips-- > 0;) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Next());
    }
    auto read = DecodeStoreManifest(AsBytes(Resealed(bad)));
    if (!read.ok()) continue;
    REQUIRE_FALSE(read->logs.empty());
    REQUIRE(read->logs.back().page_count == 0);
    for (const LogRecord& log : read->logs) {
      REQUIRE(log.id < read->next_log_id);
      REQUIRE(log.bucket_bits >= 1);
      REQUIRE(log.bucket_bits <= 15);
      for (uint32_t page : log.damaged_pages) REQUIRE(page < log.page_count);
    }
  }
}

TEST_CASE("counts beyond the end of a manifest are refused before anything is allocated") {
  std::string bytes = EncodeStoreManifest(Example());
  bytes[40] = bytes[41] = bytes[42] = bytes[43] = '\xff';  // logs
  REQUIRE_CODE(DecodeStoreManifest(AsBytes(Resealed(bytes))), kCorruption);
  bytes = EncodeStoreManifest(Example());
  bytes[64] = bytes[65] = bytes[66] = bytes[67] = '\xff';  // damaged pages of the first
  REQUIRE_CODE(DecodeStoreManifest(AsBytes(Resealed(bytes))), kCorruption);
}

TEST_CASE("a manifest of a later version is named as such") {
  std::string bytes = EncodeStoreManifest(Example());
  bytes[8] = 2;
  REQUIRE_CODE(DecodeStoreManifest(AsBytes(Resealed(bytes))), kNeedsNewer);
}

TEST_CASE("only names that a log would be given are taken for logs") {
  for (uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{1234567890123}, UINT64_MAX}) {
    CHECK(ParseLogFileName(LogFileName(id)) == id);
  }
  for (const char* name : {"", "1.log", "00000000000000000001", "00000000000000000001.logx",
                           "0000000000000000000x.log", "+0000000000000000001.log",
                           "99999999999999999999.log", "manifest", "manifest.new"}) {
    CHECK_FALSE(ParseLogFileName(name).has_value());
  }
}

}  // namespace siltfs
