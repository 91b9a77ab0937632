// The reserve of disk space: its parts, its release and its refill.
#include "store/env/space_reserve.h"

#include <atomic>
#include <thread>
#include <vector>

#include "store/env/reserve_env.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPiece = 4 * kPage;
constexpr uint64_t kOpening = kPiece * 5 / 2;
constexpr uint64_t kMetadata = kPiece * 2;
using Use = SpaceReserve::Use;
using Phase = SpaceReserve::Phase;

// A disk of 100 pages, with a reserve of 8 pieces of 4 pages, and 10 spare pages.
struct ReservedDisk {
  SimEnv disk;
  std::unique_ptr<SpaceReserve> reserve;
  uint64_t metadata_bytes = 0;

  explicit ReservedDisk(uint64_t for_metadata = 0) : metadata_bytes(for_metadata) {
    disk.SetCapacity(100 * kPage);
    Open();
  }
  void Open() {
    auto opened = SpaceReserve::Open(disk, {.store = "/",
                                            .directory = "/reserve",
                                            .piece_bytes = kPiece,
                                            .pieces = 8,
                                            .spare_bytes = 10 * kPage,
                                            .nearly_full_bytes = 5 * kPage,
                                            .opening_bytes = kOpening,
                                            .metadata_bytes = metadata_bytes});
    REQUIRE_OK(opened);
    reserve = std::move(*opened);
  }
  uint64_t AvailablePages() {
    auto space = disk.GetDiskSpace("/");
    REQUIRE_OK(space);
    return space->available_bytes / kPage;
  }
  // Grows a neighbor's file until `pages` pages are free.
  void FillAllBut(uint64_t pages) {
    auto file = disk.OpenFile("/neighbour", {.mode = OpenMode::kCreate});
    REQUIRE_OK(file);
    REQUIRE(AvailablePages() >= pages);
    const uint64_t size = (AvailablePages() - pages) * kPage;
    REQUIRE_OK((*file)->Write(0, Bytes(size, 1)));
  }
  void RemoveNeighbour() { REQUIRE_OK(disk.RemoveFile("/neighbour")); }
};

}  // namespace

TEST_CASE("a reserve is claimed at the first check for room, and other files do not get it") {
  ReservedDisk at;
  REQUIRE(at.reserve->bytes() == 0);
  REQUIRE_OK(at.reserve->CheckRoom(1));
  REQUIRE(at.reserve->bytes() == 8 * kPiece);
  REQUIRE(at.AvailablePages() == 100 - 32);
  REQUIRE_FALSE(at.reserve->nearly_full());
  REQUIRE(at.reserve->Usable(68 * kPage) == 58 * kPage);
  REQUIRE(*SpaceReserve::BytesIn(at.disk, "/reserve") == 8 * kPiece);
  REQUIRE(*SpaceReserve::BytesIn(at.disk, "/elsewhere") == 0);
}

TEST_CASE("room excludes the reserve and the spare bytes") {
  ReservedDisk at;
  REQUIRE_OK(at.reserve->Fill());
  SECTION("nearly full") {
    at.FillAllBut(14);
    REQUIRE_OK(at.reserve->Fill());
    REQUIRE(at.reserve->nearly_full());
  }
  SECTION("to the last page") {
    at.FillAllBut(10);
    REQUIRE_OK(at.reserve->Fill());
    REQUIRE(at.reserve->Usable(10 * kPage) == 0);
  }
  SECTION("one page less") {
    at.FillAllBut(9);
    REQUIRE_CODE(at.reserve->Fill(), kNoSpace);
    REQUIRE(at.reserve->bytes() == 8 * kPiece);  // new data does not take it
    REQUIRE(at.reserve->nearly_full());
    // After the disk was found full, each call queries it.
    REQUIRE_CODE(at.reserve->CheckRoom(1), kNoSpace);
    at.RemoveNeighbour();
    REQUIRE_OK(at.reserve->CheckRoom(1));
  }
}

TEST_CASE("the disk is queried again after a number of accepted bytes") {
  ReservedDisk at;
  REQUIRE_OK(at.reserve->CheckRoom(1));
  at.FillAllBut(0);
  REQUIRE_OK(at.reserve->CheckRoom(1000));  // does not query the disk yet
  REQUIRE_CODE(at.reserve->CheckRoom(1u << 20), kNoSpace);
}

