// The examples of "Authenticating Requests: Using the Authorization Header" in the reference of
// Amazon S3, and the rules for paths and queries.
#include "store/s3/signature.h"

#include "store/s3/sha256.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr const char* kDate = "20130524T000000Z";
const std::string kEmpty = HexOf(Sha256Of({}));

Credentials ExampleCredentials() {
  Credentials credentials;
  credentials.key_id = "AKIAIOSFODNN7EXAMPLE";
  credentials.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  return credentials;
}

// The signature of a request to the bucket of the examples.
std::string SignatureOf(SignableRequest request) {
  request.headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
  request.headers.emplace_back("x-amz-content-sha256", request.payload_sha256);
  request.headers.emplace_back("x-amz-date", kDate);
  const std::string header = Authorization(request, ExampleCredentials(), "us-east-1", kDate);
  return header.substr(header.rfind('=') + 1);
}

TEST_CASE("the published examples have the published signatures") {
  CHECK(SignatureOf({.method = "GET",
                     .path = "/test.txt",
                     .query = "",
                     .headers = {{"range", "bytes=0-9"}},
                     .payload_sha256 = kEmpty}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(SignatureOf({.method = "PUT",
                     .path = "/" + EncodeUri("test$file.text", true),
                     .query = "",
                     .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                 {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                     .payload_sha256 = HexOf(Sha256Of(AsBytes("Welcome to Amazon S3.")))}) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(SignatureOf({.method = "GET",
                     .path = "/",
                     .query = CanonicalQuery({{"lifecycle", ""}}),
                     .headers = {},
                     .payload_sha256 = kEmpty}) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(SignatureOf({.method = "GET",
                     .path = "/",
                     .query = CanonicalQuery({{"prefix", "J"}, {"max-keys", "2"}}),
                     .headers = {},
                     .payload_sha256 = kEmpty}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("the header names the key, the scope and the signed headers in their order") {
  const std::string header = Authorization({.method = "GET",
                                            .path = "/",
                                            .query = "",
                                            .headers = {{"x-amz-date", kDate}, {"host", "h"}},
                                            .payload_sha256 = kEmpty},
                                           ExampleCredentials(), "eu-west-3", kDate);
  CHECK(
      header.starts_with("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/eu-west-3/"
                         "s3/aws4_request,SignedHeaders=host;x-amz-date,Signature="));
  CHECK(header.find("wJalrXUtnFEMI") == std::string::npos);
}

TEST_CASE("paths and queries are encoded") {
  CHECK(EncodeUri("aZ09-._~", false) == "aZ09-._~");
  CHECK(EncodeUri("a/b c+%\xC3\xA4", true) == "a/b%20c%2B%25%C3%A4");
  CHECK(EncodeUri("a/b", false) == "a%2Fb");
  CHECK(CanonicalQuery({{"b", "x y"}, {"a", "1/2"}, {"a", "0"}, {"A", ""}}) ==
        "A=&a=0&a=1%2F2&b=x%20y");
  CHECK(CanonicalQuery({}).empty());
}

TEST_CASE("times become dates in UTC") {
  CHECK(SignatureDate(1369353600LL * 1'000'000'000) == kDate);
  CHECK(SignatureDate(951782399LL * 1'000'000'000 + 999'999'999) == "20000228T235959Z");
  CHECK(SignatureDate(951782400LL * 1'000'000'000) == "20000229T000000Z");
}

TEST_CASE("digests have the published values") {
  CHECK(kEmpty == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  hash.Add(AsBytes("a"));
  hash.Add(AsBytes("bc"));
  const Sha256Digest digest = hash.Finish();
  CHECK(HexOf(digest) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Base64Of(digest) == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  // RFC 4231, test case 2.
  CHECK(HexOf(HmacSha256(AsBytes("Jefe"), "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace siltfs
