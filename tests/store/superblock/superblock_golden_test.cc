// A superblock as it was written when the format was settled: read, and written byte for byte.
//
// `superblock_test "[write-golden]"` writes the file anew. That is for a new format version, under
// a new name.
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "tests/store/superblock/superblock_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

const std::string kPath = JoinPath(SILTFS_GOLDEN_DIRECTORY, "superblock-version-1");

}  // namespace

TEST_CASE(
    "A superblock of the settled format is read to what was written, and today's bytes are the "
    "same") {
  std::string bytes = Must(ReadWholeFile(*NewPosixEnv(), kPath, kSuperblockSize));
  CHECK(Must(DecodeSuperblock(AsBytes(bytes))) == MakeSuperblock());
  CHECK(EncodeSuperblock(MakeSuperblock()) == bytes);
}

TEST_CASE("Write the golden superblock anew", "[.][write-golden]") {
  REQUIRE_OK(ReplaceFile(*NewPosixEnv(), kPath, AsBytes(EncodeSuperblock(MakeSuperblock()))));
}
