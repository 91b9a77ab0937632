#include "store/s3/bucket_address.h"

#include "tests/support/catch.h"

namespace siltfs {
namespace {

BucketAddress Parsed(std::string_view url) {
  auto address = ParseBucketUrl(url);
  REQUIRE_OK(address);
  return *address;
}

TEST_CASE("addresses of buckets are parsed") {
  CHECK(Parsed("s3://name") == BucketAddress{"name", ""});
  CHECK(Parsed("s3://name/") == BucketAddress{"name", ""});
  CHECK(Parsed("s3://name/prefix") == BucketAddress{"name", "prefix"});
  CHECK(Parsed("s3://name/a/b/") == BucketAddress{"name", "a/b"});
  CHECK(Parsed("s3://my.buck-et0/a b/\xC3\xA4/%20+?&#") ==
        BucketAddress{"my.buck-et0", "a b/\xC3\xA4/%20+?&#"});
  CHECK(Parsed("s3://name/user@host") == BucketAddress{"name", "user@host"});
  CHECK(Parsed("s3://name/...") == BucketAddress{"name", "..."});
  CHECK(Parsed("s3://name/a/b").ToUrl() == "s3://name/a/b");
  CHECK(Parsed("s3://name/a/b").KeyPrefix() == "a/b/");
  CHECK(Parsed("s3://name/").ToUrl() == "s3://name");
  CHECK(Parsed("s3://name").KeyPrefix().empty());
  CHECK(LooksLikeBucketUrl("s3://x"));
  CHECK_FALSE(LooksLikeBucketUrl("/srv/s3://x"));
}

TEST_CASE("malformed addresses of buckets are refused with a sentence") {
  const std::string long_prefix(kMaxBucketPrefixBytes + 1, 'x');
  const struct {
    std::string url;
    const char* sentence;
  } cases[] = {
      {"", "is no address of a bucket"},
      {"S3://name", "is no address of a bucket"},
      {"name/prefix", "is no address of a bucket"},
      {"s3://", "names no bucket"},
      {"s3:///prefix", "names no bucket"},
      {"s3://ab", "3 to 63 characters"},
      {"s3://" + std::string(64, 'a'), "3 to 63 characters"},
      {"s3://Name", "only lower-case letters"},
      {"s3://na_me", "only lower-case letters"},
      {"s3://name:80/a", "only lower-case letters"},
      {"s3://-name", "begins and ends"},
      {"s3://name.", "begins and ends"},
      {"s3://a..b", "no two dots"},
      {"s3://10.0.0.1", "no IP address"},
      {"s3://name//a", "no part of the prefix"},
      {"s3://name/a//b", "no part of the prefix"},
      {"s3://name/a//", "no part of the prefix"},
      {"s3://name//", "no part of the prefix"},
      {"s3://name/../b", "no part of the prefix"},
      {"s3://name/a/.", "no part of the prefix"},
      {"s3://name/a\nb", "UTF-8 without control characters"},
      {"s3://name/a\xFF", "UTF-8 without control characters"},
      {"s3://name/\xED\xA0\x80", "UTF-8 without control characters"},
      {"s3://name/\xC3", "UTF-8 without control characters"},
      {"s3://name/" + long_prefix, "more than"},
      {"s3://key:secret@name/a", "credentials come from"},
  };
  for (const auto& item : cases) {
    INFO(item.url);
    const auto address = ParseBucketUrl(item.url);
    REQUIRE_CODE(address, kInvalidArgument);
    CHECK(address.status().ToString().find(item.sentence) != std::string::npos);
    CHECK(address.status().ToString().find("secret") == std::string::npos);
  }
}

TEST_CASE("endpoints are parsed") {
  const auto parsed = [](std::string_view url) {
    auto endpoint = ParseEndpoint(url);
    REQUIRE_OK(endpoint);
    return *endpoint;
  };
  CHECK(parsed("http://minio:9000") == Endpoint{false, "minio", 9000});
  CHECK(parsed("https://s3.example.org/") == Endpoint{true, "s3.example.org", 0});
  CHECK(parsed("http://10.0.0.1:80") == Endpoint{false, "10.0.0.1", 80});
  CHECK(parsed("https://[fe80::1]:9000") == Endpoint{true, "[fe80::1]", 9000});
  CHECK(parsed("http://[::1]") == Endpoint{false, "[::1]", 0});
  CHECK(parsed("http://[::1]:9000").Origin() == "http://[::1]:9000");
  // Services compute the signature with the Host header, which has no default port.
  CHECK(parsed("http://a:80").Authority() == "a");
  CHECK(parsed("https://a:443").Authority() == "a");
  CHECK(parsed("https://a:80").Authority() == "a:80");
  CHECK(AmazonEndpoint("eu-central-1").Origin() == "https://s3.eu-central-1.amazonaws.com");
}

TEST_CASE("malformed endpoints are refused with a sentence") {
  const struct {
    const char* url;
    const char* sentence;
  } cases[] = {
      {"minio:9000", "begins with http"},
      {"ftp://minio", "begins with http"},
      {"http://", "names no host"},
      {"http://:9000", "names no host"},
      {"http://minio:", "the port must be"},
      {"http://minio:0", "the port must be"},
      {"http://minio:09", "the port must be"},
      {"http://minio:65536", "the port must be"},
      {"http://minio:9a", "the port must be"},
      {"http://::1:9000", "in brackets"},
      {"http://[::1", "in brackets"},
      {"http://[minio]:9000", "in brackets"},
      {"http://[]", "in brackets"},
      {"http://[::1]9000", "only a colon and a port"},
      {"http://minio/path", "nothing may follow"},
      {"http://minio?x", "nothing may follow"},
      {"http://minio//", "nothing may follow"},
      {"http://mi nio", "the name of a host"},
      {"http://mi\r\nnio", "the name of a host"},
      {"http://key:secret@minio", "credentials come from"},
  };
  for (const auto& item : cases) {
    INFO(item.url);
    const auto endpoint = ParseEndpoint(item.url);
    REQUIRE_CODE(endpoint, kInvalidArgument);
    CHECK(endpoint.status().ToString().find(item.sentence) != std::string::npos);
    CHECK(endpoint.status().ToString().find("secret") == std::string::npos);
  }
}

}  // namespace
}  // namespace siltfs
