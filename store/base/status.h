// The outcome of an operation that can fail: a code for the program, and one sentence for the user
// that names the path, the offset (if any) and the cause.
//
// Thread-safety: as for a plain value. Ownership: a Status owns its texts. It is a single pointer,
// which is null if the Status is OK. With SILTFS_CHECK_STATUS (presets dev and asan-ubsan) a Status
// or Result aborts the program if it is destroyed or overwritten unread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace siltfs {

enum class StatusCode : uint8_t {
  kOk = 0,
  kNotFound,         // no such file, name, chunk or store
  kAlreadyExists,    // the name is taken
  kNotADirectory,    //
  kIsADirectory,     //
  kNotEmpty,         // a directory that is not empty (for mkfs, too)
  kNameTooLong,      //
  kTooManyLinks,     //
  kFileTooLarge,     // beyond the largest file offset
  kInvalidArgument,  // a bug in the caller, or a malformed argument
  kNotPermitted,     // EPERM: the operation is not allowed on this object
  kAccessDenied,     // EACCES: this user lacks the permission
  kReadOnly,         // the store is mounted read-only, or became read-only after a failure
  kNoSpace,          // the underlying disk is full
  kIoError,          // the underlying disk failed
  kCorruption,       // bytes on the disk differ from those written
  kNeedsNewer,       // written by a newer siltfs, or by an older one from before version 1.0
  kInUse,            // locked by another process
  kNoAttribute,      // no extended attribute of that name
  kBufferTooSmall,   // the caller's buffer is too small
  kUnsupported,      //
  kStale,            // the object was removed permanently
  kInterrupted,      //
  kAborted,          // not done because an earlier operation failed
  kOutOfMemory,      //
  kQuotaExceeded,    // EDQUOT: beyond the limit of a quota
  kOtherQuota,       // EXDEV: an inode would move from one quota to another
};

// The code's name in words, for logs and tests: "not found".
std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string cause);

  static Status Ok() { return {}; }

  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&& other) noexcept;
  Status& operator=(Status&& other) noexcept;
  ~Status() { AssertLookedAt(); }

  // Adds the place of the failure. If the Status has a place already, it keeps that place, which is
  // more precise.
  Status At(std::string_view path) &&;
  Status At(std::string_view path, uint64_t offset) &&;

  bool ok() const {
    MarkLookedAt();
    return rep_ == nullptr;
  }
  StatusCode code() const {
    MarkLookedAt();
    return rep_ ? rep_->code : StatusCode::kOk;
  }
  bool Is(StatusCode code) const { return this->code() == code; }

  // Empty when OK.
  std::string_view cause() const;
  std::string_view path() const;
  std::optional<uint64_t> offset() const;

  // One sentence: "PATH: CAUSE", "PATH: CAUSE at offset N"; "ok" when OK.
  std::string ToString() const;

  // Marks the Status as read. For the rare failure that has no effect; `why` documents the reason
  // in the source.
  void IgnoreError([[maybe_unused]] std::string_view why) const { MarkLookedAt(); }

 private:
  struct Rep {
    StatusCode code;
    std::string cause;
    std::string path;
    std::optional<uint64_t> offset;
  };

#ifdef SILTFS_CHECK_STATUS
  void MarkLookedAt() const { looked_at_ = true; }
  void AssertLookedAt() const {
    if (!looked_at_) DroppedUnread();
  }
  [[noreturn]] void DroppedUnread() const;
  mutable bool looked_at_ = true;  // a default OK need not be checked
  void MarkNews() { looked_at_ = false; }
#else
  void MarkLookedAt() const {}
  void AssertLookedAt() const {}
  void MarkNews() {}
#endif

  std::unique_ptr<Rep> rep_;
};

}  // namespace siltfs

// Returns the Status of `expression` from the enclosing function unless it is OK.
#define SILTFS_RETURN_IF_ERROR(expression)           \
  do {                                               \
    ::siltfs::Status siltfs_status_ = (expression);  \
    if (!siltfs_status_.ok()) return siltfs_status_; \
  } while (false)
