#include "fs/fuse/kernel_extensions.h"

#include <sys/uio.h>
#include <unistd.h>

namespace siltfs::fuse {
namespace {

thread_local RequestNotes current_request;

ssize_t ReadRequest(int fd, void* buffer, size_t size, void* /*user_data*/) {
  const ssize_t count = read(fd, buffer, size);
  if (count > 0) {
    current_request = TranslateRequest({static_cast<uint8_t*>(buffer), static_cast<size_t>(count)});
  }
  return count;
}

// `parts` are a header and, unless the reply is an error, a body.
ssize_t WriteReply(int fd, iovec* parts, int count, void* /*user_data*/) {
  if (current_request.offers != 0 && count > 1) {
    AcceptOffers({static_cast<uint8_t*>(parts[1].iov_base), parts[1].iov_len},
                 current_request.offers);
  }
  return writev(fd, parts, count);
}

}  // namespace

bool ListenToKernel(fuse_session* session) {
  fuse_custom_io io = {};
  io.read = ReadRequest;
  io.writev = WriteReply;
  return fuse_session_custom_io(session, &io, fuse_session_fd(session)) == 0;
}

const RequestNotes& CurrentRequest() { return current_request; }

}  // namespace siltfs::fuse
