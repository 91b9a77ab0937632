// Request handling shared by all ReadQueues. For this folder only.
#pragma once

#include <cstdint>

#include "store/env/env.h"

namespace siltfs {

inline Status CheckReadQueueDepth(unsigned depth) {
  if (depth >= 1 && depth <= ReadQueue::kMaxDepth) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, "the depth of a read queue is from 1 to 1024");
}

// The file of the innermost Env under the request's file; null if the request has no file.
inline const File* Underlying(const ReadRequest& request) {
  return request.file == nullptr ? nullptr : &request.file->underlying();
}

// Clears the request's outcome and returns its initial status, which is an error if the read cannot
// be made. `own_file` is the request's file, or null if the file is not of this Env.
inline Status BeginRequest(ReadRequest& request, const File* own_file) {
  request.bytes_read = 0;
  request.status.IgnoreError("of an earlier use");
  if (own_file == nullptr) {
    return Status(StatusCode::kInvalidArgument, request.file == nullptr
                                                    ? "a read without a file"
                                                    : "a file of another kind than the read queue");
  }
  // The kernel would take a larger offset as a negative one, which can mean "where the last read
  // ended".
  constexpr uint64_t kEnd = INT64_MAX;
  if (request.offset > kEnd || request.out.size() > kEnd - request.offset) {
    return Status(StatusCode::kInvalidArgument, "a read beyond the largest offset")
        .At(own_file->path(), request.offset);
  }
  return Status::Ok();
}

// Reads the rest of a request that BeginRequest accepted, and waits for it.
inline void ReadRest(ReadRequest& request) {
  Result<size_t> got = request.file->Read(request.offset + request.bytes_read,
                                          request.out.subspan(request.bytes_read));
  if (got.ok()) {
    request.bytes_read += *got;
  } else {
    request.status = std::move(got).status();
  }
}

}  // namespace siltfs
