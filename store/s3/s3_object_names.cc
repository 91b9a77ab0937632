// The calls of S3ObjectStore that transfer no content: Stat, Remove and List.
#include <fmt/format.h>

#include <algorithm>

#include "store/s3/object_headers.h"
#include "store/s3/s3_object_store.h"
#include "store/s3/s3_xml.h"

namespace siltfs {
namespace {

constexpr size_t kMaxPageObjects = 1000;
constexpr int kMaxHeads = 3;

// The key that a page of a listing starts behind, and the prefix of all its keys.
struct WantedPage {
  std::string prefix;
  std::string after;
  size_t limit = 0;
};

// What is wrong with a page; empty if nothing is.
std::string FaultOfPage(const S3Listing& listing, const WantedPage& wanted) {
  if (listing.objects.size() > wanted.limit) return "a listing has more objects than asked for";
  std::string_view last = wanted.after;
  for (const S3ListedObject& object : listing.objects) {
    if (!object.key.starts_with(wanted.prefix)) return "a listing has keys with another prefix";
    if (object.key <= last) return "a listing is not in the order of its keys";
    last = object.key;
  }
  return "";
}

S3Verdict JudgePage(const HttpReply& reply, const ReplyBody& body, const WantedPage& wanted,
                    S3Listing& listing) {
  if (body.overflowed()) return S3Verdict::Retry("a listing is too long");
  auto parsed = ParseListing(AsText(body.bytes()));
  if (!parsed.ok() || reply.status != 200) {
    return S3Verdict::Retry(parsed.ok() ? "a listing came with a wrong status"
                                        : std::string(parsed.status().cause()));
  }
  std::string fault = FaultOfPage(*parsed, wanted);
  if (!fault.empty()) return S3Verdict::WrongBytes(StatusCode::kIoError, std::move(fault));
  listing = std::move(*parsed);
  return S3Verdict::Done();
}

}  // namespace

Result<ObjectInfo> S3ObjectStore::Stat(const std::string& key) {
  auto head = FindHead(key);
  if (!head.ok()) return Failed(std::move(head).status(), key);
  return std::move(head->info);
}

Result<S3ObjectStore::Head> S3ObjectStore::FindHead(const std::string& key) {
  S3Request request;
  request.operation = S3Operation::kStat;
  request.key = key_prefix_ + key;
  for (int i = 0; i < kMaxHeads; ++i) {
    Head head;
    bool unexplained = false;
    const auto judge = [&](const HttpReply& reply) -> std::optional<S3Verdict> {
      if (reply.Successful()) return JudgeHead(reply, key, head);
      // The reply has no body that says why.
      unexplained = !IsTransient(reply.status, "");
      if (unexplained) return S3Verdict::Done();
      return {};
    };
    SILTFS_RETURN_IF_ERROR(client_->Ask(request, nullptr, judge));
    if (!unexplained) return head;
    SILTFS_RETURN_IF_ERROR(ExplainHead(key));
  }
  return Status(StatusCode::kIoError, "the service describes the object in some answers only");
}

S3Verdict S3ObjectStore::JudgeHead(const HttpReply& reply, const std::string& key, Head& head) {
  auto etag = ParseEtag(reply.Header("etag"));
  const auto size = ParseDecimal(reply.Header("content-length"));
  if (!etag || !size) return S3Verdict::Retry("an answer came without ETag and size");
  head = {.info = {.key = key, .size = *size, .version = std::move(*etag)},
          .put = std::string(reply.Header(kPutHeader))};
  return S3Verdict::Done();
}

// Asks for one byte of an object for which HEAD was refused, because the reply to a GET has the
// cause in its body. OK if the object can be read now.
Status S3ObjectStore::ExplainHead(const std::string& key) {
  S3Request request;
  request.key = key_prefix_ + key;
  request.headers = {{"range", "bytes=0-0"}};
  uint8_t byte[1] = {};
  ReplyBody body{MutableByteView(byte)};
  return client_->Ask(request, &body, [](const HttpReply& reply) -> std::optional<S3Verdict> {
    if (reply.Successful() || reply.status == 416) return S3Verdict::Done();
    return {};
  });
}

Status S3ObjectStore::Remove(const std::string& key) {
  S3Request request;
  request.operation = S3Operation::kRemove;
  request.key = key_prefix_ + key;
  const auto judge = [](const HttpReply& reply) -> std::optional<S3Verdict> {
    if (reply.status == 200 || reply.status == 204) return S3Verdict::Done();
    if (reply.Successful()) return S3Verdict::Retry("a removal got a wrong answer");
    if (reply.status == 404 && S3ErrorCode(reply) == "NoSuchKey") return S3Verdict::Done();
    return {};
  };
  Status status = client_->Ask(request, nullptr, judge);
  return status.ok() ? status : Failed(std::move(status), key);
}

Result<ObjectPage> S3ObjectStore::List(const std::string& prefix, const std::string& after,
                                       size_t limit) {
  auto page = ListOnce(prefix, after, limit);
  if (!page.ok()) return Failed(std::move(page).status(), prefix);
  return page;
}

Result<ObjectPage> S3ObjectStore::ListOnce(const std::string& prefix, const std::string& after,
                                           size_t limit) {
  if (limit == 0) return Status(StatusCode::kInvalidArgument, "a page has at least one object");
  const WantedPage wanted{.prefix = key_prefix_ + prefix,
                          .after = after.empty() ? "" : key_prefix_ + after,
                          .limit = std::min(limit, kMaxPageObjects)};
  S3Listing listing;
  // A service may send a page without objects although there are more.
  do {
    S3Request request;
    request.operation = S3Operation::kList;
    request.query = {{"list-type", "2"},
                     {"encoding-type", "url"},
                     {"max-keys", std::to_string(wanted.limit)},
                     {"prefix", wanted.prefix}};
    if (!wanted.after.empty()) request.query.emplace_back("start-after", wanted.after);
    if (listing.truncated) {
      request.query.emplace_back("continuation-token", listing.next_token);
    }
    ReplyBody body{uint64_t{kMaxListingBytes}};
    const auto judge = [&](const HttpReply& reply) -> std::optional<S3Verdict> {
      if (!reply.Successful()) return {};
      return JudgePage(reply, body, wanted, listing);
    };
    SILTFS_RETURN_IF_ERROR(client_->Ask(request, &body, judge));
  } while (listing.objects.empty() && listing.truncated);
  ObjectPage page;
  page.more = listing.truncated;
  for (S3ListedObject& object : listing.objects) {
    page.objects.push_back({.key = object.key.substr(key_prefix_.size()),
                            .size = object.size,
                            .version = std::move(object.etag)});
  }
  return page;
}

}  // namespace siltfs
