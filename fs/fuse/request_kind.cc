#include "fs/fuse/request_kind.h"

#include <fcntl.h>
#include <linux/fuse.h>

#include <cstring>
#include <optional>

namespace siltfs::fuse {
namespace {

// Larger requests are not quick.
constexpr size_t kQuickWriteBytes = 64U << 10;
constexpr size_t kQuickReadBytes = 64U << 10;

template <typename Arguments>
std::optional<Arguments> ArgumentsOf(ByteView message) {
  Arguments arguments;
  if (message.size() < sizeof(fuse_in_header) + sizeof arguments) return std::nullopt;
  std::memcpy(&arguments, message.data() + sizeof(fuse_in_header), sizeof arguments);
  return arguments;
}

}  // namespace

RequestPace PaceOf(ByteView message) {
  const auto quick_if = [](bool condition) {
    return condition ? RequestPace::kQuick : RequestPace::kSlow;
  };
  fuse_in_header header;
  if (message.size() < sizeof header) return RequestPace::kSlow;
  std::memcpy(&header, message.data(), sizeof header);
  switch (header.opcode) {
    case FUSE_SETATTR: {
      const auto change = ArgumentsOf<fuse_setattr_in>(message);
      return quick_if(change && (change->valid & FATTR_SIZE) == 0);
    }
    case FUSE_RELEASE: {  // of a writer, it folds the file
      const auto release = ArgumentsOf<fuse_release_in>(message);
      const bool reader = release && (release->flags & O_ACCMODE) == O_RDONLY;
      return reader ? RequestPace::kQuick : RequestPace::kUnawaited;
    }
    case FUSE_WRITE:
      return quick_if(message.size() <= kQuickWriteBytes);
    case FUSE_READ: {
      const auto read = ArgumentsOf<fuse_read_in>(message);
      const bool small = read && read->size <= kQuickReadBytes;
      return small ? RequestPace::kUncertain : RequestPace::kSlow;
    }
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_SYNCFS:
    case FUSE_FALLOCATE:
    case FUSE_COPY_FILE_RANGE:
    case FUSE_LSEEK:
    case FUSE_INIT:
    case FUSE_DESTROY:
      return RequestPace::kSlow;
    default:
      return RequestPace::kQuick;
  }
}

}  // namespace siltfs::fuse
