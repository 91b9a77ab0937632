#include "store/base/status.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace siltfs {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kAlreadyExists:
      return "already exists";
    case StatusCode::kNotADirectory:
      return "not a directory";
    case StatusCode::kIsADirectory:
      return "is a directory";
    case StatusCode::kNotEmpty:
      return "not empty";
    case StatusCode::kNameTooLong:
      return "name too long";
    case StatusCode::kTooManyLinks:
      return "too many links";
    case StatusCode::kFileTooLarge:
      return "file too large";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotPermitted:
      return "not permitted";
    case StatusCode::kAccessDenied:
      return "access denied";
    case StatusCode::kReadOnly:
      return "read-only";
    case StatusCode::kNoSpace:
      return "no space left";
    case StatusCode::kIoError:
      return "input/output error";
    case StatusCode::kCorruption:
      return "corruption";
    case StatusCode::kNeedsNewer:
      return "needs another version of siltfs";
    case StatusCode::kInUse:
      return "in use";
    case StatusCode::kNoAttribute:
      return "no such attribute";
    case StatusCode::kBufferTooSmall:
      return "buffer too small";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kStale:
      return "stale";
    case StatusCode::kInterrupted:
      return "interrupted";
    case StatusCode::kAborted:
      return "aborted";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kQuotaExceeded:
      return "quota exceeded";
    case StatusCode::kOtherQuota:
      return "other quota";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string cause) {
  if (code != StatusCode::kOk) {
    rep_ = std::make_unique<Rep>(Rep{code, std::move(cause), {}, {}});
  }
  MarkNews();
}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {
  other.MarkLookedAt();
  MarkNews();
}

Status& Status::operator=(const Status& other) {
  if (this != &other) *this = Status(other);
  return *this;
}

Status::Status(Status&& other) noexcept : rep_(std::move(other.rep_)) {
  other.MarkLookedAt();
  MarkNews();
}

Status& Status::operator=(Status&& other) noexcept {
  if (this == &other) return *this;
  AssertLookedAt();
  rep_ = std::move(other.rep_);
  other.MarkLookedAt();
  MarkNews();
  return *this;
}

Status Status::At(std::string_view path) && {
  if (rep_ && rep_->path.empty()) rep_->path = path;
  return std::move(*this);
}

Status Status::At(std::string_view path, uint64_t offset) && {
  if (rep_ && rep_->path.empty()) {
    rep_->path = path;
    if (!rep_->offset) rep_->offset = offset;
  }
  return std::move(*this);
}

std::string_view Status::cause() const {
  MarkLookedAt();
  return rep_ ? std::string_view(rep_->cause) : std::string_view();
}

std::string_view Status::path() const {
  MarkLookedAt();
  return rep_ ? std::string_view(rep_->path) : std::string_view();
}

std::optional<uint64_t> Status::offset() const {
  MarkLookedAt();
  return rep_ ? rep_->offset : std::nullopt;
}

std::string Status::ToString() const {
  MarkLookedAt();
  if (!rep_) return "ok";
  std::string text;
  if (!rep_->path.empty()) text = rep_->path + ": ";
  text += rep_->cause.empty() ? std::string(StatusCodeName(rep_->code)) : rep_->cause;
  if (rep_->offset) text += fmt::format(" at offset {}", *rep_->offset);
  return text;
}

#ifdef SILTFS_CHECK_STATUS
void Status::DroppedUnread() const {
  looked_at_ = true;
  std::string text = ToString();
  std::fprintf(stderr, "siltfs: a Status was dropped unread: %s\n", text.c_str());
  std::abort();
}
#endif

}  // namespace siltfs
