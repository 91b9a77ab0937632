// Whole entries, as imports put them: content, attributes, replacement, links, and source records.
#include "fs/interface/entry_store.h"

#include "fs/interface/content_source.h"
#include "fs/interface/posix_acl.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Fixture {
  StoreFixture store;
  FileSystem* fs = &store.Open();

  // The image of a file with this content. It keeps the extent.
  ExtentImage extent;
  EntryImage File(std::string_view name, const Bytes& data, uint64_t source = 0) {
    extent = {0, data};
    EntryImage image{.parent = kRootInode, .name = name, .mode = 0100640, .uid = 5, .gid = 6};
    image.size = data.size();
    image.atime = 7;
    image.mtime = 8;
    if (!data.empty()) image.extents = {&extent, 1};
    if (source != 0) image.source = {.inode = source, .ctime = 9, .size = data.size(), .mtime = 8};
    return image;
  }
  Result<PutOutcome> Put(const EntryImage& image) { return fs->entries().Put({&image, 1})[0]; }
  InodeNumber MustPut(const EntryImage& image) {
    const auto put = Put(image);
    REQUIRE_OK(put);
    return put->inode;
  }
  PutEffect EffectOf(const EntryImage& image) {
    const auto put = Put(image);
    REQUIRE_OK(put);
    return put->effect;
  }
  PutEffect OfferOf(EntryImage image, InodeNumber reference = 0) {
    image.extents = {};
    const auto offered = fs->entries().Offer(image, reference, false);
    REQUIRE_OK(offered);
    return offered->effect;
  }
  PutEffect LinkEffect(InodeNumber inode, std::string_view name) {
    const auto linked = fs->entries().Link(inode, kRootInode, name);
    REQUIRE_OK(linked);
    return linked->effect;
  }
  Attributes Stat(std::string_view path) {
    const auto inode = Resolve(*fs, path);
    REQUIRE_OK(inode);
    return *fs->GetAttributes(*inode);
  }
  void CloseAndCount(uint64_t files) {
    store.Close();
    const StoreCount count = RecountStore(store.path());
    CHECK(count.files == files);
    CHECK(count.orphans == 0);
  }
};

