// Parallel reads. A flash device can serve dozens of random reads in the time of one; a ReadQueue
// keeps at most `depth` reads in flight. Made by Env::NewReadQueue.
//
// When not to use it: for one or two reads; File::Read costs less to set up.
//
// Thread-safety: one thread at a time; any number of queues may read the same files concurrently.
// Ownership: the caller owns requests, files and buffers, which must outlive the call. Errors:
// each request has its own Status, as from File::Read; a failure does not affect other requests.
// kInvalidArgument: the request has no file, has a file of another kind of Env (or another SimEnv),
// or ends beyond 2^63 - 1. Order: unspecified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/status.h"

namespace siltfs {

class File;

struct ReadRequest {
  const File* file = nullptr;
  uint64_t offset = 0;
  MutableByteView out = {};  // must not overlap between requests of one call

  // Outputs; their previous values are ignored.
  size_t bytes_read = 0;  // less than out.size() only at the end of the file or after an error
  Status status = {};
};

class ReadQueue {
 public:
  static constexpr unsigned kMaxDepth = 1024;

  virtual ~ReadQueue() = default;

  // Makes all reads; returns when all requests are done.
  void ReadAll(std::span<ReadRequest> requests) { DoReadAll(requests, nullptr); }

  // Like the function above, but `again` can give a finished request a further read. `again` is
  // called with each finished request, one at a time but possibly on another thread. It sets up the
  // request's next read and returns true, or returns false. With twice as many requests as the
  // depth, the device stays busy while `again` runs.
  using Again = std::function<bool(ReadRequest&)>;
  void ReadAll(std::span<ReadRequest> requests, const Again& again) { DoReadAll(requests, &again); }

  // The mechanism, for logs and statistics: "io_uring", "threads", "simulated"; "one by one" after
  // the system has withdrawn io_uring.
  virtual std::string_view mechanism() const = 0;

 protected:
  // Calls `again` if there is one; returns whether the finished request has a further read.
  static bool IsAgain(const Again* again, ReadRequest& request) {
    return again != nullptr && (*again)(request);
  }

 private:
  virtual void DoReadAll(std::span<ReadRequest> requests, const Again* again) = 0;
};

}  // namespace siltfs
