// The outcome of an operation that can fail: a code the program decides by, and one sentence for a person
// that names the path (and the offset, where there is one) and the cause.
//
// Thread-safety: as for a plain value. Ownership: a Status owns its texts; it is a pointer wide, null when OK.
// With SILTFS_CHECK_STATUS (presets dev and asan-ubsan) a Status or Result that is destroyed or overwritten before
// anyone looked at it ends the program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace siltfs {

enum class StatusCode : uint8_t {
  kOk = 0,
  kNotFound,          // no such file, name, chunk, store
  kAlreadyExists,     // the name is taken
  kNotADirectory,     //
  kIsADirectory,      //
  kNotEmpty,          // a directory (or a store to be) with something in it
  kNameTooLong,       //
  kTooManyLinks,      //
  kFileTooLarge,      // beyond the largest file offset
  kInvalidArgument,   // the caller's mistake
  kNotPermitted,      // EPERM: the operation is not allowed on this object
  kAccessDenied,      // EACCES: this user may not
  kReadOnly,          // the store is mounted read-only or turned read-only after a failure
  kNoSpace,           // the disk below is full
  kIoError,           // the disk below failed
  kCorruption,        // bytes on the disk are not what was written
  kNeedsNewer,        // written by a newer siltfs (or an older, before 1.0)
  kInUse,             // locked by another process
  kNoAttribute,       // no extended attribute of that name
  kBufferTooSmall,    // the caller's buffer
  kUnsupported,       //
  kStale,             // the object was removed for good
  kInterrupted,       //
  kAborted,           // not done because something before it failed
  kOutOfMemory,       //
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

  // Where it happened. Both keep an earlier, more precise place if one is set.
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

  // For the rare place where failure changes nothing; `why` is for the reader.
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
  mutable bool looked_at_ = true;  // a default OK carries no news
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
#define SILTFS_RETURN_IF_ERROR(expression)                    \
  do {                                                        \
    ::siltfs::Status siltfs_status_ = (expression);           \
    if (!siltfs_status_.ok()) return siltfs_status_;          \
  } while (false)
