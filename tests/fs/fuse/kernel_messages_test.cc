// Raw kernel requests: whole, truncated and malformed.
#include "fs/fuse/kernel_messages.h"

#include <linux/fuse.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using fuse::AcceptOffers;
using fuse::RequestNotes;
using fuse::TranslateRequest;

constexpr uint32_t kStatx = 52;
constexpr size_t kStatxArgumentBytes = 24;

Bytes Message(uint32_t opcode, const std::string& arguments) {
  fuse_in_header header = {};
  header.opcode = opcode;
  header.unique = 77;
  const std::string text =
      std::string(reinterpret_cast<const char*>(&header), sizeof header) + arguments;
  return Bytes(text.begin(), text.end());
}

template <typename Arguments>
Bytes Request(uint32_t opcode, const Arguments& arguments, const std::string& rest = {}) {
  return Message(opcode,
                 std::string(reinterpret_cast<const char*>(&arguments), sizeof arguments) + rest);
}

uint32_t OpcodeOf(const Bytes& message) {
  fuse_in_header header;
  std::memcpy(&header, message.data(), sizeof header);
  REQUIRE(header.unique == 77);
  return header.opcode;
}

Privileges WritePrivileges(uint32_t flags) {
  fuse_write_in arguments = {};
  arguments.write_flags = flags;
  Bytes message = Request(FUSE_WRITE, arguments, "data");
  return TranslateRequest(message).privileges;
}

WriteTimes TimesOfWrite(uint32_t flags) {
  fuse_write_in arguments = {};
  arguments.write_flags = flags;
  Bytes message = Request(FUSE_WRITE, arguments, "data");
  return TranslateRequest(message).times;
}

uint32_t Offers(uint32_t flags) {
  fuse_init_in arguments = {};
  arguments.flags = flags;
  Bytes message = Request(FUSE_INIT, arguments);
  return TranslateRequest(message).offers;
}

}  // namespace

TEST_CASE("STATX becomes GETATTR, with a note of the original request") {
  Bytes message = Message(kStatx, std::string(kStatxArgumentBytes, '\0'));
  Bytes cut(message.begin(), message.end() - 1);
  CHECK(TranslateRequest(message).wants_statx);
  CHECK(OpcodeOf(message) == FUSE_GETATTR);
  CHECK_FALSE(TranslateRequest(cut).wants_statx);
  CHECK(OpcodeOf(cut) == kStatx);
}

TEST_CASE("TMPFILE becomes CREATE if a terminated name follows") {
  Bytes message = Request(FUSE_TMPFILE, fuse_create_in{}, std::string("/\0", 2));
  CHECK(TranslateRequest(message).temporary_file);
  CHECK(OpcodeOf(message) == FUSE_CREATE);
  Bytes nameless = Request(FUSE_TMPFILE, fuse_create_in{});
  CHECK_FALSE(TranslateRequest(nameless).temporary_file);
  CHECK(OpcodeOf(nameless) == FUSE_TMPFILE);
  Bytes endless = Request(FUSE_TMPFILE, fuse_create_in{}, "name");
  CHECK_FALSE(TranslateRequest(endless).temporary_file);
  CHECK(OpcodeOf(endless) == FUSE_TMPFILE);
}

TEST_CASE("The privileges that a write removes depend on its flags") {
  CHECK(WritePrivileges(0) == Privileges::kDropCapability);
  CHECK(WritePrivileges(FUSE_WRITE_KILL_SUIDGID) == Privileges::kDropAll);
  CHECK(WritePrivileges(FUSE_WRITE_CACHE) == Privileges::kKeep);
  CHECK(WritePrivileges(FUSE_WRITE_CACHE | FUSE_WRITE_KILL_SUIDGID) == Privileges::kDropAll);
  CHECK(WritePrivileges(FUSE_WRITE_LOCKOWNER) == Privileges::kDropCapability);
  CHECK(TimesOfWrite(0) == WriteTimes::kNow);
  CHECK(TimesOfWrite(FUSE_WRITE_KILL_SUIDGID) == WriteTimes::kNow);
  CHECK(TimesOfWrite(FUSE_WRITE_CACHE) == WriteTimes::kMayKeep);
}

TEST_CASE("Offers that libfuse ignores are accepted if the kernel made them") {
  CHECK(Offers(FUSE_HANDLE_KILLPRIV_V2 | FUSE_WRITEBACK_CACHE) == FUSE_HANDLE_KILLPRIV_V2);
  CHECK(Offers(FUSE_PARALLEL_DIROPS) == FUSE_PARALLEL_DIROPS);
  CHECK(Offers(~(FUSE_HANDLE_KILLPRIV_V2 | FUSE_PARALLEL_DIROPS)) == 0);
  fuse_init_out reply = {};
  reply.flags = FUSE_WRITEBACK_CACHE;
  reply.max_write = 4096;
  AcceptOffers({reinterpret_cast<uint8_t*>(&reply), sizeof reply}, FUSE_HANDLE_KILLPRIV_V2);
  CHECK(reply.flags == (FUSE_WRITEBACK_CACHE | FUSE_HANDLE_KILLPRIV_V2));
  CHECK(reply.max_write == 4096);
  fuse_init_out cut = {};
  AcceptOffers({reinterpret_cast<uint8_t*>(&cut), offsetof(fuse_init_out, flags) + 3},
               FUSE_PARALLEL_DIROPS);
  CHECK(cut.flags == 0);
}

