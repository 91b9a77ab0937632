#include "fs/fuse/kernel_extensions.h"

#include <sys/uio.h>
#include <unistd.h>

#include "fs/fuse/handler_context.h"

namespace siltfs::fuse {
namespace {

thread_local RequestNotes current_request;
thread_local MutableByteView current_reply_area;

RingTransport& RingsOf(void* user_data) { return static_cast<HandlerContext*>(user_data)->rings; }

ssize_t ReadRequest(int fd, void* buffer, size_t size, void* user_data) {
  const ssize_t count = read(fd, buffer, size);
  if (count <= 0) return count;
  current_reply_area = {};
  current_request = TranslateRequest({static_cast<uint8_t*>(buffer), static_cast<size_t>(count)});
  if ((current_request.offers & kRingOffer) != 0 && !RingsOf(user_data).Prepare()) {
    current_request.offers &= ~kRingOffer;
  }
  return count;
}

// Accepts the offers of INIT. Afterwards, the kernel waits for the rings if they were among them.
ssize_t WriteInitReply(int fd, iovec* parts, int count, RingTransport& rings) {
  const MutableByteView reply(static_cast<uint8_t*>(parts[1].iov_base), parts[1].iov_len);
  uint64_t offers = current_request.offers;
  if ((offers & kRingOffer) != 0 && !rings.Fits(LargestPayload(reply))) offers &= ~kRingOffer;
  AcceptOffers(reply, offers);
  const ssize_t written = writev(fd, parts, count);
  if (written >= 0 && (offers & kRingOffer) != 0) rings.Start(fd);
  return written;
}

// `parts` are a header and, unless the reply is an error, a body.
ssize_t WriteReply(int fd, iovec* parts, int count, void* user_data) {
  RingTransport& rings = RingsOf(user_data);
  if (current_request.offers != 0 && count > 1) return WriteInitReply(fd, parts, count, rings);
  if (const auto taken = rings.Reply({parts, static_cast<size_t>(count)})) return *taken;
  return writev(fd, parts, count);
}

}  // namespace

bool ListenToKernel(fuse_session* session, int device) {
  fuse_custom_io io = {};
  io.read = ReadRequest;
  io.writev = WriteReply;
  return fuse_session_custom_io(session, &io, device) == 0;
}

void AnswerRingRequest(fuse_session* session, MutableByteView message, MutableByteView reply_area) {
  current_request = TranslateRequest(message);
  current_reply_area = reply_area;
  fuse_buf buffer = {};
  buffer.mem = message.data();
  buffer.size = message.size();
  fuse_session_process_buf(session, &buffer);
  current_reply_area = {};
}

MutableByteView CurrentReplyArea() { return current_reply_area; }

const RequestNotes& CurrentRequest() { return current_request; }

}  // namespace siltfs::fuse
