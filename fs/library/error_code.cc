#include "fs/library/error_code.h"

namespace siltfs::chunks {
namespace {

ErrorCode CodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return ErrorCode::kNone;
    case StatusCode::kNotFound:
      return ErrorCode::kNotFound;
    case StatusCode::kInvalidArgument:
      return ErrorCode::kInvalidArgument;
    case StatusCode::kNotEmpty:
      return ErrorCode::kNotEmpty;
    case StatusCode::kInUse:
      return ErrorCode::kInUse;
    case StatusCode::kNeedsNewer:
      return ErrorCode::kNeedsNewer;
    case StatusCode::kUnsupported:
      return ErrorCode::kWrongContent;
    case StatusCode::kCorruption:
    case StatusCode::kNotADirectory:  // a file of the store has another type
    case StatusCode::kIsADirectory:
      return ErrorCode::kCorruption;
    case StatusCode::kNoSpace:
      return ErrorCode::kNoSpace;
    case StatusCode::kReadOnly:
      return ErrorCode::kReadOnly;
    default:
      return ErrorCode::kFailed;
  }
}

}  // namespace

Error ErrorOf(const Status& status) {
  if (status.ok()) return {};
  return Error(CodeOf(status.code()), status.ToString());
}

}  // namespace siltfs::chunks
