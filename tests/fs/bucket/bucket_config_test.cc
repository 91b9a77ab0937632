// The file STORE/bucket: its text, its checksum, and values that no bucket can have.
#include "fs/bucket/bucket_config.h"

#include "fs/open/store_layout.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

BucketConfig Whole() {
  return {.address = "s3://backups/laptop",
          .endpoint = "https://minio.example:9000",
          .region = "eu-west-3",
          .credentials = "/etc/siltfs/credentials",
          .ca_file = "/etc/ssl/own.pem",
          .cache_bytes = uint64_t{5} << 30,
          .prices = BucketPrices{.put = 0.1, .storage = 0.00099, .currency = "EUR"}};
}

TEST_CASE("a bucket file is read as it was written, and is text") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/store"));
  auto none = ReadBucketConfig(env, "/store");
  REQUIRE_OK(none);
  CHECK_FALSE(none->has_value());
  for (const BucketConfig& config : {Whole(), BucketConfig{.address = "s3://bucket"}}) {
    REQUIRE_OK(WriteBucketConfig(env, "/store", config));
    auto read = ReadBucketConfig(env, "/store");
    REQUIRE_OK(read);
    REQUIRE(read->has_value());
    CHECK(**read == config);
  }
  CHECK(EncodeBucketConfig(Whole()).find("\naddress s3://backups/laptop\nendpoint https://") !=
        std::string::npos);
}

TEST_CASE("a bucket file survives a power cut whole") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/store"));
  REQUIRE_OK(env.SyncDirectory("/"));
  REQUIRE_OK(WriteBucketConfig(env, "/store", Whole()));
  env.PowerCut();
  auto read = ReadBucketConfig(env, "/store");
  REQUIRE_OK(read);
  CHECK(**read == Whole());
}

TEST_CASE("every changed byte and every cut of a bucket file is found") {
  const std::string text = EncodeBucketConfig(Whole());
  for (size_t at = 0; at < text.size(); ++at) {
    CAPTURE(at);
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    CHECK_FALSE(DecodeBucketConfig(damaged).ok());
    CHECK_FALSE(DecodeBucketConfig(text.substr(0, at)).ok());
  }
  REQUIRE_CODE(DecodeBucketConfig("siltfs bucket 2\n"), kNeedsNewer);
  REQUIRE_CODE(DecodeBucketConfig(""), kCorruption);
}

TEST_CASE("values that no bucket can have are refused before they are written") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/store"));
  const auto refused = [&](auto change) {
    BucketConfig config = Whole();
    change(config);
    REQUIRE_CODE(WriteBucketConfig(env, "/store", config), kInvalidArgument);
  };
  refused([](BucketConfig& c) { c.address = "backups/laptop"; });
  refused([](BucketConfig& c) { c.address = ""; });
  refused([](BucketConfig& c) { c.endpoint = "minio"; });
  refused([](BucketConfig& c) { c.region = "a\nchecksum 0"; });
  refused([](BucketConfig& c) { c.credentials = "/a\n/b"; });
  refused([](BucketConfig& c) { c.cache_bytes = kLeastBucketCacheBytes - 1; });
  auto none = ReadBucketConfig(env, "/store");
  REQUIRE_OK(none);
  CHECK_FALSE(none->has_value());
}

}  // namespace
}  // namespace siltfs