TEST_CASE("The offer of rings is read and accepted") {
  fuse_init_in offered = {};
  offered.flags = FUSE_INIT_EXT;
  offered.flags2 = 1U << 9;
  Bytes message = Request(FUSE_INIT, offered);
  CHECK(TranslateRequest(message).offers == fuse::kRingOffer);
  fuse_init_out reply = {};
  AcceptOffers({reinterpret_cast<uint8_t*>(&reply), sizeof reply}, fuse::kRingOffer);
  CHECK(reply.flags == FUSE_INIT_EXT);
  CHECK(reply.flags2 == 1U << 9);
}

TEST_CASE("The largest payload follows from the reply to INIT") {
  fuse_init_out reply = {};
  const auto largest = [&](size_t size = sizeof(fuse_init_out)) {
    return fuse::LargestPayload({reinterpret_cast<const uint8_t*>(&reply), size});
  };
  CHECK(largest() == 32 * 4096);
  reply.max_write = 1 << 20;
  CHECK(largest() == 1 << 20);
  reply.max_pages = 512;
  CHECK(largest() == 1 << 20);  // without FUSE_MAX_PAGES, the field is meaningless
  reply.flags = FUSE_MAX_PAGES;
  CHECK(largest() == 2 << 20);
  CHECK(largest(offsetof(fuse_init_out, max_pages)) == 1 << 20);
  CHECK(largest(0) == 32 * 4096);
}

TEST_CASE("Offers beyond the first 32 are read and accepted if there is a second word") {
  fuse_init_in offered = {};
  offered.flags = FUSE_PARALLEL_DIROPS | FUSE_INIT_EXT;
  offered.flags2 = (1U << 4) | (1U << 5);
  Bytes message = Request(FUSE_INIT, offered);
  CHECK(TranslateRequest(message).offers ==
        (uint64_t{FUSE_PARALLEL_DIROPS} | fuse::kDirectMmapOffer));
  Bytes old(message.begin(),
            message.begin() + sizeof(fuse_in_header) + offsetof(fuse_init_in, flags2));
  CHECK(TranslateRequest(old).offers == FUSE_PARALLEL_DIROPS);
  offered.flags = FUSE_PARALLEL_DIROPS;  // without FUSE_INIT_EXT, later fields are meaningless
  message = Request(FUSE_INIT, offered);
  CHECK(TranslateRequest(message).offers == FUSE_PARALLEL_DIROPS);

  fuse_init_out reply = {};
  reply.flags2 = 1;
  AcceptOffers({reinterpret_cast<uint8_t*>(&reply), sizeof reply},
               FUSE_PARALLEL_DIROPS | fuse::kDirectMmapOffer);
  CHECK(reply.flags == (FUSE_PARALLEL_DIROPS | FUSE_INIT_EXT));
  CHECK(reply.flags2 == ((1U << 4) | 1));
  fuse_init_out cut = {};
  AcceptOffers({reinterpret_cast<uint8_t*>(&cut), offsetof(fuse_init_out, flags2) + 3},
               FUSE_PARALLEL_DIROPS | fuse::kDirectMmapOffer);
  CHECK(cut.flags == FUSE_PARALLEL_DIROPS);
  CHECK(cut.flags2 == 0);
}

TEST_CASE("Other requests stay unchanged") {
  Bytes message = Request(FUSE_LOOKUP, uint64_t{0}, std::string("name\0", 5));
  const Bytes before = message;
  const RequestNotes notes = TranslateRequest(message);
  CHECK(message == before);
  CHECK_FALSE((notes.wants_statx || notes.temporary_file || notes.offers != 0));
  CHECK(notes.privileges == Privileges::kKeep);
}

TEST_CASE("Truncated requests and arbitrary bytes are read within their bounds") {
  for (const uint32_t opcode : {uint32_t{FUSE_INIT}, uint32_t{FUSE_WRITE}, uint32_t{FUSE_TMPFILE},
                                kStatx, uint32_t{0xffffffff}}) {
    Bytes whole(200, 0xff);
    std::memcpy(whole.data() + offsetof(fuse_in_header, opcode), &opcode, sizeof opcode);
    for (size_t size = 0; size <= whole.size(); ++size) {
      Bytes message(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      message.shrink_to_fit();  // so that a sanitizer detects a read past the end
      TranslateRequest(message);
      CHECK(message.size() == size);
    }
  }
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    Bytes message(random.Below(120));
    for (uint8_t& byte : message) byte = static_cast<uint8_t>(random.Next());
    TranslateRequest(message);
    AcceptOffers(message, FUSE_PARALLEL_DIROPS | fuse::kDirectMmapOffer);
  }
}

}  // namespace siltfs::testing
