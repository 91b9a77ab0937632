// A superblock that was written when the format became final. The current code must read it, and
// write it with the same bytes.
//
// `superblock_test "[write-golden]"` rewrites the file. Use it only for a new format version, with
// a new name.
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "tests/store/superblock/superblock_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

const std::string kPath = JoinPath(SILTFS_GOLDEN_DIRECTORY, "superblock-version-1");

}  // namespace

TEST_CASE("A superblock of the final format is read as it was written, and written the same") {
  std::string bytes = Must(ReadWholeFile(*NewPosixEnv(), kPath, kSuperblockSize));
  CHECK(Must(DecodeSuperblock(AsBytes(bytes))) == MakeSuperblock());
  CHECK(EncodeSuperblock(MakeSuperblock()) == bytes);
}

TEST_CASE("Write the golden superblock again", "[.][write-golden]") {
  REQUIRE_OK(ReplaceFile(*NewPosixEnv(), kPath, AsBytes(EncodeSuperblock(MakeSuperblock()))));
}
