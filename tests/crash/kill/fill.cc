#include "tests/crash/kill/fill.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "store/base/random.h"
#include "store/env/posix_descriptor.h"
#include "tests/crash/kill/failure.h"

namespace siltfs::killtest {
namespace {

constexpr uint64_t kPieceBytes = 1u << 20;

// Generates the bytes of a file and passes them to `use` piece by piece.
void ForEachPiece(uint64_t seed, uint64_t size, const std::function<void(ByteView)>& use) {
  Random random(seed);
  Bytes piece;
  for (uint64_t done = 0; done < size; done += piece.size()) {
    piece.resize(std::min(kPieceBytes, size - done));
    random.Fill(piece);
    use(piece);
  }
}

size_t ReadFully(int file, MutableByteView out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = read(file, out.data() + done, out.size() - done);
    if (count < 0) throw SystemFailure("read");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

}  // namespace

std::string Fill::PathOf(uint64_t file) const { return fmt::format("{}/{:05}", directory_, file); }

uint64_t Fill::SizeOf(uint64_t file) const {
  return std::min(kFileBytes, bytes_ - file * kFileBytes);
}

void Fill::Write() const {
  if (mkdir(directory_.c_str(), 0755) != 0) throw SystemFailure("mkdir " + directory_);
  for (uint64_t number = 0; number < files(); ++number) {
    const std::string path = PathOf(number);
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.valid()) throw SystemFailure("open " + path);
    ForEachPiece(seed_ + number, SizeOf(number), [&](ByteView piece) {
      if (write(file.get(), piece.data(), piece.size()) != static_cast<ssize_t>(piece.size()))
        throw SystemFailure("write " + path);
    });
    if (fsync(file.get()) != 0) throw SystemFailure("fsync " + path);
  }
}

uint64_t Fill::Verify(uint64_t number) const {
  const std::string path = PathOf(number);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw SystemFailure("open " + path);
  Bytes there(kPieceBytes);
  uint64_t offset = 0;
  ForEachPiece(seed_ + number, SizeOf(number), [&](ByteView piece) {
    const MutableByteView found = MutableByteView(there).first(piece.size());
    if (ReadFully(file.get(), found) != piece.size() ||
        !std::equal(piece.begin(), piece.end(), found.begin())) {
      throw Failure(
          fmt::format("{}: differs between {} and {}", path, offset, offset + piece.size()));
    }
    offset += piece.size();
  });
  if (ReadFully(file.get(), MutableByteView(there).first(1)) != 0)
    throw Failure(path + ": is longer than written");
  return offset;
}

}  // namespace siltfs::killtest
