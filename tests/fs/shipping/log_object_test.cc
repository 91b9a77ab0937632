// The formats of log objects and manifests.
#include "fs/shipping/log_object.h"

#include "fs/shipping/checkpoint.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

LogObject Sample() {
  LogObject object;
  object.epoch = 3;
  object.number = 0x1234;
  object.previous = 77;
  object.first = 8;
  object.last = 9;
  object.time_ns = -5;
  object.lease_end_ns = 6;
  object.writer.id[15] = 9;
  object.writer.host = "a host";
  object.attachment = "superblock";
  for (const uint64_t sequence : {8, 9}) {
    CommitEncoder commit(sequence);
    commit.Put("key", std::string(300, 'v'));
    commit.Remove("");
    object.commits += commit.Take();
  }
  return object;
}

TEST_CASE("log: an object is read as it was written") {
  const LogObject object = Sample();
  const auto bytes = EncodeLogObject(object);
  REQUIRE_OK(bytes);
  const auto read = DecodeLogObject(AsBytes(*bytes));
  REQUIRE_OK(read);
  CHECK(read->kind == object.kind);
  CHECK(read->epoch == 3);
  CHECK(read->number == 0x1234);
  CHECK(read->previous == 77);
  CHECK(read->first == 8);
  CHECK(read->last == 9);
  CHECK(read->time_ns == -5);
  CHECK(read->lease_end_ns == 6);
  CHECK(read->writer == object.writer);
  CHECK(read->attachment == "superblock");
  CHECK(read->commits == object.commits);
  std::vector<uint64_t> sequences;
  REQUIRE_OK(ForEachCommit(AsBytes(read->commits), [&](uint64_t sequence, auto& mutations) {
    sequences.push_back(sequence);
    CHECK(mutations.size() == 2);
    CHECK(mutations[0].value == std::string(300, 'v'));
    CHECK(!mutations[1].value);
    return Status::Ok();
  }));
  CHECK(sequences == std::vector<uint64_t>{8, 9});
}

TEST_CASE("log: each changed byte and each cut of an object is noticed") {
  const auto bytes = EncodeLogObject(Sample());
  REQUIRE_OK(bytes);
  for (size_t i = 0; i < bytes->size(); ++i) {
    std::string damaged = *bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    REQUIRE(DecodeLogObject(AsBytes(damaged)).status().Is(StatusCode::kCorruption));
    const std::string cut = bytes->substr(0, i);
    REQUIRE(DecodeLogObject(AsBytes(cut)).status().Is(StatusCode::kCorruption));
  }
}

TEST_CASE("log: keys have fixed widths and are parsed exactly") {
  CHECK(LogKey(0xabc) == "log/0000000000000abc");
  CHECK(ParseLogKey("log/0000000000000abc") == 0xabc);
  for (const char* key : {"log/", "log/abc", "log/000000000000ABC0", "log/00000000000000001", "x"})
    CHECK(ParseLogKey(key) == 0);
  CHECK(ParseManifestKey(ManifestKey(55)) == 55);
  CHECK(ParseManifestKey(LogKey(55)) == 0);
}

TEST_CASE("checkpoint: each changed byte of a manifest is noticed") {
  Manifest manifest;
  manifest.epoch = 2;
  manifest.number = 9;
  manifest.sequence = 100;
  manifest.records = 3;
  manifest.attachment = "superblock";
  manifest.parts = {{1, {5, 6}, 7}, {2, {8, 9}, 10}};
  const std::string bytes = EncodeManifest(manifest);
  const auto read = DecodeManifest(AsBytes(bytes));
  REQUIRE_OK(read);
  CHECK(EncodeManifest(*read) == bytes);
  CHECK(read->parts.at(1).sum == PartSum{8, 9});
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    REQUIRE(DecodeManifest(AsBytes(damaged)).status().Is(StatusCode::kCorruption));
  }
}

}  // namespace
}  // namespace siltfs