TEST_CASE("the part for opening the store is not given up") {
  ReservedDisk at;
  REQUIRE_OK(at.reserve->Fill());
  at.FillAllBut(0);
  REQUIRE(at.reserve->bytes_to_give() == 8 * kPiece);
  at.reserve->Enter(Phase::kInUse);
  REQUIRE(at.reserve->bytes_to_give() == 8 * kPiece - kOpening);
  for (int i = 0; i < 5; ++i) REQUIRE(at.reserve->GiveUpPiece());
  REQUIRE_FALSE(at.reserve->GiveUpPiece());  // the half piece that remains is kept
  REQUIRE(at.reserve->bytes() == 3 * kPiece);
  REQUIRE(at.reserve->bytes_to_give() == 3 * kPiece - kOpening);
  at.reserve->Enter(Phase::kClosing);
  for (int i = 0; i < 3; ++i) REQUIRE(at.reserve->GiveUpPiece());
  REQUIRE(at.reserve->bytes_to_give() == 0);
}

TEST_CASE("data leaves a part of the reserve to metadata") {
  ReservedDisk at(kMetadata);
  REQUIRE_OK(at.reserve->Fill());
  at.FillAllBut(0);
  const auto give_all = [&at](Use use) {
    while (at.reserve->GiveUpPiece(use)) continue;
    return at.reserve->bytes();
  };
  SECTION("while the store is opened, half of it") {
    CHECK(give_all(Use::kData) == kMetadata / 2);
    CHECK(give_all(Use::kMetadata) == 0);
  }
  SECTION("while it is in use, beside the part for opening") {
    at.reserve->Enter(Phase::kInUse);
    CHECK(at.reserve->bytes_to_give(Use::kData) == 8 * kPiece - kOpening - kMetadata);
    CHECK(at.reserve->bytes_to_give(Use::kMetadata) == 8 * kPiece - kOpening);
    CHECK(give_all(Use::kData) == 5 * kPiece);
    CHECK(give_all(Use::kMetadata) == 3 * kPiece);
  }
  SECTION("while it is closed, half of it") {
    at.reserve->Enter(Phase::kClosing);
    CHECK(give_all(Use::kData) == kMetadata / 2);
    CHECK(give_all(Use::kMetadata) == 0);
  }
}

TEST_CASE("space of removed files refills metadata's part of the reserve first") {
  ReservedDisk at(kMetadata);
  ReserveEnv data(at.disk, *at.reserve);
  ReserveEnv metadata(at.disk, *at.reserve, Use::kMetadata);
  REQUIRE_OK(at.reserve->Fill());
  at.FillAllBut(0);
  auto table = metadata.OpenFile("/table", {.mode = OpenMode::kCreate});
  REQUIRE_OK(table);
  CHECK(metadata.GetDiskSpace("/")->available_bytes == 8 * kPiece);
  CHECK(data.GetDiskSpace("/")->available_bytes == 0);
  REQUIRE_OK((*table)->Write(0, Bytes(8 * kPiece, 1)));
  CHECK(at.reserve->bytes() == 0);
  REQUIRE_OK((*table)->Close());
  REQUIRE_OK(metadata.RemoveFile("/table"));
  CHECK(at.reserve->bytes() == 5 * kPiece);  // includes the part for opening, in whole pieces
  CHECK(at.AvailablePages() * kPage == 3 * kPiece);
}

