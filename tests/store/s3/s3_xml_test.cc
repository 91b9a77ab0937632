// The documents and headers that a service sends, well-formed and not.
#include "store/s3/s3_xml.h"

#include "store/base/random.h"
#include "store/s3/content_range.h"
#include "store/s3/object_headers.h"
#include "tests/support/catch.h"
#include "tests/support/test_scale.h"

namespace siltfs {
namespace {

std::string Listing(std::string_view inner) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n" +
         std::string(inner) + "</ListBucketResult>";
}

std::string Contents(std::string_view key, std::string_view etag, std::string_view size) {
  return "<Contents><Key>" + std::string(key) + "</Key><LastModified>2024</LastModified><ETag>" +
         std::string(etag) + "</ETag><Size>" + std::string(size) +
         "</Size><Owner><ID>x</ID></Owner></Contents>";
}

const std::string kComplete = "<IsTruncated>false</IsTruncated>";

TEST_CASE("listings are read") {
  auto listing = ParseListing(
      Listing("<Name>bucket</Name><EncodingType>url</EncodingType><KeyCount>2</KeyCount>"
              "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</"
              "NextContinuationToken>" +
              Contents("a+b%2Fc%25%C3%a4%2B", "&quot;e1&quot;", "0") +
              Contents("b", "\"e-2\"", "18446744073709551615")));
  REQUIRE_OK(listing);
  CHECK(listing->truncated);
  CHECK(listing->next_token == "a&b");
  REQUIRE(listing->objects.size() == 2);
  CHECK(listing->objects[0].key == "a b/c%\xC3\xA4+");
  CHECK(listing->objects[0].etag == "e1");
  CHECK(listing->objects[0].size == 0);
  CHECK(listing->objects[1].size == UINT64_MAX);

  // Some services ignore encoding-type.
  listing = ParseListing(Listing(kComplete + Contents("a+b%2F", "e", "1")));
  REQUIRE_OK(listing);
  CHECK(listing->objects[0].key == "a+b%2F");
  CHECK_FALSE(listing->truncated);
}

TEST_CASE("malformed listings are refused") {
  const std::string object = Contents("a", "e", "1");
  const std::string nested =
      "<a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></a>" + kComplete;
  std::string many = kComplete;
  for (int i = 0; i < 1001; ++i) many += object;
  const std::string cases[] = {
      "",
      "<html><body>Please log in</body></html>",
      "<Error><Code>NoSuchBucket</Code></Error>",
      Listing(""),
      Listing(object),
      Listing(kComplete + kComplete),
      Listing("<IsTruncated>yes</IsTruncated>"),
      Listing("<IsTruncated>true</IsTruncated>" + object),
      Listing(kComplete + Contents("", "e", "1")),
      Listing(kComplete + Contents("a", "", "1")),
      Listing(kComplete + Contents("a", "W/\"e\"", "1")),
      Listing(kComplete + Contents("a", "e\n", "1")),
      Listing(kComplete + Contents("a", "e", "")),
      Listing(kComplete + Contents("a", "e", "-1")),
      Listing(kComplete + Contents("a", "e", "1x")),
      Listing(kComplete + Contents("a", "e", "18446744073709551616")),
      Listing(kComplete + "<Contents><Key>a</Key><Size>1</Size></Contents>"),
      Listing(kComplete + "<Contents><Key>a</Key><Key>b</Key><ETag>e</ETag><Size>1</Size></"
                          "Contents>"),
      Listing("<EncodingType>url</EncodingType>" + kComplete + Contents("a%2", "e", "1")),
      Listing("<EncodingType>url</EncodingType>" + kComplete + Contents("a%GG", "e", "1")),
      Listing(nested),
      Listing(many),
      Listing(kComplete + Contents(std::string(20'000, 'a'), "e", "1")),
      Listing(kComplete + object) + "<more/>",
      Listing(kComplete + object).substr(0, 200),
      "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><ListBucketResult>" + kComplete +
          Contents("&b;", "e", "1") + "</ListBucketResult>",
      Listing(kComplete + Contents("&unknown;", "e", "1")),
  };
  for (const std::string& document : cases) {
    INFO(document.substr(0, 300));
    const auto listing = ParseListing(document);
    REQUIRE_CODE(listing, kCorruption);
    CHECK(listing.status().ToString().starts_with("the service sent a malformed listing: "));
  }
  REQUIRE_OK(ParseListing(Listing(kComplete + object)));
  REQUIRE_OK(ParseListing("<ListBucketResult>" + kComplete + object + "</ListBucketResult>"));
}

TEST_CASE("descriptions of errors are read") {
  auto error = ParseError(
      "<?xml version='1.0'?>\n<Error><Code>NoSuchKey</Code><Message>The \n key\x7F is "
      "gone</Message><Region>eu-west-1</Region></Error>");
  REQUIRE(error);
  CHECK(error->code == "NoSuchKey");
  CHECK(error->message == "The ? key? is gone");
  CHECK(error->region == "eu-west-1");
  error =
      ParseError("<Error><Code>X</Code><Message>" + std::string(5'000, 'm') + "</Message></Error>");
  REQUIRE(error);
  CHECK(error->message.size() == 200);
  for (const std::string& document :
       {std::string(), std::string("<html></html>"), std::string("<Error></Error>"),
        std::string("<Error><Code>No Such Key</Code></Error>"),
        std::string("<Error><Code>NoSuchKey</Code>"),
        "<Error><Code>" + std::string(101, 'a') + "</Code></Error>",
        "<Error><Code>a</Code>" + std::string(kMaxErrorBytes, ' ') + "</Error>"}) {
    CHECK_FALSE(ParseError(document));
  }
}

TEST_CASE("ETags lose their quotes") {
  CHECK(ParseEtag("\"abc-1\"") == "abc-1");
  CHECK(ParseEtag("abc") == "abc");
  for (const char* text : {"", "\"", "\"\"", "W/\"abc\"", "a b", "\"a\"b\"", "a\\", "a\x80"}) {
    INFO(text);
    CHECK_FALSE(ParseEtag(text));
  }
  CHECK_FALSE(ParseEtag(std::string(257, 'a')));
}

TEST_CASE("ranges are parsed") {
  const auto range = ParseContentRange("bytes 5-9/100");
  REQUIRE(range);
  CHECK(range->begin == 5);
  CHECK(range->end == 10);
  CHECK(range->total == 100);
  for (const char* text :
       {"", "bytes", "bytes */100", "5-9/100", "bytes 5-9/*", "bytes 9-5/100", "bytes 5-100/100",
        "bytes -9/100", "bytes 5-/100", "bytes 5/9-100", "bytes 5-9/100 ", "bytes +5-9/100",
        "bytes 5-18446744073709551616/18446744073709551617"}) {
    INFO(text);
    CHECK_FALSE(ParseContentRange(text));
  }
}

HttpReply RangeReply(int status, std::map<std::string, std::string, std::less<>> headers) {
  HttpReply reply;
  reply.status = status;
  reply.headers = std::move(headers);
  return reply;
}

TEST_CASE("only the range that was asked for is accepted") {
  const WantedRange wanted{.version = "e", .offset = 10, .size = 5};
  const auto fault = [&](int status, std::map<std::string, std::string, std::less<>> headers,
                         uint64_t received) {
    return FaultOfRange(RangeReply(status, std::move(headers)), wanted, received);
  };
  CHECK(fault(206, {{"etag", "\"e\""}, {"content-range", "bytes 10-14/100"}}, 5).empty());
  CHECK(fault(206, {{"etag", "\"e\""}, {"content-range", "bytes 10-12/13"}}, 3).empty());
  CHECK(fault(416, {{"content-range", "bytes */10"}}, 0).empty());
  CHECK(fault(416, {}, 0).empty());
  CHECK_FALSE(fault(416, {{"content-range", "bytes */11"}}, 0).empty());
  CHECK_FALSE(fault(206, {{"etag", "\"f\""}, {"content-range", "bytes 10-14/100"}}, 5).empty());
  CHECK_FALSE(fault(206, {{"content-range", "bytes 10-14/100"}}, 5).empty());
  CHECK_FALSE(fault(206, {{"etag", "\"e\""}, {"content-range", "bytes 11-15/100"}}, 5).empty());
  CHECK_FALSE(fault(206, {{"etag", "\"e\""}, {"content-range", "bytes 10-13/100"}}, 4).empty());
  CHECK_FALSE(fault(206, {{"etag", "\"e\""}, {"content-range", "bytes 10-14/100"}}, 4).empty());
  CHECK_FALSE(fault(206, {{"etag", "\"e\""}, {"content-range", "bytes 10-15/100"}}, 6).empty());
  CHECK_FALSE(fault(206, {{"etag", "\"e\""}}, 5).empty());
  CHECK_FALSE(fault(200, {{"etag", "\"e\""}, {"content-length", "5"}}, 5).empty());
  // A service may answer with the whole object if the range covers it.
  const WantedRange whole{.version = "", .offset = 0, .size = 100};
  CHECK(FaultOfRange(RangeReply(200, {{"etag", "e"}, {"content-length", "5"}}), whole, 5).empty());
  CHECK_FALSE(
      FaultOfRange(RangeReply(200, {{"etag", "e"}, {"content-length", "6"}}), whole, 5).empty());
  CHECK_FALSE(FaultOfRange(RangeReply(200, {{"etag", "e"}}), whole, 5).empty());
}

// Changes some bytes: flips, removals, repetitions, and pieces of markup.
std::string Mutate(std::string text, Random& random) {
  constexpr const char* kPieces[] = {"<",    ">",  "&", "&#x41;", "]]>",   "<![CDATA[",
                                     "<!--", "\"", "%", "/",      "<Key>", "</Contents>",
                                     "\xFF", "-",  "*", "9"};
  const uint64_t changes = 1 + random.Below(4);
  for (uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = random.Below(text.size());
    const size_t size = 1 + random.Below(std::min<uint64_t>(40, text.size() - at));
    switch (random.Below(4)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << random.Below(8)));
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, text.substr(random.Below(text.size()), size));
        break;
      default:
        text.insert(at, kPieces[random.Below(std::size(kPieces))]);
    }
  }
  return text;
}

TEST_CASE("changed documents and headers are refused, or read within the limits") {
  const std::string listing =
      Listing("<EncodingType>url</EncodingType>" + kComplete +
              Contents("a%20b", "&quot;e&quot;", "5") + Contents("c", "&quot;f&quot;", "70"));
  const std::string error =
      "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>gone</Message></Error>";
  Random random(42);
  int refused = 0;
  const int rounds = static_cast<int>(testing::Share(100'000));
  for (int i = 0; i < rounds; ++i) {
    const auto read = ParseListing(Mutate(listing, random));
    if (!read.ok()) {
      ++refused;
    } else {
      for (const S3ListedObject& object : read->objects) {
        REQUIRE_FALSE(object.key.empty());
        REQUIRE(ParseEtag(object.etag) == object.etag);
      }
    }
    const auto described = ParseError(Mutate(error, random));
    if (described) REQUIRE((!described->code.empty() && described->message.size() <= 200));
    const auto range = ParseContentRange(Mutate("bytes 10-19/100", random));
    if (range) REQUIRE((range->begin < range->end && range->end <= range->total));
    ParseEtag(Mutate("\"0123456789abcdef\"", random));
    ParseHttpDate(Mutate("Wed, 21 Oct 2015 07:28:00 GMT", random));
  }
  CHECK(refused > rounds / 4);
  CHECK(refused < rounds);
}

}  // namespace
}  // namespace siltfs
