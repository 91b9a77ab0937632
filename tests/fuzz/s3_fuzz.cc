// All texts that a service of S3 sends, and the addresses and files of credentials that users
// write, are parsed from arbitrary bytes. What is accepted keeps the limits that the rest of the
// program relies on. An accepted address is unchanged by writing and parsing it.
//
// The input: the parser, for replies also their status, then the text.
#include <string>
#include <string_view>

#include "store/s3/bucket_address.h"
#include "store/s3/content_range.h"
#include "store/s3/credentials.h"
#include "store/s3/object_headers.h"
#include "store/s3/s3_failure.h"
#include "store/s3/s3_xml.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

enum class Parser : uint8_t { kListing, kReply, kRange, kDate, kAddress, kEndpoint, kCredentials };
constexpr uint8_t kParsers = 7;

void RunListing(std::string_view text) {
  const auto listing = ParseListing(text);
  if (!listing.ok()) {
    MustHold(listing.status().Is(StatusCode::kCorruption), "a malformed listing is corrupt");
    return;
  }
  MustHold(listing->objects.size() <= 1000, "a page has at most 1,000 objects");
  MustHold(!listing->truncated || !listing->next_token.empty(), "a page leads to the next one");
  for (const S3ListedObject& object : listing->objects) {
    MustHold(!object.key.empty(), "a listed object has a key");
    MustHold(ParseEtag(object.etag) == object.etag, "a listed object has an ETag");
  }
}

void RunReply(int status, std::string_view text) {
  HttpReply reply;
  reply.status = status;
  reply.error_body = text;
  reply.headers["retry-after"] = text.substr(0, 40);
  reply.headers["date"] = text.substr(0, 40);
  reply.headers["x-amz-bucket-region"] = text.substr(0, 40);
  const S3FailureContext context{.bucket = "bucket",
                                 .origin = "http://host",
                                 .region = "region",
                                 .credentials = "a file",
                                 .now = 1'700'000'000'000'000'000};
  const S3Verdict verdict = JudgeFailure(reply, context, StatusCode::kStale);
  MustHold(!verdict.status.ok(), "a failure is no success");
  for (const char c : verdict.status.ToString()) {
    MustHold(c >= 0x20 && c < 0x7F, "a sentence for users has only printable characters");
  }
  MustHold(verdict.status.ToString().size() < 1000, "a sentence for users is short");
  const auto wait = RetryAfter(reply, context.now);
  MustHold(wait.count() >= 0 && wait <= std::chrono::hours(1), "a wait has a limit");
}

void RunRange(std::string_view text) {
  const auto range = ParseContentRange(text);
  if (!range) return;
  MustHold(range->begin < range->end && range->end <= range->total, "a range is in its object");
}

void RunAddress(std::string_view text) {
  const auto address = ParseBucketUrl(text);
  if (!address.ok()) {
    MustHold(address.status().Is(StatusCode::kInvalidArgument), "a malformed address is invalid");
    return;
  }
  const auto again = ParseBucketUrl(address->ToUrl());
  MustHold(again.ok() && *again == *address, "an address is unchanged by writing and parsing it");
}

void RunEndpoint(std::string_view text) {
  const auto endpoint = ParseEndpoint(text);
  if (!endpoint.ok()) {
    MustHold(endpoint.status().Is(StatusCode::kInvalidArgument), "a malformed address is invalid");
    return;
  }
  const auto again = ParseEndpoint(endpoint->Origin());
  MustHold(again.ok() && again->Origin() == endpoint->Origin(), "an endpoint is unchanged");
}

void RunCredentials(std::string_view text) {
  const auto credentials = ParseCredentials(text, "default");
  if (credentials.ok()) return;
  const std::string sentence = credentials.status().ToString();
  MustHold(sentence.size() < 100, "the sentence has no text of the file");
}

void Run(FuzzInput input) {
  const auto parser = static_cast<Parser>(input.Number(1) % kParsers);
  const int status = static_cast<int>(input.Between(300, 599, 2));
  const std::string text(AsText(input.Take(input.remaining())));
  switch (parser) {
    case Parser::kListing:
      return RunListing(text);
    case Parser::kReply:
      return RunReply(status, text);
    case Parser::kRange:
      return RunRange(text);
    case Parser::kDate:
      ParseHttpDate(text);
      return;
    case Parser::kAddress:
      return RunAddress(text);
    case Parser::kEndpoint:
      return RunEndpoint(text);
    case Parser::kCredentials:
      return RunCredentials(text);
  }
}

}  // namespace

std::vector<Bytes> FuzzSeeds() {
  const auto seed = [](Parser parser, std::string_view text, uint8_t status = 0) {
    return JoinInput({static_cast<uint8_t>(parser), status, 0}, AsBytes(text));
  };
  return {
      seed(Parser::kListing,
           "<?xml version='1.0'?><ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
           "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
           "<NextContinuationToken>abc</NextContinuationToken><Contents><Key>a%2Fb+c</Key>"
           "<ETag>&quot;e&quot;</ETag><Size>12</Size></Contents></ListBucketResult>"),
      seed(Parser::kReply,
           "<Error><Code>NoSuchKey</Code><Message>gone</Message><Region>eu</Region></Error>", 104),
      seed(Parser::kReply, "<Error><Code>RequestTimeTooSkewed</Code></Error>", 103),
      seed(Parser::kReply, "<Error><Code>AuthorizationHeaderMalformed</Code></Error>", 100),
      seed(Parser::kReply, "120", 203),
      seed(Parser::kReply, "Wed, 21 Oct 2015 07:28:00 GMT", 203),
      seed(Parser::kRange, "bytes 0-99/1000"),
      seed(Parser::kDate, "Wed, 21 Oct 2015 07:28:00 GMT"),
      seed(Parser::kAddress, "s3://name/prefix/\xC3\xA4/b"),
      seed(Parser::kEndpoint, "https://[::1]:9000"),
      seed(Parser::kEndpoint, "http://host.example.org:9000/"),
      seed(Parser::kCredentials,
           "[default]\naws_access_key_id = ID\naws_secret_access_key = secret\n"),
  };
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::Run(siltfs::testing::FuzzInput(data, size));
  return 0;
}
