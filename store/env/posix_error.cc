#include "store/env/posix_error.h"

#include <fmt/format.h>
#include <string.h>

#include <cerrno>

namespace siltfs {

StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case ENOTDIR:
      return StatusCode::kNotADirectory;
    case EISDIR:
      return StatusCode::kIsADirectory;
    case ENOTEMPTY:
      return StatusCode::kNotEmpty;
    case ENAMETOOLONG:
      return StatusCode::kNameTooLong;
    case EMLINK:
      return StatusCode::kTooManyLinks;
    case EFBIG:
    case EOVERFLOW:
      return StatusCode::kFileTooLarge;
    case EINVAL:
    case EBADF:
    case ELOOP:
    case EXDEV:
      return StatusCode::kInvalidArgument;
    case EPERM:
      return StatusCode::kNotPermitted;
    case EACCES:
      return StatusCode::kAccessDenied;
    case EROFS:
      return StatusCode::kReadOnly;
    case ENOSPC:
    case EDQUOT:
      return StatusCode::kNoSpace;
    case EWOULDBLOCK:
    case EBUSY:
    case EADDRINUSE:
    case ETXTBSY:
      return StatusCode::kInUse;
    case ENODATA:
      return StatusCode::kNoAttribute;
    case ERANGE:
      return StatusCode::kBufferTooSmall;
    case ENOSYS:
    case EOPNOTSUPP:
      return StatusCode::kUnsupported;
    case ESTALE:
      return StatusCode::kStale;
    case EINTR:
      return StatusCode::kInterrupted;
    case ECANCELED:
      return StatusCode::kAborted;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return StatusCode::kOutOfMemory;
    default:
      return StatusCode::kIoError;
  }
}

Status PosixError(std::string_view action, int error) {
  const char* words = strerrordesc_np(error);
  return Status(CodeOfErrno(error), words != nullptr
                                        ? fmt::format("cannot {}: {}", action, words)
                                        : fmt::format("cannot {}: error {}", action, error));
}

}  // namespace siltfs
