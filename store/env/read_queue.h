// Many reads at once. A flash device answers one random read in the time in which it could have
// answered dozens; a ReadQueue keeps up to `depth` reads in flight at it. Comes from
// Env::NewReadQueue.
//
// When not to use it: for a read or two, File::Read costs less to set up.
//
// Thread-safety: one thread at a time; any number of queues may be used together, on the same
// files. Ownership: requests, files and buffers are the caller's, and must outlive the call only.
// Errors: each request has its own Status, as File::Read would have given it; one's failure does
// not touch the others. A request without a file, with a file of another kind of Env (or another
// SimEnv), or that ends beyond 2^63 - 1 is kInvalidArgument. Order: none is promised.
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
  MutableByteView out = {};  // no two requests of one call may overlap here

  // Filled in; what was in them before doesn't matter.
  size_t bytes_read = 0;  // less than out.size() only where the file ends, or after an error
  Status status = {};
};

class ReadQueue {
 public:
  static constexpr unsigned kMaxDepth = 1024;

  virtual ~ReadQueue() = default;

  // Returns when all requests are done.
  void ReadAll(std::span<ReadRequest> requests) { DoReadAll(requests, nullptr); }

  // The same, and keeps the device busy with more: `again` is called with each request that is done,
  // one at a time but maybe in another thread, and returns true after it has given the request
  // something else to read. With twice as many requests as the depth, the device has its reads to do
  // also while `again` is at work.
  using Again = std::function<bool(ReadRequest&)>;
  void ReadAll(std::span<ReadRequest> requests, const Again& again) {
    DoReadAll(requests, &again);
  }

  // How it is done, for logs and figures: "io_uring", "threads", "simulated"; "one by one" after
  // the machine has withdrawn io_uring.
  virtual std::string_view mechanism() const = 0;

 protected:
  // Whether the request, which is done, is to be read again.
  static bool IsAgain(const Again* again, ReadRequest& request) {
    return again != nullptr && (*again)(request);
  }

 private:
  virtual void DoReadAll(std::span<ReadRequest> requests, const Again* again) = 0;
};

}  // namespace siltfs
