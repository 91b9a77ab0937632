// How long requests may take, by their raw bytes.
#include "fs/fuse/request_kind.h"

#include <fcntl.h>
#include <linux/fuse.h>

#include <string>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using fuse::PaceOf;
using fuse::RequestPace;

template <typename Arguments>
RequestPace Pace(uint32_t opcode, const Arguments& arguments, size_t more = 0) {
  fuse_in_header header = {};
  header.opcode = opcode;
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  text.append(reinterpret_cast<const char*>(&arguments), sizeof arguments);
  text.append(more, 'x');
  return PaceOf(AsBytes(text));
}

RequestPace Pace(uint32_t opcode) { return Pace(opcode, uint64_t{0}); }

}  // namespace

TEST_CASE("Requests about names and attributes are quick") {
  for (const uint32_t opcode : {FUSE_LOOKUP, FUSE_GETATTR, FUSE_CREATE, FUSE_OPEN, FUSE_UNLINK,
                                FUSE_READDIRPLUS, FUSE_GETXATTR, FUSE_FORGET, FUSE_RENAME2}) {
    CAPTURE(opcode);
    CHECK(Pace(opcode) == RequestPace::kQuick);
  }
}

TEST_CASE("Requests that wait for the device are slow") {
  for (const uint32_t opcode : {FUSE_FSYNC, FUSE_FSYNCDIR, FUSE_SYNCFS, FUSE_FALLOCATE,
                                FUSE_COPY_FILE_RANGE, FUSE_LSEEK, FUSE_INIT, FUSE_DESTROY}) {
    CAPTURE(opcode);
    CHECK(Pace(opcode) == RequestPace::kSlow);
  }
}

TEST_CASE("A new size makes SETATTR slow") {
  fuse_setattr_in change = {};
  change.valid = FATTR_MODE | FATTR_MTIME;
  CHECK(Pace(FUSE_SETATTR, change) == RequestPace::kQuick);
  change.valid = FATTR_SIZE;
  CHECK(Pace(FUSE_SETATTR, change) == RequestPace::kSlow);
}

TEST_CASE("No program waits for the RELEASE of a writer; that of a reader is quick") {
  fuse_release_in release = {};
  release.flags = O_RDONLY | O_CLOEXEC;
  CHECK(Pace(FUSE_RELEASE, release) == RequestPace::kQuick);
  for (const uint32_t flags : {O_WRONLY, O_RDWR}) {
    release.flags = flags;
    CHECK(Pace(FUSE_RELEASE, release) == RequestPace::kUnawaited);
  }
}

TEST_CASE("Large reads and writes are slow, and small reads depend on the cache") {
  fuse_read_in read = {};
  read.size = 4096;
  CHECK(Pace(FUSE_READ, read) == RequestPace::kUncertain);
  read.size = 1 << 20;
  CHECK(Pace(FUSE_READ, read) == RequestPace::kSlow);
  CHECK(Pace(FUSE_WRITE, fuse_write_in{}, 4096) == RequestPace::kQuick);
  CHECK(Pace(FUSE_WRITE, fuse_write_in{}, 128 << 10) == RequestPace::kSlow);
}

TEST_CASE("A request that is too short is never quick by its arguments") {
  CHECK(PaceOf({}) == RequestPace::kSlow);
  CHECK(Pace(FUSE_SETATTR) == RequestPace::kSlow);
  CHECK(Pace(FUSE_READ) == RequestPace::kSlow);
  CHECK(Pace(FUSE_RELEASE) == RequestPace::kUnawaited);
}

}  // namespace siltfs::testing
