#include "store/s3/s3_object_store.h"

#include <fmt/format.h>

#include "store/s3/content_range.h"
#include "store/s3/object_headers.h"
#include "store/s3/put_content.h"
#include "store/s3/s3_xml.h"

namespace siltfs {
namespace {

constexpr uint64_t kMaxObjectBytes = uint64_t{5} << 30;  // of one PUT
constexpr int kRangeNotSatisfiable = 416;

std::string QuotedEtag(std::string_view version) { return fmt::format("\"{}\"", version); }

Result<std::string> RandomNumber(Env& env) {
  Sha256Digest bytes{};
  SILTFS_RETURN_IF_ERROR(env.FillRandom(bytes));
  return HexOf(bytes).substr(0, 32);
}

bool IsMissingKey(const HttpReply& reply) {
  return reply.status == 404 && S3ErrorCode(reply) == "NoSuchKey";
}

S3Verdict NoEtag() { return S3Verdict::Retry("an answer came without a usable ETag"); }

// A whole object.
S3Verdict JudgeObject(const HttpReply& reply, const ReplyBody& body, std::string& version) {
  auto etag = ParseEtag(reply.Header("etag"));
  if (!etag || reply.status != 200) return NoEtag();
  if (body.overflowed()) {
    return S3Verdict::WrongBytes(StatusCode::kFileTooLarge,
                                 fmt::format("the object has more than {} bytes", body.limit()));
  }
  const auto length = ParseDecimal(reply.Header("content-length"));
  if (!length || *length != body.size()) {
    return S3Verdict::Retry("an object came without its length");
  }
  const std::string_view checksum = reply.Header(kChecksumHeader);
  if (!checksum.empty() && checksum != fmt::format("{:016x}", Checksum(body.bytes()))) {
    return S3Verdict::WrongBytes(StatusCode::kCorruption,
                                 "the object differs from its stored checksum");
  }
  version = std::move(*etag);
  return S3Verdict::Done();
}

S3Verdict JudgeRange(const HttpReply& reply, const ReplyBody& body, const WantedRange& wanted) {
  std::string fault = body.overflowed() ? "more bytes came than were asked for"
                                        : FaultOfRange(reply, wanted, body.size());
  if (fault.empty()) return S3Verdict::Done();
  return S3Verdict::WrongBytes(StatusCode::kIoError, std::move(fault));
}

}  // namespace

Result<std::unique_ptr<S3ObjectStore>> S3ObjectStore::Open(Env& env, S3Options options) {
  SILTFS_ASSIGN_OR_RETURN(auto client, S3Client::Open(env, std::move(options)));
  return std::unique_ptr<S3ObjectStore>(new S3ObjectStore(std::move(client)));
}

S3ObjectStore::S3ObjectStore(std::unique_ptr<S3Client> client)
    : client_(std::move(client)),
      name_(client_->address().ToUrl()),
      key_prefix_(client_->address().KeyPrefix()) {}

Status S3ObjectStore::Failed(Status status, const std::string& key) const {
  switch (status.code()) {
    case StatusCode::kIoError:
    case StatusCode::kAccessDenied:
    case StatusCode::kCorruption:
    case StatusCode::kNoSpace:
      client_->CountFailure();
      break;
    default:
      break;
  }
  return std::move(status).At(name_ + "/" + key);
}

Status S3ObjectStore::Failed(Status status, const std::string& key, uint64_t offset) const {
  Status counted = Failed(std::move(status), key);
  if (counted.offset()) return counted;
  return Status(counted.code(), std::string(counted.cause())).At(counted.path(), offset);
}

Result<std::string> S3ObjectStore::Put(const std::string& key, ByteView content,
                                       const PutCondition& condition) {
  return PutFile(key, MemoryFile(content), condition);
}

Result<std::string> S3ObjectStore::PutFile(const std::string& key, const ReadableFile& content,
                                           const PutCondition& condition) {
  auto version = PutOnce(key, content, condition);
  if (!version.ok()) return Failed(std::move(version).status(), key);
  return version;
}

Result<std::string> S3ObjectStore::PutOnce(const std::string& key, const ReadableFile& file,
                                           const PutCondition& condition) {
  SILTFS_ASSIGN_OR_RETURN(const auto content, PutContent::Measure(file));
  if (content->size() > kMaxObjectBytes) {
    return Status(StatusCode::kFileTooLarge, "an object can have at most 5 GiB");
  }
  SILTFS_ASSIGN_OR_RETURN(const std::string put, RandomNumber(client_->env()));
  S3Request request;
  request.operation = S3Operation::kPut;
  request.key = key_prefix_ + key;
  request.content = content.get();
  request.content_size = content->size();
  request.content_sha256 = HexOf(content->sha256());
  request.headers = {{"content-type", "application/octet-stream"},
                     {"x-amz-checksum-sha256", Base64Of(content->sha256())},
                     {kChecksumHeader, fmt::format("{:016x}", content->checksum())},
                     {kPutHeader, put}};
  if (condition.kind == PutCondition::Kind::kIfAbsent) {
    request.headers.emplace_back("if-none-match", "*");
    request.conditional = true;
    request.conflict = StatusCode::kAlreadyExists;
  } else if (condition.kind == PutCondition::Kind::kIfVersion) {
    request.headers.emplace_back("if-match", EtagOfCondition(condition.version));
    request.conditional = true;
  }
  std::string version;
  S3Outcome outcome = SendPut(request, version);
  if (outcome.status.Is(StatusCode::kStale) && NeedsPlainEtag(key, condition)) {
    request.headers.back().second = EtagOfCondition(condition.version);
    const bool uncertain = outcome.uncertain;
    outcome.status.IgnoreError("the service has compared the ETag with its quotes");
    outcome = SendPut(request, version);
    outcome.uncertain |= uncertain;
  }
  if (outcome.status.ok()) return version;
  const bool refused =
      outcome.status.Is(StatusCode::kAlreadyExists) || outcome.status.Is(StatusCode::kStale);
  if (refused && outcome.uncertain) return Resolve(key, put, std::move(outcome.status));
  return std::move(outcome.status);
}

S3Outcome S3ObjectStore::SendPut(const S3Request& request, std::string& version) {
  return client_->Perform(request, nullptr,
                          [&](const HttpReply& reply) -> std::optional<S3Verdict> {
                            if (IsMissingKey(reply))
                              return S3Verdict::Final(StatusCode::kStale, "the object is gone");
                            if (!reply.Successful()) return {};
                            auto etag = ParseEtag(reply.Header("etag"));
                            if (!etag) return NoEtag();
                            version = std::move(*etag);
                            return S3Verdict::Done();
                          });
}

std::string S3ObjectStore::EtagOfCondition(const std::string& version) const {
  return plain_etags_ ? version : QuotedEtag(version);
}

// Called after a Put was refused because the object has another version. Ceph 16 compares all of
// If-Match with the ETag without quotes, so it refuses each correct condition. A second request is
// safe, because it has the same condition.
bool S3ObjectStore::NeedsPlainEtag(const std::string& key, const PutCondition& condition) {
  if (condition.kind != PutCondition::Kind::kIfVersion || plain_etags_) return false;
  const auto head = FindHead(key);
  if (!head.ok() || head->info.version != condition.version) return false;
  plain_etags_ = true;
  return true;
}

// A conditional Put was refused after an attempt whose answer was lost. That attempt may be the
// reason for the refusal.
Result<std::string> S3ObjectStore::Resolve(const std::string& key, const std::string& put,
                                           Status refusal) {
  auto head = FindHead(key);
  if (head.ok() && head->put == put) {
    refusal.IgnoreError("the object that is there is the one that was put");
    return std::move(head->info.version);
  }
  if (head.ok() && refusal.Is(StatusCode::kAlreadyExists)) return refusal;
  const std::string found = head.ok() ? "another object is there" : head.status().ToString();
  return Status(
      StatusCode::kIoError,
      fmt::format("it is unknown whether the object was put: an answer was lost, then {}, "
                  "and now: {}",
                  refusal.ToString(), found));
}

Result<Bytes> S3ObjectStore::Get(const std::string& key, uint64_t limit, std::string* version) {
  auto bytes = GetOnce(key, limit, version);
  if (!bytes.ok()) return Failed(std::move(bytes).status(), key);
  return bytes;
}

Result<Bytes> S3ObjectStore::GetOnce(const std::string& key, uint64_t limit, std::string* version) {
  S3Request request;
  request.operation = S3Operation::kGet;
  request.key = key_prefix_ + key;
  ReplyBody body(limit);
  std::string found;
  SILTFS_RETURN_IF_ERROR(
      client_->Ask(request, &body, [&](const HttpReply& reply) -> std::optional<S3Verdict> {
        if (!reply.Successful()) return {};
        return JudgeObject(reply, body, found);
      }));
  if (version != nullptr) *version = std::move(found);
  return body.Release();
}

Result<size_t> S3ObjectStore::Read(const std::string& key, std::string_view version,
                                   uint64_t offset, MutableByteView out) {
  auto size = ReadOnce(key, version, offset, out);
  if (!size.ok()) return Failed(std::move(size).status(), key, offset);
  return size;
}

Result<size_t> S3ObjectStore::ReadOnce(const std::string& key, std::string_view version,
                                       uint64_t offset, MutableByteView out) {
  if (out.empty()) return size_t{0};
  if (offset > UINT64_MAX - out.size()) {
    return Status(StatusCode::kInvalidArgument, "the range ends beyond the largest offset");
  }
  S3Request request;
  request.operation = S3Operation::kGet;
  request.key = key_prefix_ + key;
  request.ends_with_reads = true;
  request.headers = {{"range", fmt::format("bytes={}-{}", offset, offset + out.size() - 1)}};
  if (!version.empty()) request.headers.emplace_back("if-match", QuotedEtag(version));
  ReplyBody body(out);
  const WantedRange wanted{.version = version, .offset = offset, .size = out.size()};
  SILTFS_RETURN_IF_ERROR(
      client_->Ask(request, &body, [&](const HttpReply& reply) -> std::optional<S3Verdict> {
        if (!version.empty() && IsMissingKey(reply)) {
          return S3Verdict::Final(StatusCode::kStale, "the object is gone");
        }
        if (!reply.Successful() && reply.status != kRangeNotSatisfiable) return {};
        return JudgeRange(reply, body, wanted);
      }));
  return static_cast<size_t>(body.size());
}

}  // namespace siltfs