TEST_CASE("a write that finds the disk full gets as many pieces of the reserve as it needs") {
  ReservedDisk at;
  ReserveEnv env(at.disk, *at.reserve);
  REQUIRE_OK(at.reserve->Fill());
  auto file = env.OpenFile("/f", {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  at.FillAllBut(0);
  Bytes bytes(9 * kPage, 7);
  REQUIRE_OK((*file)->Write(0, bytes));
  REQUIRE(at.reserve->bytes() == 5 * kPiece);
  REQUIRE(at.AvailablePages() == 3);
  Bytes read(bytes.size());
  REQUIRE(*(*file)->Read(0, read) == bytes.size());
  REQUIRE(read == bytes);
  // New data is refused as soon as a piece was given up.
  REQUIRE_CODE(at.reserve->CheckRoom(1), kNoSpace);

  // This write needs more than the whole reserve.
  REQUIRE_CODE((*file)->Write(0, Bytes(60 * kPage, 7)), kNoSpace);
  REQUIRE(at.reserve->bytes() == 0);
  REQUIRE_FALSE(at.reserve->GiveUpPiece());
  REQUIRE_OK((*file)->Truncate(0));
  REQUIRE_OK((*file)->Write(0, bytes));

  // The freed space first refills the reserve. The rest is room for new data.
  at.RemoveNeighbour();
  REQUIRE_OK(at.reserve->CheckRoom(1));
  REQUIRE(at.reserve->bytes() == 8 * kPiece);
}

TEST_CASE("freed space refills the reserve before it serves new data") {
  ReservedDisk at;
  REQUIRE_OK(at.reserve->Fill());
  at.FillAllBut(0);
  for (int i = 0; i < 8; ++i) REQUIRE(at.reserve->GiveUpPiece());
  REQUIRE(at.AvailablePages() == 32);
  // 32 pages are free, and 10 of them must stay free, so there is room for five pieces.
  REQUIRE_CODE(at.reserve->Fill(), kNoSpace);
  REQUIRE(at.reserve->bytes() == 5 * kPiece);
  REQUIRE(at.AvailablePages() == 12);
  REQUIRE(at.reserve->Usable(12 * kPage) == 0);
}

TEST_CASE("failures other than kNoSpace are passed on, and cost no piece") {
  ReservedDisk at;
  ReserveEnv env(at.disk, *at.reserve);
  REQUIRE_OK(at.reserve->Fill());
  auto file = env.OpenFile("/f", {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  at.disk.FailCall({.calls = SimCall::kWrite, .code = StatusCode::kIoError});
  REQUIRE_CODE((*file)->Write(0, Bytes(10, 1)), kIoError);
  // A failed sync is not repeated.
  at.disk.FailCall({.calls = SimCall::kSync, .code = StatusCode::kNoSpace});
  REQUIRE_CODE((*file)->Sync(), kNoSpace);
  REQUIRE(at.reserve->bytes() == 8 * kPiece);
  at.disk.FailCall({.calls = SimCall::kInfo, .code = StatusCode::kIoError});
  REQUIRE_CODE(at.reserve->Fill(), kIoError);
  REQUIRE_OK(at.reserve->CheckRoom(1));
}

TEST_CASE("existing pieces are adopted, except those that claim nothing") {
  ReservedDisk at;
  REQUIRE_OK(at.reserve->Fill());
  REQUIRE_OK(at.disk.RemoveFile("/reserve/3"));
  REQUIRE_OK(at.disk.OpenFile("/reserve/3", {.mode = OpenMode::kCreate}));
  REQUIRE_OK(at.disk.OpenFile("/reserve/README", {.mode = OpenMode::kCreate}));
  at.Open();
  REQUIRE(at.reserve->bytes() == 7 * kPiece);
  REQUIRE_CODE(at.disk.GetFileInfo("/reserve/3"), kNotFound);
  REQUIRE_OK(at.disk.GetFileInfo("/reserve/README"));
  REQUIRE_OK(at.reserve->Fill());
  REQUIRE(at.reserve->bytes() == 8 * kPiece);
}

TEST_CASE("a closed store keeps a small part of the reserve, but all of it on a full disk") {
  ReservedDisk at;
  at.disk.SetCapacity(10'000 * kPage);
  const uint64_t piece = 1u << 20;
  auto opened = SpaceReserve::Open(at.disk, {.store = "/",
                                             .directory = "/big",
                                             .piece_bytes = piece,
                                             .pieces = 16,
                                             .spare_bytes = kPage});
  REQUIRE_OK(opened);
  SpaceReserve& reserve = **opened;
  REQUIRE_OK(reserve.Fill());
  REQUIRE(reserve.bytes() == 16 * piece);
  SECTION("room") {
    reserve.KeepOnly(piece * 5 / 2);
    REQUIRE(reserve.bytes() == piece * 5 / 2);
    reserve.KeepOnly(0);
    REQUIRE(reserve.bytes() == 256u << 10);
    REQUIRE(*SpaceReserve::BytesIn(at.disk, "/big") == 256u << 10);
    // The next fill adds the missing bytes exactly.
    REQUIRE_OK(reserve.Fill());
    REQUIRE(*SpaceReserve::BytesIn(at.disk, "/big") == 16 * piece);
  }
  SECTION("full") {
    at.FillAllBut(0);
    reserve.KeepOnly(0);
    REQUIRE(reserve.bytes() == 16 * piece);
  }
}

TEST_CASE("if space cannot be claimed, the reserve is left free instead") {
  ReservedDisk at;
  at.disk.FailCall(
      {.calls = SimCall::kPreallocate, .code = StatusCode::kUnsupported, .sticky = true});
  REQUIRE_OK(at.reserve->Fill());
  REQUIRE(at.reserve->bytes() == 0);
  REQUIRE(at.disk.ListDirectory("/reserve")->empty());
  REQUIRE(at.reserve->Usable(43 * kPage) == kPage);
  SECTION("enough") {
    at.FillAllBut(42);
    REQUIRE_OK(at.reserve->Fill());
  }
  SECTION("not enough") {
    at.FillAllBut(41);
    REQUIRE_CODE(at.reserve->Fill(), kNoSpace);
  }
}

TEST_CASE("the reserve is a limited part of the disk") {
  const auto small = SpaceReserve::For(400u << 20);
  REQUIRE(small.pieces * small.piece_bytes == 32u << 20);
  REQUIRE(small.opening_bytes == 10u << 20);
  REQUIRE(small.spare_bytes == (400u << 20) / 64);
  const auto large = SpaceReserve::For(uint64_t{1} << 40);
  REQUIRE(large.pieces * large.piece_bytes == 256u << 20);
  REQUIRE(large.spare_bytes == 64u << 20);
  const auto smaller = SpaceReserve::For(100u << 20);
  REQUIRE(smaller.pieces * smaller.piece_bytes == 16u << 20);
  REQUIRE(smaller.opening_bytes == 0);
  const auto least = SpaceReserve::For(40u << 20);
  REQUIRE(least.pieces * least.piece_bytes == 16u << 20);
  REQUIRE(least.opening_bytes == 0);
  REQUIRE(least.metadata_bytes == 8u << 20);
  const auto share = SpaceReserve::For(24u << 20);
  REQUIRE(share.pieces * share.piece_bytes <= (24u << 20) / 5 * 2);
  REQUIRE(share.pieces * share.piece_bytes >= 9u << 20);
  const auto tiny = SpaceReserve::For(1000);
  REQUIRE(tiny.pieces == 0);
  REQUIRE(tiny.opening_bytes == 0);
  REQUIRE(tiny.metadata_bytes < 1000);
}

TEST_CASE("an entry in place of a piece does not prevent filling the reserve") {
  ReservedDisk at;
  const auto there = [&](const std::string& name) {
    REQUIRE_OK(at.disk.OpenFile("/reserve/" + name, {.mode = OpenMode::kCreate}));
  };
  SECTION("directories") {
    REQUIRE_OK(at.disk.CreateDirectory("/reserve"));
    for (const std::string name : {"0", "1", "3"})
      REQUIRE_OK(at.disk.CreateDirectory("/reserve/" + name));
    at.Open();
  }
  SECTION("files created later") {
    REQUIRE_OK(at.disk.CreateDirectory("/reserve"));
    there("0");
    there("2");
  }
  SECTION("names that are not numbers of pieces") {
    REQUIRE_OK(at.disk.CreateDirectory("/reserve"));
    for (const std::string name : {"00", "-1", "18446744073709551615", "18446744073709551616", "x"})
      there(name);
    at.Open();
  }
  SECTION("a piece that could not be removed") {
    REQUIRE_OK(at.reserve->Fill());
    at.disk.FailCall({.calls = SimCall::kRemove, .code = StatusCode::kIoError});
    REQUIRE(at.reserve->GiveUpPiece());
  }
  REQUIRE_OK(at.reserve->Fill());
  REQUIRE(at.reserve->bytes() == 8 * kPiece);
  for (int i = 0; i < 8; ++i) REQUIRE(at.reserve->GiveUpPiece());
  REQUIRE_FALSE(at.reserve->GiveUpPiece());
  REQUIRE_OK(at.reserve->Fill());
  REQUIRE(at.reserve->bytes() == 8 * kPiece);
}

TEST_CASE("the claimed bytes can be queried while pieces are given up") {
  ReservedDisk at;
  REQUIRE_OK(at.reserve->Fill());
  at.disk.FailCall(
      {.calls = SimCall::kInfo, .code = StatusCode::kNotFound, .path_part = "/reserve/"});
  const auto claimed = SpaceReserve::BytesIn(at.disk, "/reserve");
  REQUIRE_OK(claimed);
  REQUIRE(*claimed == 7 * kPiece);
}

TEST_CASE("many writers share the reserve without losing a part of it") {
  ReservedDisk at;
  ReserveEnv env(at.disk, *at.reserve);
  REQUIRE_OK(at.reserve->Fill());
  at.FillAllBut(0);
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      auto file = env.OpenFile("/f" + std::to_string(i), {.mode = OpenMode::kCreate});
      if (!file.ok()) return;
      for (uint64_t page = 0; page < 20; ++page) {
        if ((*file)->Write(page * kPage, Bytes(kPage, 1)).ok()) ++written;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  REQUIRE(written == 32);
  REQUIRE(at.reserve->bytes() == 0);
}

}  // namespace siltfs::testing
