// The value log's manifest: its layout and damage.
#include "index/key_value/value_log_manifest.h"

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "value_log_fixture.h"

namespace siltfs::testing {
namespace {

const std::string kManifestPath = std::string(kLogDirectory) + "/value_log";

ValueLogManifest Example() {
  ValueLogManifest manifest;
  for (size_t i = 0; i < StoreUuid::kSize; ++i) manifest.store.bytes[i] = static_cast<uint8_t>(i);
  manifest.next_segment = 0x01020304;
  manifest.incomplete = {1, 7, 0x01020303};
  return manifest;
}

std::string WithChecksum(Encoder out) {
  out.U64(Checksum(out.view()));
  return out.Take();
}

}  // namespace

TEST_CASE("the manifest has the documented layout") {
  const std::string bytes = EncodeValueLogManifest(Example());
  std::string expected("SILTVAL\n\x01\0\0\0\x03\0\0\0", 16);
  for (char c = 0; c < 16; ++c) expected += c;
  expected += std::string("\x04\x03\x02\x01\0\0\0\0", 8);
  expected += std::string("\x01\0\0\0\x07\0\0\0\x03\x03\x02\x01", 12);
  CHECK(bytes.substr(0, 52) == expected);
  REQUIRE(bytes.size() == 60);
  CHECK(Decoder(AsBytes(bytes).subspan(52)).U64() == Checksum(AsBytes(expected)));
  auto decoded = DecodeValueLogManifest(AsBytes(bytes));
  REQUIRE_OK(decoded);
  CHECK(*decoded == Example());
}

TEST_CASE("a manifest with a flipped bit or another length is damage") {
  const std::string whole = EncodeValueLogManifest(Example());
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    REQUIRE_CODE(DecodeValueLogManifest(AsBytes(bytes)), kCorruption);
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    REQUIRE_CODE(DecodeValueLogManifest(AsBytes(whole).first(size)), kCorruption);
  }
  REQUIRE_CODE(DecodeValueLogManifest(AsBytes(whole + "x")), kCorruption);
}

TEST_CASE("a manifest with invalid fields is damage even if its checksum is right") {
  auto encode = [](uint32_t version, uint32_t count, uint64_t next, std::vector<uint32_t> ids) {
    Encoder out;
    out.Raw(std::string_view("SILTVAL\n")).U32(version).U32(count).Zeros(16).U64(next);
    for (const uint32_t id : ids) out.U32(id);
    return WithChecksum(std::move(out));
  };
  auto decode = [](const std::string& bytes) { return DecodeValueLogManifest(AsBytes(bytes)); };
  REQUIRE_OK(decode(encode(1, 0, 1, {})));
  REQUIRE_OK(decode(encode(1, 1, UINT32_MAX, {5})));
  REQUIRE_CODE(decode(encode(2, 0, 1, {})), kNeedsNewer);
  REQUIRE_CODE(decode(encode(1, 0, 0, {})), kCorruption);
  REQUIRE_CODE(decode(encode(1, 0, uint64_t{1} << 32, {})), kCorruption);
  REQUIRE_CODE(decode(encode(1, 1, 9, {})), kCorruption);
  REQUIRE_CODE(decode(encode(1, 0xffffffff, 9, {1})), kCorruption);
  REQUIRE_CODE(decode(encode(1, 1, 9, {9})), kCorruption);
  REQUIRE_CODE(decode(encode(1, 1, 9, {0})), kCorruption);
  REQUIRE_CODE(decode(encode(1, 2, 9, {3, 3})), kCorruption);
  REQUIRE_CODE(decode(encode(1, 2, 9, {4, 3})), kCorruption);
}

TEST_CASE("a log does not open with a manifest that is damaged, missing or too old") {
  const bool read_only = GENERATE(true, false);
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  { OpenLog(*env, options)->segments(); }
  const std::string empty = FileBytes(*env, kManifestPath);
  std::vector<Record> records;
  {
    auto log = OpenLog(*env, options);
    for (uint64_t number = 0; number < 20; ++number) {
      records.push_back(AppendRecord(*log, number, 300));
    }
    REQUIRE_OK(log->SealOpenSegment());
  }
  const std::string whole = FileBytes(*env, kManifestPath);
  options.read_only = read_only;
  auto refuse = [&] {
    auto log = ValueLog::Open(*env, options);
    REQUIRE_CODE(log, kCorruption);
    REQUIRE_FALSE(log.status().path().empty());
  };
  std::string bytes = whole;
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  PutFile(*env, kManifestPath, bytes);
  refuse();
  // A manifest that is older than the segments is refused. With it, the log would use their ids
  // again.
  PutFile(*env, kManifestPath, empty);
  refuse();
  PutFile(*env, kManifestPath, "");
  refuse();
  PutFile(*env, kManifestPath, std::string(17U << 20, 'x'));
  refuse();
  REQUIRE_OK(env->RemoveFile(kManifestPath));
  refuse();
  auto gone = ValueLog::Open(*env, options);
  CHECK(gone.status().ToString().find("manifest is missing") != std::string::npos);
  PutFile(*env, kManifestPath, whole);
  RequireReadAll(*OpenLog(*env, options), records);
}

TEST_CASE("a log refuses new segments after the last id") {
  auto env = NewDevice();
  { OpenLog(*env, SmallOptions())->segments(); }
  auto manifest = ReadValueLogManifest(*env, kLogDirectory);
  REQUIRE_OK(manifest);
  REQUIRE(manifest->has_value());
  (*manifest)->next_segment = ValueLogManifest::kSegmentLimit - 64;
  REQUIRE_OK(WriteValueLogManifest(*env, kLogDirectory, **manifest));
  auto log = OpenLog(*env, SmallOptions());
  Record last;
  for (uint64_t number = 0; number < 64; ++number) last = AppendRecord(*log, number, 5000);
  CHECK(last.location.segment == 0xfffffffe);  // the index uses the last number itself
  REQUIRE_OK(log->Sync());
  REQUIRE_CODE(log->Append(NameOf(64), BytesOf(64, 5000)), kUnsupported);
  RequireRead(*log, last);
  log = OpenLog(*env, SmallOptions());
  RequireRead(*log, last);
}

TEST_CASE("each log has its own identity") {
  auto env = NewDevice();
  REQUIRE_OK(env->CreateDirectory("/others"));
  ValueLogOptions options = SmallOptions();
  { OpenLog(*env, options)->segments(); }
  options.directory = "/others";
  { OpenLog(*env, options)->segments(); }
  auto one = ReadValueLogManifest(*env, kLogDirectory);
  auto other = ReadValueLogManifest(*env, "/others");
  REQUIRE_OK(one);
  REQUIRE_OK(other);
  CHECK((*one)->store != (*other)->store);
}

}  // namespace siltfs::testing
