// Tests statfs(2). It reports the space of the disk below the store, so no other program may use
// that disk (on_a_mount.sh --disk).
//
// Fsynced data may take space twice for a while, because the metadata's log may hold it in addition
// to the segments. The tests therefore allow a difference.
#include <sys/statvfs.h>

#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr double kAllowance = 32 << 20;

struct statvfs SpaceOf(const std::string& path) {
  struct statvfs space = {};
  if (statvfs(path.c_str(), &space) != 0) throw std::runtime_error("statvfs " + path);
  return space;
}

double FreeBytes(const std::string& path) {
  const struct statvfs space = SpaceOf(path);
  return static_cast<double>(space.f_bfree) * static_cast<double>(space.f_frsize);
}

void WriteNoise(const std::string& path, uint64_t seed, size_t size) {
  Bytes noise(size);
  Random(seed).Fill(noise);
  const Descriptor file(path, O_WRONLY | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, noise) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
}

TEST_CASE_METHOD(OnTheFileSystem, "The numbers of statfs are plausible", "[.space]") {
  REQUIRE(WriteFile(Path("file"), "") == 0);
  const struct statvfs space = SpaceOf(Path("file"));
  CHECK(space.f_namemax == 255);
  CHECK(space.f_frsize >= 512);
  CHECK(space.f_blocks > 0);
  CHECK(space.f_bfree > 0);
  CHECK(space.f_bfree <= space.f_blocks);
  CHECK(space.f_bavail <= space.f_bfree);
  CHECK(space.f_ffree <= space.f_files);
  CHECK(space.f_ffree > 0);
  CHECK(SpaceOf(directory.path()).f_blocks == space.f_blocks);
}

TEST_CASE_METHOD(OnTheFileSystem, "Free space shrinks by the stored bytes", "[.space]") {
  constexpr size_t kSize = 128 << 20;
  // The first write also creates files that the store creates only once.
  WriteNoise(Path("first"), 1, 1 << 20);
  const double before = FreeBytes(directory.path());
  WriteNoise(Path("noise"), 2, kSize);
  const double taken = before - FreeBytes(directory.path());
  CHECK(taken > 0.95 * kSize);
  CHECK(taken < 1.05 * kSize + kAllowance);
}

TEST_CASE_METHOD(OnTheFileSystem, "A second copy takes next to no space", "[.space][siltfs]") {
  constexpr size_t kSize = 96 << 20;
  WriteNoise(Path("original"), 3, kSize);
  const double before = FreeBytes(directory.path());
  WriteNoise(Path("copy"), 3, kSize);
  const double taken = before - FreeBytes(directory.path());
  CHECK(taken < kAllowance);
}

}  // namespace
}  // namespace siltfs::testing