TEST_CASE_METHOD(Fixture, "an entry has the content, attributes and name of its image") {
  const Bytes data = RandomBytes(1, 200'000);
  const InodeNumber inode = MustPut(File("file", data));
  const Attributes attributes = Stat("file");
  CHECK(attributes.inode == inode);
  CHECK(attributes.mode == 0100640);
  CHECK(attributes.uid == 5);
  CHECK(attributes.gid == 6);
  CHECK(attributes.atime == 7);
  CHECK(attributes.mtime == 8);
  CHECK(attributes.links == 1);
  CHECK(attributes.size == data.size());
  CHECK((*ReadFile(*fs, inode) == data));
  CHECK(store.Stats().files == 1);
  CHECK(store.Stats().logical_bytes == data.size());
  CloseAndCount(1);
}

TEST_CASE_METHOD(Fixture, "a put file has the chunks of a written one") {
  const Bytes data = RandomBytes(1, 300'000);
  WriteFile(*fs, "written", data);
  REQUIRE_OK(fs->SyncAll());
  const uint64_t before = store.Stats().added_bytes;
  MustPut(File("put", data));
  CHECK(store.Stats().added_bytes == before);
}

TEST_CASE_METHOD(Fixture, "what lies between extents is a hole, and so are zeros") {
  const Bytes one = RandomBytes(1, 10'000);
  const Bytes zeros(200'000);
  const ExtentImage extents[] = {{50'000, one}, {100'000, zeros}};
  EntryImage image = File("sparse", {});
  image.size = 1'000'000;
  image.extents = extents;
  const InodeNumber inode = MustPut(image);
  CHECK(Stat("sparse").allocated_bytes < 20'000);
  const Bytes content = *ReadFile(*fs, inode);
  REQUIRE(content.size() == 1'000'000);
  CHECK(std::equal(one.begin(), one.end(), content.begin() + 50'000));
  CHECK(std::count(content.begin() + 60'000, content.end(), 0) == 940'000);
}

TEST_CASE_METHOD(Fixture, "an entry replaces any old entry but a directory, in one operation") {
  const InodeNumber old = WriteFile(*fs, "file", RandomBytes(1, 100'000));
  REQUIRE_OK(fs->SyncAll());
  const auto put = Put(File("file", RandomBytes(2, 5'000)));
  REQUIRE_OK(put);
  CHECK(put->effect == PutEffect::kReplaced);
  CHECK(put->replaced == old);
  REQUIRE_CODE(fs->GetAttributes(old), kStale);
  CHECK(store.Stats().files == 1);
  SECTION("a crash before the commit brings the old one back") {
    store.Crash();
    fs = &store.Open();
    CHECK(Stat("file").inode == old);
  }
  SECTION("after the commit the new one stays") {
    REQUIRE_OK(fs->SyncAll());
    store.Crash();
    fs = &store.Open();
    CHECK(Stat("file").size == 5'000);
  }
  MakeDir(*fs, kRootInode, "directory");
  REQUIRE_CODE(Put(File("directory", RandomBytes(3, 10))), kIsADirectory);
}

TEST_CASE_METHOD(Fixture, "an open file that is replaced keeps its content") {
  const Bytes data = RandomBytes(1, 1'000);
  const InodeNumber old = WriteFile(*fs, "file", data);
  REQUIRE_OK(fs->OpenFile(old, false));
  MustPut(File("file", RandomBytes(2, 10)));
  CHECK((*ReadFile(*fs, old) == data));
  fs->ReleaseFile(old);
  REQUIRE_CODE(fs->GetAttributes(old), kStale);
}

TEST_CASE_METHOD(Fixture, "an entry that is there already is left alone") {
  const Bytes data = RandomBytes(1, 1'000);
  const XattrImage xattr{"user.a", "b"};
  EntryImage image = File("file", data);
  image.xattrs = {&xattr, 1};
  CHECK(EffectOf(image) == PutEffect::kMade);
  CHECK(EffectOf(image) == PutEffect::kUnchanged);
  EntryImage other = image;
  SECTION("another mode") { other.mode = 0100600; }
  SECTION("another mtime") { other.mtime = 1; }
  SECTION("another owner") { other.uid = 1; }
  SECTION("no extended attributes") { other.xattrs = {}; }
  SECTION("another content") { other.size = 1'001; }
  CHECK(EffectOf(other) == PutEffect::kReplaced);
}

TEST_CASE_METHOD(Fixture, "a file is current until its source or it itself changes") {
  const Bytes data = RandomBytes(1, 50'000);
  EntryImage image = File("file", data, 3);
  CHECK(OfferOf(image) == PutEffect::kNeeded);
  const InodeNumber inode = MustPut(image);
  CHECK(OfferOf(image) == PutEffect::kUnchanged);
  store.Reopen();
  fs = &store.fs();
  CHECK(OfferOf(image) == PutEffect::kUnchanged);
  SECTION("the source has another inode") { image.source->inode = 4; }
  SECTION("the source has another ctime") { image.source->ctime = 4; }
  SECTION("the file was written") {
    REQUIRE_OK(fs->Write(inode, 10, RandomBytes(2, 10)));
    AttributeChange times;
    times.mtime = 8;  // as before
    REQUIRE_OK(fs->SetAttributes(inode, times));
  }
  SECTION("the file has another extended attribute") {
    REQUIRE_OK(fs->SetXattr(inode, "user.x", "y", XattrMode::kSet));
  }
  CHECK(OfferOf(image) == PutEffect::kNeeded);
}

TEST_CASE_METHOD(Fixture,
                 "a reference gives its recipe and its attributes, unless it has changed") {
  const Bytes data = RandomBytes(1, 600'000);
  const InodeNumber reference = MakeDir(*fs, kRootInode, "reference");
  const XattrImage xattr{"user.a", "b"};
  EntryImage image = File("file", data, 3);
  image.xattrs = {&xattr, 1};
  image.parent = reference;
  const InodeNumber old = MustPut(image);
  image.parent = kRootInode;
  image.xattrs = {};
  SECTION("unchanged") {
    CHECK(OfferOf(image, reference) == PutEffect::kMade);
    const Attributes made = Stat("file");
    CHECK(made.inode != old);
    CHECK((*ReadFile(*fs, made.inode) == data));
    CHECK(*fs->GetXattr(made.inode, "user.a") == "b");
    CHECK(OfferOf(image) == PutEffect::kUnchanged);
    CloseAndCount(2);
  }
  SECTION("written") {
    REQUIRE_OK(fs->Write(old, 0, RandomBytes(2, 10)));
    CHECK(OfferOf(image, reference) == PutEffect::kNeeded);
  }
  SECTION("removed") {
    REQUIRE_OK(fs->Unlink(reference, "file"));
    CHECK(OfferOf(image, reference) == PutEffect::kNeeded);
  }
}

TEST_CASE_METHOD(Fixture, "another name of a file leaves it current") {
  const Bytes data = RandomBytes(1, 100);
  const EntryImage image = File("file", data, 3);
  const InodeNumber inode = MustPut(image);
  CHECK(LinkEffect(inode, "other") == PutEffect::kMade);
  CHECK(LinkEffect(inode, "other") == PutEffect::kUnchanged);
  CHECK(Stat("other").links == 2);
  CHECK(OfferOf(image) == PutEffect::kUnchanged);
  WriteFile(*fs, "third", data);
  CHECK(LinkEffect(inode, "third") == PutEffect::kReplaced);
  CHECK(store.Stats().files == 1);
  CloseAndCount(1);
}

TEST_CASE_METHOD(Fixture, "a temporary file gets its attributes and its name at once") {
  const Bytes data = RandomBytes(1, 3'000'000);
  WriteFile(*fs, "file", RandomBytes(2, 10));
  const auto made = fs->MakeTemporaryFile(kRootInode, 0600, kCaller);
  REQUIRE_OK(made);
  REQUIRE_OK(fs->Write(made->inode, 0, data));
  EntryImage image = File("file", data, 3);
  image.extents = {};
  const auto placed = fs->entries().Place(made->inode, image);
  REQUIRE_OK(placed);
  CHECK(placed->effect == PutEffect::kReplaced);
  fs->ReleaseFile(made->inode);
  fs->Forget(made->inode, 1);
  CHECK(Stat("file").inode == made->inode);
  CHECK(Stat("file").mtime == 8);
  CHECK((*ReadFile(*fs, made->inode) == data));
  CHECK(OfferOf(image) == PutEffect::kUnchanged);
  REQUIRE_CODE(fs->entries().Place(made->inode, image), kInvalidArgument);
  CloseAndCount(1);
}

TEST_CASE_METHOD(Fixture, "source records are hidden") {
  const InodeNumber inode = MustPut(File("file", RandomBytes(1, 100), 3));
  CHECK(fs->ListXattrs(inode)->empty());
  REQUIRE_CODE(fs->GetXattr(inode, "siltfs.source"), kUnsupported);
  REQUIRE_CODE(fs->SetXattr(inode, "siltfs.source", "x", XattrMode::kSet), kUnsupported);
  REQUIRE_CODE(fs->RemoveXattr(inode, "siltfs.source"), kUnsupported);
}

TEST_CASE_METHOD(Fixture, "a directory gets exactly the attributes of its image") {
  const InodeNumber directory = MakeDir(*fs, kRootInode, "directory");
  REQUIRE_OK(fs->SetXattr(directory, "user.old", "x", XattrMode::kSet));
  const XattrImage xattr{"user.new", "y"};
  EntryImage image{.mode = 0042770, .uid = 1, .gid = 2, .atime = 3, .mtime = 4};
  image.xattrs = {&xattr, 1};
  const auto first = fs->entries().SetDirectory(directory, image);
  REQUIRE_OK(first);
  CHECK(*first);
  const auto second = fs->entries().SetDirectory(directory, image);
  REQUIRE_OK(second);
  CHECK(!*second);
  CHECK(Stat("directory").mode == 0042770);
  CHECK(Stat("directory").mtime == 4);
  CHECK((*fs->ListXattrs(directory) == std::vector<std::string>{"user.new"}));
}

TEST_CASE_METHOD(Fixture, "an image that contradicts itself is refused, and leaves nothing") {
  const Bytes data = RandomBytes(1, 100);
  EntryImage image = File("file", data);
  const ExtentImage two[] = {{0, data}, {100, data}};
  const ExtentImage backward[] = {{200, data}, {0, data}};
  const XattrImage twice[] = {{"user.a", "1"}, {"user.a", "2"}};
  const XattrImage hidden[] = {{"siltfs.source", "1"}};
  const XattrImage acl[] = {{kAccessAclName, "not a list"}};
  SECTION("a size below its data") { image.size = 99; }
  SECTION("an extent beyond any size") { image.size = 1, image.extents = two; }
  SECTION("extents that touch") { image.size = 200, image.extents = two; }
  SECTION("extents out of order") { image.size = 300, image.extents = backward; }
  SECTION("no type") { image.mode = 0640; }
  SECTION("a slash in the name") { image.name = "a/b"; }
  SECTION("the name of the parent") { image.name = ".."; }
  SECTION("no owner") { image.uid = UINT32_MAX; }
  SECTION("a link without a target") { image.mode = 0120777; }
  SECTION("an attribute twice") { image.xattrs = twice; }
  SECTION("a hidden attribute") { image.xattrs = hidden; }
  SECTION("a malformed access list") { image.xattrs = acl; }
  const auto put = Put(image);
  CHECK(!put.ok());
  CHECK(ListNames(*fs, kRootInode).empty());
  CHECK(store.Stats().files == 0);
  CloseAndCount(0);
}

TEST_CASE_METHOD(Fixture, "the pieces of a file give its content") {
  const Bytes data = RandomBytes(1, 400'000);
  const InodeNumber inode = MustPut(File("file", data));
  REQUIRE_OK(fs->SyncAll());
  const auto reader = fs->contents().NewReader();
  Bytes content;
  const Status visited = fs->contents().Visit(inode, 0, [&](const ContentPiece& piece) {
    REQUIRE(piece.kind == ContentPiece::Kind::kChunk);
    REQUIRE(piece.offset == content.size());
    ChunkPlace place = piece.chunk;
    if (content.size() > 200'000) place.location.ordinal = 12345;  // the place is only a hint
    Bytes chunk(piece.length);
    REQUIRE_OK(reader->Read(place, chunk));
    content.insert(content.end(), chunk.begin(), chunk.end());
    return true;
  });
  REQUIRE_OK(visited);
  CHECK((content == data));
}

}  // namespace
}  // namespace siltfs::testing
