// Requests and replies in the memory of a slot, as the kernel writes and reads them. Needs an
// io_uring, but no mount.
#include <linux/fuse.h>

#include <cstring>
#include <string>

#include "fs/rings/kernel_ring.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using fuse::KernelRing;
using fuse::RingHeaders;
using fuse::RingSlot;

constexpr size_t kPayloadBytes = 8192;

// A ring with one slot, and the place where the kernel writes.
class OneSlot {
 public:
  OneSlot() {
    auto made = KernelRing::Make(/*number=*/3, {0}, kPayloadBytes);
    REQUIRE_OK(made);
    ring_ = std::move(*made);
  }
  RingSlot& slot() { return ring_->slots()[0]; }
  // The headers lie in the page in front of the payload.
  RingHeaders& headers() {
    return *reinterpret_cast<RingHeaders*>(slot().reply_area().data() - 4096);
  }
  void Deliver(uint32_t length, const std::string& arguments, const std::string& payload) {
    fuse_in_header header = {};
    header.len = length;
    header.opcode = FUSE_LOOKUP;
    header.unique = 77;
    std::memcpy(headers().in_out, &header, sizeof header);
    std::memcpy(headers().arguments, arguments.data(),
                std::min(arguments.size(), sizeof headers().arguments));
    std::memcpy(slot().reply_area().data(), payload.data(), payload.size());
    headers().slot.payload_bytes = static_cast<uint32_t>(payload.size());
  }

 private:
  std::unique_ptr<KernelRing> ring_;
};

std::string TextOf(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

fuse_out_header ReplyIn(OneSlot& one) {
  fuse_out_header header;
  std::memcpy(&header, one.headers().in_out, sizeof header);
  return header;
}

iovec Part(const void* data, size_t size) { return {const_cast<void*>(data), size}; }

}  // namespace

TEST_CASE("A request is put together from header, arguments and payload") {
  OneSlot one;
  const std::string arguments(24, 'a');
  one.Deliver(sizeof(fuse_in_header) + 24 + 5, arguments, "name\n");
  const MutableByteView message = one.slot().Message();
  REQUIRE(message.size() == sizeof(fuse_in_header) + 24 + 5);
  CHECK(TextOf(message.subspan(sizeof(fuse_in_header))) == arguments + "name\n");
  CHECK(one.slot().request_number() == 77);
  CHECK(one.slot().ring_number() == 3);
}

TEST_CASE("A request whose lengths contradict each other is empty") {
  OneSlot one;
  const auto message_of = [&](uint32_t length, uint32_t payload) {
    one.Deliver(length, "", "");
    one.headers().slot.payload_bytes = payload;
    return one.slot().Message().size();
  };
  constexpr uint32_t kHeader = sizeof(fuse_in_header);
  CHECK(message_of(kHeader, 0) == kHeader);
  CHECK(message_of(kHeader + 128, 0) == kHeader + 128);
  CHECK(message_of(kHeader + 129, 0) == 0);  // more arguments than there is room for
  CHECK(message_of(kHeader - 1, 0) == 0);
  CHECK(message_of(0, 0) == 0);
  CHECK(message_of(kHeader + 4, 5) == 0);
  CHECK(message_of(kHeader + kPayloadBytes, kPayloadBytes) == kHeader + kPayloadBytes);
  CHECK(message_of(kHeader + kPayloadBytes + 1, kPayloadBytes + 1) == 0);
  CHECK(message_of(UINT32_MAX, UINT32_MAX) == 0);
}

TEST_CASE("Any bytes give a message inside the slot, or none") {
  OneSlot one;
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    one.Deliver(static_cast<uint32_t>(random.Below(3 * kPayloadBytes)), "", "");
    one.headers().slot.payload_bytes = static_cast<uint32_t>(random.Below(2 * kPayloadBytes));
    const MutableByteView message = one.slot().Message();
    if (message.empty()) continue;
    const MutableByteView area = one.slot().reply_area();
    REQUIRE(message.data() >= reinterpret_cast<uint8_t*>(&one.headers() + 1));
    REQUIRE(message.data() + message.size() <= area.data() + area.size());
  }
}

TEST_CASE("A reply is stored with its body") {
  OneSlot one;
  fuse_out_header header = {.len = 0, .error = 0, .unique = 77};
  const iovec parts[] = {Part(&header, sizeof header), Part("one", 3), Part("two", 3)};
  one.slot().SetReply(parts);
  CHECK(ReplyIn(one).error == 0);
  CHECK(ReplyIn(one).unique == 77);
  CHECK(ReplyIn(one).len == sizeof header + 6);
  CHECK(one.headers().slot.payload_bytes == 6);
  CHECK(TextOf(one.slot().reply_area().first(6)) == "onetwo");
}

TEST_CASE("A body that was built in the slot stays there") {
  OneSlot one;
  fuse_out_header header = {.len = 0, .error = 0, .unique = 77};
  std::memcpy(one.slot().reply_area().data(), "built here", 10);
  const iovec parts[] = {Part(&header, sizeof header), Part(one.slot().reply_area().data(), 10)};
  one.slot().SetReply(parts);
  CHECK(TextOf(one.slot().reply_area().first(10)) == "built here");
  CHECK(one.headers().slot.payload_bytes == 10);
}

TEST_CASE("A body that does not fit becomes an error without a body") {
  OneSlot one;
  const std::string large(kPayloadBytes, 'x');
  fuse_out_header header = {.len = 0, .error = 0, .unique = 77};
  const iovec parts[] = {Part(&header, sizeof header), Part(large.data(), large.size()),
                         Part("y", 1)};
  one.slot().SetReply(parts);
  CHECK(ReplyIn(one).error == -EIO);
  CHECK(ReplyIn(one).len == sizeof header);
  CHECK(one.headers().slot.payload_bytes == 0);
}

}  // namespace siltfs::testing
