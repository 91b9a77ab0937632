// The space of the simulated device: which calls take it and which release it.
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

constexpr uint64_t kPage = 4096;

struct SmallDisk {
  SimEnv env;
  SmallDisk() { env.SetCapacity(10 * kPage); }
  uint64_t FreePages() {
    auto space = env.GetDiskSpace("/");
    REQUIRE_OK(space);
    return space->free_bytes / kPage;
  }
  std::unique_ptr<File> Create(const std::string& path) {
    auto file = env.OpenFile(path, {.mode = OpenMode::kCreate});
    REQUIRE_OK(file);
    return std::move(*file);
  }
};

TEST_CASE("a write that does not fit writes as much as fits and fails") {
  SmallDisk disk;
  auto file = disk.Create("/f");
  REQUIRE_OK(file->Write(0, Bytes(8 * kPage, 1)));
  REQUIRE(disk.FreePages() == 2);
  REQUIRE_CODE(file->Write(8 * kPage, Bytes(3 * kPage, 2)), kNoSpace);
  REQUIRE(*file->Size() == 10 * kPage);
  REQUIRE(disk.FreePages() == 0);
  REQUIRE_OK(file->Write(0, Bytes(10 * kPage, 3)));  // existing bytes can be overwritten
}

TEST_CASE("truncation and removal release space, removal once the file is closed") {
  SmallDisk disk;
  auto file = disk.Create("/f");
  REQUIRE_OK(file->Write(0, Bytes(8 * kPage, 1)));
  REQUIRE_OK(file->Truncate(3 * kPage + 1));
  REQUIRE(disk.FreePages() == 6);
  REQUIRE_OK(disk.env.RemoveFile("/f"));
  REQUIRE(disk.FreePages() == 6);
  file.reset();
  REQUIRE(disk.FreePages() == 10);
}

TEST_CASE("a file replaced by a rename releases its space") {
  SmallDisk disk;
  REQUIRE_OK(disk.Create("/old")->Write(0, Bytes(5 * kPage, 1)));
  REQUIRE_OK(disk.Create("/new")->Write(0, Bytes(1 * kPage, 1)));
  REQUIRE_OK(disk.env.Rename("/new", "/old"));
  REQUIRE(disk.FreePages() == 9);
}

TEST_CASE("holes take no space") {
  SmallDisk disk;
  auto file = disk.Create("/f");
  REQUIRE_OK(file->Write(1'000 * kPage, Bytes(1, 1)));
  REQUIRE(disk.FreePages() == 9);
  REQUIRE(disk.env.GetFileInfo("/f").value().allocated_bytes == kPage);
}

TEST_CASE("claimed space serves only its file, and truncation releases it in part") {
  SmallDisk disk;
  auto reserve = disk.Create("/reserve");
  auto file = disk.Create("/f");
  REQUIRE_OK(reserve->Preallocate(6 * kPage));
  REQUIRE_CODE(reserve->Preallocate(11 * kPage), kNoSpace);
  REQUIRE(disk.FreePages() == 4);
  REQUIRE_CODE(file->Write(0, Bytes(5 * kPage, 1)), kNoSpace);
  REQUIRE(disk.FreePages() == 0);
  REQUIRE_OK(reserve->Write(0, Bytes(2 * kPage, 1)));  // within the claimed space
  REQUIRE(disk.FreePages() == 0);
  REQUIRE_OK(reserve->Truncate(3 * kPage));
  REQUIRE(disk.FreePages() == 3);
  REQUIRE_OK(file->Write(4 * kPage, Bytes(3 * kPage, 1)));
}

TEST_CASE("after a power cut only surviving files take space") {
  SmallDisk disk;
  auto kept = disk.Create("/kept");
  REQUIRE_OK(kept->Write(0, Bytes(2 * kPage, 1)));
  REQUIRE_OK(kept->Preallocate(3 * kPage));
  REQUIRE_OK(kept->Sync());
  REQUIRE_OK(disk.env.SyncDirectory("/"));
  REQUIRE_OK(kept->Write(2 * kPage, Bytes(4 * kPage, 1)));
  auto lost = disk.Create("/lost");
  REQUIRE_OK(lost->Write(0, Bytes(2 * kPage, 1)));
  REQUIRE(disk.FreePages() == 2);
  disk.env.PowerCut();
  REQUIRE(disk.FreePages() == 7);
}

TEST_CASE("a file of 256 MiB is held without a copy of its synced bytes") {
  SimEnv env;
  auto file = env.OpenFile("/f", {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  const Bytes block(1 << 20, 'b');
  for (uint64_t i = 0; i < 256; ++i) {
    REQUIRE_OK((*file)->Write(i << 20, block));
    REQUIRE_OK((*file)->Sync());
  }
  REQUIRE_OK(env.SyncDirectory("/"));
  env.PowerCut();
  REQUIRE(env.GetFileInfo("/f").value().size == 256 << 20);
}

}  // namespace
}  // namespace siltfs
